"""What each layer adds to a number directly: its heads together, its MLP and its biases, and the embedding before them."""

from typing import TYPE_CHECKING

import numpy as np
from plotly import graph_objects as go

from attnviz.figures.axes import grid_axis
from attnviz.figures.numbers import HOVER_NUMBER
from attnviz.figures.theme import THEMES, Marks, ThemeName, axis_title, base_layout, figure_of

if TYPE_CHECKING:
    from attnviz.effects.logit_attribution import DirectEffects

_HEIGHT = 280  # px
_MOST_TICKS = 16


def draw_layer_parts(
    found: "DirectEffects", *, picked: int | None = None, theme: ThemeName = "light"
) -> go.Figure:
    """Bars over the layers: what the heads of each add together, and what its MLP adds; the embedding stands before them.

    Custom data of a bar is its layer; -1 for the embedding.

    Args:
        picked: the selected layer, whose bars are framed.
    """
    palette = THEMES[theme]
    layers = np.arange(len(found.mlps))
    frame = {"color": palette.picked, "width": np.where(layers == picked, 2.5, 0)}
    parts: list[tuple[str, np.ndarray, str, str]] = [
        ("all heads", found.of_attention, palette.heads[0], ""),
        ("MLP", found.mlps, palette.heads[1], "/"),
    ]
    if found.biases.any():
        parts.append(("biases", found.biases, palette.heads[2], "."))
    marks: list[Marks] = [
        dict(
            type="bar",
            name=name,
            x=layers,
            y=numbers,
            marker={"color": colour, "line": frame, "pattern": {"shape": pattern, "fillmode": "overlay"}},
            customdata=layers,
            hovertemplate=f"layer %{{x}}, {name}: %{{y:{HOVER_NUMBER}}}<extra></extra>",
        )
        for name, numbers, colour, pattern in parts
    ]
    marks.append(
        dict(
            type="bar",
            name="embedding",
            x=[-1],
            y=[found.embedding],
            marker={"color": palette.quiet},
            customdata=[-1],
            hovertemplate=f"embedding: %{{y:{HOVER_NUMBER}}}<extra></extra>",
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
                **grid_axis(palette),
                "showgrid": False,
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
