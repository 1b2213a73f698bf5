"""What a model would answer after each layer, and how near each layer's vector is to the last."""

from typing import TYPE_CHECKING

import numpy as np
from plotly import graph_objects as go

from attnviz.figures.labels import LONGEST_HOVER, LONGEST_LABEL, hover_labels, isolated, literal, shortened
from attnviz.figures.layer_grid import Colours, draw_layer_grid, runs_across
from attnviz.figures.numbers import number_text
from attnviz.figures.theme import THEMES, ThemeName, difference_scale, weight_scale
from attnviz.records import SPACE
from attnviz.records.tokens import Axis, Tokens

if TYPE_CHECKING:
    from attnviz.effects.lens import LayerSimilarities, Lens

_MOST_WRITTEN = 16
"""Most tokens of a text with the answers in the cells."""
_LONGEST_IN_CELL, _LONGEST_ACROSS = 9, 4
"""Letters that a cell has room for, with layers down and with layers across, which also omit the space before a word."""


def draw_lens(
    answers_by_layer: "Lens", tokens: Tokens, *, picked: int | None = None, theme: ThemeName = "light"
) -> go.Figure:
    """A cell for each layer and token: the probability of the most likely token there, which is written in it.

    Args:
        tokens: those at which the answers are.
        picked: position of the selected token, whose column is outlined.
    """
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
    tokens: Tokens,
    *,
    picked: int | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """A cell for each layer and token: the cosine of the vector there and the last hidden state."""
    lowest = float(np.nanmin(similarities.similarities, initial=0.0))
    palette, names = THEMES[theme], hover_labels(Axis.of(tokens))
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
