"""What each layer adds to a number directly: its heads together, its MLP and its biases, and the embedding before them."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from plotly import graph_objects as go

from attnviz.figures.axes import bare_axis, grid_axis
from attnviz.figures.numbers import HOVER_NUMBER, spread_text
from attnviz.figures.theme import THEMES, Marks, ThemeName, axis_title, base_layout, figure_of

if TYPE_CHECKING:
    from attnviz.effects.logit_attribution import DirectParts
    from attnviz.effects.over_pairs import MeanDirectEffects

_HEIGHT = 280  # px
_MOST_TICKS = 16


def draw_layer_parts(
    effects: "DirectParts",
    *,
    over: "MeanDirectEffects | None" = None,
    picked: int | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """Bars over the layers: what the heads of each add together, and what its MLP adds; the embedding comes before them.

    Custom data of a bar is its layer; -1 for the embedding.

    Args:
        over: those means, where the numbers are means over pairs of prompts; error bars go one standard deviation up and down.
        picked: the selected layer, whose bars are framed.
    """
    palette = THEMES[theme]
    layers = np.arange(len(effects.mlps))
    frame = {"color": palette.picked, "width": np.where(layers == picked, 2.5, 0)}
    none = np.full(len(layers), np.nan)
    of_heads, of_mlps, of_biases, of_embedding = (
        (none, none, none, none[:1])
        if over is None
        else (over.attention.spread, over.mlps.spread, over.biases.spread, over.embedding.spread[None])
    )
    parts: list[tuple[str, np.ndarray, np.ndarray, str, str]] = [
        ("all heads", effects.of_attention, of_heads, palette.heads[0], ""),
        ("MLP", effects.mlps, of_mlps, palette.heads[1], "/"),
    ]
    if effects.biases.any():
        parts.append(("biases", effects.biases, of_biases, palette.heads[2], "."))
    marks: list[Marks] = [
        dict(
            type="bar",
            name=name,
            x=layers,
            y=numbers,
            marker={"color": colour, "line": frame, "pattern": {"shape": pattern, "fillmode": "overlay"}},
            customdata=layers,
            hovertemplate=_hover(f"layer %{{x}}, {name}", spread),
            **_spread_lines(spread, palette.quiet),
        )
        for name, numbers, spread, colour, pattern in parts
    ]
    marks.append(
        dict(
            type="bar",
            name="embedding",
            x=[-1],
            y=[effects.embedding],
            marker={"color": palette.quiet},
            customdata=[-1],
            hovertemplate=_hover("embedding", of_embedding),
            **_spread_lines(of_embedding, palette.text),
        )
    )
    shown = layers[:: -(-len(layers) // _MOST_TICKS)].tolist()
    return figure_of(
        marks,
        base_layout(
            palette,
            height=_HEIGHT,
            margin={"l": 8, "r": 16, "t": 8, "b": 8},
            bargap=0.2,
            xaxis={
                **bare_axis(),
                "title": axis_title("layer", palette.quiet),
                "tickmode": "array",
                "tickvals": [-1, *shown],
                "ticktext": ["emb.", *map(str, shown)],
                "range": [-1.6, len(layers) - 0.4],
            },
            yaxis={
                **grid_axis(palette),
                "title": axis_title("adds", palette.quiet),
                "zeroline": True,
                "zerolinecolor": palette.quiet,
            },
            showlegend=True,
            legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        ),
    )


def _hover(what: str, spread: Float[np.ndarray, " bar"]) -> list[str]:
    return [f"{what}: %{{y:{HOVER_NUMBER}}}{spread_text(float(number))}<extra></extra>" for number in spread]


def _spread_lines(spread: Float[np.ndarray, " bar"], colour: str) -> Marks:
    """Error bars, one standard deviation up and down; none where that is not known."""
    if not np.isfinite(spread).any():
        return {}
    return {"error_y": {"type": "data", "array": spread, "color": colour, "thickness": 1.5, "width": 3}}
