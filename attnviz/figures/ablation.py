"""Outcomes under ablation: heads switched off one after another, single cells masked, zeros against means."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from plotly import graph_objects as go

from attnviz.figures.labels import isolated, literal
from attnviz.figures.layer_grid import Colours, draw_layer_grid
from attnviz.figures.numbers import HOVER_NUMBER, number_text, signed_text
from attnviz.figures.theme import (
    THEMES,
    Marks,
    Theme,
    ThemeName,
    base_layout,
    difference_scale,
    figure_of,
    framed,
    grid_axis,
    legend_above,
    line,
    points_at,
    weight_scale,
)
from attnviz.records import Head, Measure, heads_in, known
from attnviz.records.tokens import Tokens

if TYPE_CHECKING:
    from attnviz.effects.ablation import HeadEffects, LayerEffects, Removal
    from attnviz.effects.cell_effects import CellEffects
    from attnviz.effects.row_shuffle import ShuffledHeads, ShuffledRow

_HEIGHT = 320
_MOST_NAMED = 12
"""Most heads that are named along the axis; with more, the axis counts them."""


def draw_head_effects(effects: "HeadEffects", *, theme: ThemeName = "light") -> go.Figure:
    """A cell for each layer and head: the change of the outcome while the head is off; custom data are layer and head."""
    changes = effects.effects
    largest = float(np.nanmax(np.abs(changes), initial=0.0)) or 1.0
    heads = range(changes.shape[1])
    return draw_layer_grid(
        changes,
        row="layer",
        names=[f"head {head}" for head in heads],
        written=[f"H{head}" for head in heads],
        colours=Colours(
            scale=difference_scale(THEMES[theme]), low=-largest, high=largest, title="change of the outcome"
        ),
        hovers=[
            [
                f"{Head(layer, head).words}<br>change {signed_text(float(changes[layer, head]))}, "
                f"outcome {number_text(float(effects.heads[layer, head]))}"
                for head in heads
            ]
            for layer in range(len(changes))
        ],
        theme=theme,
    )


def draw_shuffled_heads(shuffled: "ShuffledHeads", *, theme: ThemeName = "light") -> go.Figure:
    """A cell for each layer and head: how far the outcome changes while its row is permuted; custom data are layer and head."""
    largest = float(np.nanmax(shuffled.heads, initial=0.0)) or 1.0
    heads = range(shuffled.heads.shape[1])
    return draw_layer_grid(
        shuffled.heads,
        row="layer",
        names=[f"head {head}" for head in heads],
        written=[f"H{head}" for head in heads],
        colours=Colours(
            scale=weight_scale(THEMES[theme]), low=0.0, high=largest, title="change of the outcome"
        ),
        hovers=[
            [
                f"{Head(layer, head).words}<br>change {number_text(float(shuffled.heads[layer, head]))}, "
                f"p = {number_text(float(shuffled.p_values[layer, head]))}"
                for head in heads
            ]
            for layer in range(len(shuffled.heads))
        ],
        theme=theme,
    )


def draw_shuffled_row(shuffled: "ShuffledRow", *, theme: ThemeName = "light") -> go.Figure:
    """A bar for each arrangement of the weights, the model's own among them: the outcome's distance from the mean of all."""
    palette = THEMES[theme]
    n_shuffle = len(shuffled.orders)
    names = ["the model’s own", *(f"permutation {number}" for number in range(1, n_shuffle + 1))]
    changes = [0.0, *shuffled.changes.tolist()]
    bars: Marks = dict(
        type="bar",
        x=names[: len(shuffled.distances)],
        y=shuffled.distances,
        marker={"color": [palette.picked, *[palette.strong] * n_shuffle][: len(shuffled.distances)]},
        text=[f"change {number_text(change)}" for change in changes[: len(shuffled.distances)]],
        textposition="none",
        hovertemplate=f"%{{x}}: %{{y:{HOVER_NUMBER}}}<br>%{{text}}<extra></extra>",
    )
    across = grid_axis(palette, "arrangement of the weights", type="category", showticklabels=False)
    up = grid_axis(palette, "distance from the mean outcome", rangemode="tozero")
    return figure_of(bars, base_layout(palette, height=_HEIGHT, margin={"r": 16}, xaxis=across, yaxis=up))


def draw_layer_effects(effects: "LayerEffects", *, theme: ThemeName = "light") -> go.Figure:
    """A bar for each layer: the change of the outcome while all its heads are off; custom data of a bar is its layer."""
    palette, layers = THEMES[theme], np.arange(len(effects.layers))
    bars: Marks = dict(
        type="bar",
        x=layers,
        y=effects.effects,
        marker={"color": palette.strong},
        customdata=layers,
        hovertemplate=f"layer %{{x}}: %{{y:{HOVER_NUMBER}}}<extra></extra>",
    )
    across = grid_axis(palette, "layer", range=[-0.6, len(layers) - 0.4])
    up = grid_axis(palette, "change of the outcome", zeroline=True, zerolinecolor=palette.quiet)
    return figure_of(bars, base_layout(palette, height=_HEIGHT, margin={"r": 16}, xaxis=across, yaxis=up))


def draw_removal(
    removals: "Sequence[tuple[str, Removal]]", *, outcome: str = "outcome", theme: ThemeName = "light"
) -> go.Figure:
    """A line for each removal: the outcome while more and more heads are off; a dotted line for none.

    Args:
        removals: each with its name; the first is drawn in the strong tone, others are dashed or dotted.
        outcome: name of the outcome's number, written beside the axis.
    """
    palette = THEMES[theme]
    marks = [_removal_line(name, removal, number, palette) for number, (name, removal) in enumerate(removals)]
    longest = max((len(removal.heads) for _, removal in removals), default=0)
    first = removals[0][1] if removals else None
    across = grid_axis(palette, "heads that are off", range=[-0.3, longest + 0.3])
    if first is not None and len(removals) == 1 and longest <= _MOST_NAMED:
        across |= {
            "tickmode": "array",
            "tickvals": list(range(longest + 1)),
            "ticktext": ["none", *(f"+ {head.short}" for head in first.heads)],
            "tickangle": -60,
        }
    base = [] if first is None else [line((0.0, first.base), (1.0, first.base), palette.quiet, xref="paper")]
    return figure_of(
        marks,
        base_layout(
            palette,
            height=_HEIGHT,
            margin={"r": 16},
            xaxis=across,
            yaxis=grid_axis(palette, outcome),
            shapes=base,
            showlegend=len(removals) > 1,
            legend=legend_above(),
        ),
    )


def draw_cell_effects(
    cells: "CellEffects",
    *,
    measure: Measure = "weights",
    picked: tuple[int, int] | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """A point for each cell of a head: x is its weight, y the size of the effect of masking it.

    Triangles point up where the outcome grows and down where it falls. Custom data are query and key.

    Args:
        measure: "weights" or "norms", what x is.
        picked: positions of the selected query and key, whose point is framed.
    """
    palette = THEMES[theme]
    numbers = cells.norms if measure == "norms" and cells.norms is not None else cells.weights
    is_picked = np.zeros(len(numbers), dtype=bool)
    if picked is not None:
        is_picked = (cells.queries == picked[0]) & (cells.keys == picked[1])
    places = list(zip(cells.queries.tolist(), cells.keys.tolist(), strict=True))
    names = [_cell_name(cells.query_tokens, cells.key_tokens, query, key) for query, key in places]
    symbol = np.where(cells.effects >= 0, "triangle-up", "triangle-down")
    points = points_at(
        numbers,
        np.abs(cells.effects),
        framed(is_picked, (8, 14), palette, symbol=symbol),
        customdata=places,
        text=[
            f"{name}: {signed_text(effect)}"
            for name, effect in zip(names, cells.effects.tolist(), strict=True)
        ],
        hovertemplate=f"%{{text}}<br>%{{x:{HOVER_NUMBER}}}<extra></extra>",
    )
    name = "norm-based weight" if measure == "norms" else "attention weight"
    return _scatter(points, across=name, up="size of the effect", palette=palette)


def draw_ablations(
    zero: "HeadEffects",
    mean: "HeadEffects",
    *,
    picked: tuple[int, int] | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """A point for each head: x is its effect with zeros for its output, y with its mean; equal on the dotted line."""
    palette = THEMES[theme]
    heads = heads_in(zero.heads)
    is_picked = np.array([head == picked for head in heads])
    of_zero, of_mean = known(zero.effects), known(mean.effects)
    points = points_at(
        of_zero,
        of_mean,
        framed(is_picked, (8, 14), palette),
        customdata=[list(head) for head in heads],
        text=[head.words for head in heads],
        hovertemplate=f"%{{text}}<br>zeros %{{x:{HOVER_NUMBER}}}, mean %{{y:{HOVER_NUMBER}}}<extra></extra>",
    )
    both = np.concatenate([of_zero, of_mean])
    least, most = float(both.min()), float(both.max())
    diagonal = line((least, least), (most, most), palette.quiet)
    return _scatter(
        points,
        across="effect while it gives zeros",
        up="effect while it gives its mean",
        palette=palette,
        shapes=[diagonal],
    )


def _scatter(
    points: Marks, *, across: str, up: str, palette: Theme, shapes: Sequence[object] = ()
) -> go.Figure:
    axes = {"xaxis": grid_axis(palette, across), "yaxis": grid_axis(palette, up)}
    return figure_of(
        points, base_layout(palette, height=_HEIGHT, margin={"r": 16}, **axes, shapes=list(shapes))
    )


def _removal_line(name: str, removal: "Removal", number: int, palette: Theme) -> Marks:
    outcomes: Float[np.ndarray, " head"] = np.concatenate([[removal.base], removal.outcomes])
    told = ["no head is off", *(f"and {head.words}" for head in removal.heads)]
    dash, symbol = (("solid", "circle"), ("dash", "diamond"), ("dot", "square"))[number % 3]
    return points_at(
        np.arange(len(outcomes)),
        outcomes,
        {"size": 7, "symbol": symbol},
        name=name,
        mode="lines+markers",
        line={"color": palette.heads[number % len(palette.heads)], "width": 2, "dash": dash},
        text=told,
        customdata=[[head.layer, head.head] for head in (removal.heads[:1] + removal.heads)],
        hovertemplate=f"%{{x}} off, %{{text}}: %{{y:{HOVER_NUMBER}}}<extra></extra>",
    )


def _cell_name(queries: Tokens, keys: Tokens, query: int, key: int) -> str:
    of_query, of_key = (isolated(literal(label)) for label in (queries.labels[query], keys.labels[key]))
    return f"{of_query}·{query} → {of_key}·{key}"
