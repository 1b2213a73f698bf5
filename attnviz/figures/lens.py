"""What a model would answer after each layer, and what each layer adds to that."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from plotly import graph_objects as go

from attnviz.figures.labels import LONGEST_HOVER, LONGEST_LABEL, hover_labels, isolated, literal, shortened
from attnviz.figures.layer_grid import Colours, draw_layer_grid, runs_across
from attnviz.figures.numbers import HOVER_NUMBER, number_text, spread_text
from attnviz.figures.theme import (
    THEMES,
    Marks,
    ThemeName,
    axis_title,
    bare_axis,
    base_layout,
    difference_scale,
    figure_of,
    grid_axis,
    legend_above,
    line,
    points_at,
    weight_scale,
)
from attnviz.records import SPACE
from attnviz.records.tokens import Axis, Tokens

if TYPE_CHECKING:
    from attnviz.effects.lens import FollowedTokens, LayerSimilarities, Lens
    from attnviz.effects.logit_attribution import DirectParts
    from attnviz.effects.over_pairs import MeanDirectEffects

_MOST_WRITTEN = 16
"""Most tokens of a text with the answers in the cells."""
_LONGEST_IN_CELL, _LONGEST_ACROSS = 9, 4
"""Letters that a cell has room for, with layers down and with layers across, which also omit the space before a word."""


def draw_lens(
    answers_by_layer: "Lens", *, picked: int | None = None, theme: ThemeName = "light"
) -> go.Figure:
    """A cell for each layer and token: the probability of the most likely token there, which is written in it.

    Args:
        picked: position of the selected token, whose column is outlined.
    """
    tokens = answers_by_layer.tokens
    answers = [[row[0] for row in layer] for layer in answers_by_layer.labels]
    names = hover_labels(Axis.of(tokens))
    hovers = [
        [
            f"layer {layer}, {names[at]}<br>most likely {isolated(literal(shortened(label, LONGEST_HOVER)))}, "
            f"{number_text(float(answers_by_layer.probabilities[layer, at, 0]))}"
            for at, label in enumerate(row)
        ]
        for layer, row in enumerate(answers)
    ]
    written = [[_in_cell(label, is_across=runs_across(len(answers))) for label in row] for row in answers]
    return draw_layer_grid(
        answers_by_layer.probabilities[..., 0],
        row="layer",
        names=_names(tokens, LONGEST_HOVER),
        written=_names(tokens, LONGEST_LABEL),
        colours=Colours(scale=weight_scale(THEMES[theme]), low=0.0, high=1.0, title="its probability"),
        hovers=hovers,
        letters=written if len(tokens) <= _MOST_WRITTEN else None,
        picked=picked,
        theme=theme,
    )


def draw_layer_similarities(
    similarities: "LayerSimilarities",
    *,
    picked: int | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """A cell for each layer and token: the cosine of the vector there and the last hidden state."""
    lowest = float(np.nanmin(similarities.similarities, initial=0.0))
    palette, tokens = THEMES[theme], similarities.tokens
    names = hover_labels(Axis.of(tokens))
    return draw_layer_grid(
        similarities.similarities,
        row="layer",
        names=_names(tokens, LONGEST_HOVER),
        written=_names(tokens, LONGEST_LABEL),
        colours=Colours(
            scale=weight_scale(palette) if lowest >= 0 else difference_scale(palette),
            low=0.0 if lowest >= 0 else -1.0,
            high=1.0,
            title="similarity with the last",
        ),
        hovers=[
            [
                f"layer {layer}, {names[at]}<br>cosine {number_text(float(value))}"
                for at, value in enumerate(row)
            ]
            for layer, row in enumerate(similarities.similarities)
        ],
        picked=picked,
        theme=theme,
    )


def _in_cell(answer: str, *, is_across: bool) -> str:
    shown = shortened(answer.removeprefix(SPACE) or answer, _LONGEST_ACROSS) if is_across else answer
    return isolated(literal(shortened(shown, _LONGEST_IN_CELL)))


def _names(tokens: Tokens, longest: int) -> list[str]:
    return [isolated(literal(shortened(label, longest))) for label in tokens.labels]


_PANEL, _REST = 130, 70  # px
_DASHES, _SYMBOLS = ("solid", "dash"), ("circle", "diamond")


def draw_followed(
    followed: "FollowedTokens", *, picked: int | None = None, theme: ThemeName = "light"
) -> go.Figure:
    """Panels over the layers: the difference of two logits where there are two, the probabilities, and the ranks with 1 on top.

    Custom data of a point is the layer.

    Args:
        picked: the selected layer, which is marked.
    """
    palette = THEMES[theme]
    layers = np.arange(len(followed.logits))
    names = [isolated(literal(shortened(label, LONGEST_HOVER))) for label in followed.labels]
    panels: list[tuple[str, list[tuple[int, np.ndarray]]]] = [
        ("probability", [(at, followed.probabilities[:, at]) for at in range(len(names))]),
        ("rank", [(at, followed.ranks[:, at]) for at in range(len(names))]),
    ]
    if followed.differences is not None:
        panels.insert(0, ("difference of logits", [(-1, followed.differences)]))
    gap = 0.08
    height = (1 - gap * (len(panels) - 1)) / len(panels)
    marks: list[Marks] = []
    axes: dict[str, object] = {}
    for number, (title, curves) in enumerate(panels):
        is_rank = title == "rank"
        y = "%{y:,}" if is_rank else f"%{{y:{HOVER_NUMBER}}}"
        top = 1 - number * (height + gap)
        suffix = "" if number == 0 else str(number + 1)
        axes[f"yaxis{suffix}"] = grid_axis(
            palette,
            title,
            domain=[max(0.0, top - height), top],
            **({"type": "log", "autorange": "reversed", "dtick": 1, "tickformat": ","} if is_rank else {}),
            **({"zeroline": True, "zerolinecolor": palette.quiet} if title.startswith("difference") else {}),
        )
        for at, numbers in curves:
            name = names[at] if at >= 0 else f"{names[0]} minus {names[1]}"
            marks.append(
                points_at(
                    layers,
                    numbers,
                    {"size": 6, "symbol": "square" if at < 0 else _SYMBOLS[at % 2]},
                    mode="lines+markers",
                    name=name,
                    legendgroup=name,
                    showlegend=title == "probability",
                    yaxis=f"y{suffix}",
                    line={
                        "color": palette.strong if at < 0 else palette.heads[at % len(palette.heads)],
                        "width": 2,
                        "dash": "solid" if at < 0 else _DASHES[at % 2],
                    },
                    customdata=layers,
                    hovertemplate=f"layer %{{x}}, {name}: {title} {y}<extra></extra>",
                )
            )
    last = "y" if len(panels) == 1 else f"y{len(panels)}"
    shapes = []
    if picked is not None:
        drawn = {"color": palette.picked, "width": 2}
        shapes = [line((picked, 0), (picked, 1), "", yref="paper", line=drawn)]
    return figure_of(
        marks,
        base_layout(
            palette,
            height=_PANEL * len(panels) + _REST,
            margin={"r": 16},
            xaxis=grid_axis(palette, "layer", anchor=last, range=[-0.5, len(layers) - 0.5]),
            **axes,
            shapes=shapes,
            showlegend=True,
            legend=legend_above(),
        ),
    )


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
            margin={"r": 16},
            bargap=0.2,
            xaxis=bare_axis(
                title=axis_title("layer", palette.quiet),
                tickmode="array",
                tickvals=[-1, *shown],
                ticktext=["emb.", *map(str, shown)],
                range=[-1.6, len(layers) - 0.4],
            ),
            yaxis=grid_axis(palette, "adds", zeroline=True, zerolinecolor=palette.quiet),
            showlegend=True,
            legend=legend_above(),
        ),
    )


def _hover(what: str, spread: Float[np.ndarray, " bar"]) -> list[str]:
    return [f"{what}: %{{y:{HOVER_NUMBER}}}{spread_text(float(number))}<extra></extra>" for number in spread]


def _spread_lines(spread: Float[np.ndarray, " bar"], colour: str) -> Marks:
    """Error bars, one standard deviation up and down; none where that is not known."""
    if not np.isfinite(spread).any():
        return {}
    return {"error_y": {"type": "data", "array": spread, "color": colour, "thickness": 1.5, "width": 3}}
