"""Where the difference between two texts lies: the share that each state accounts for, by layer and by token or head."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from plotly import graph_objects as go

from attnviz.figures.labels import LONGEST_HOVER, LONGEST_LABEL, isolated, literal, shortened
from attnviz.figures.layer_grid import Colours, draw_layer_grid
from attnviz.figures.numbers import number_text, spread_text
from attnviz.figures.theme import THEMES, ThemeName, difference_scale
from attnviz.records.tokens import Tokens

if TYPE_CHECKING:
    from attnviz.effects.patching import PatchEffects

_TITLES = {"share": "share of the difference", "change": "change of the outcome"}

DIFFERS = "●"
"""Marks a token in which the texts differ, beside the axis and in captions; it looks the same however a label is turned."""


def draw_patching(
    effects: "PatchEffects",
    *,
    spread: Float[np.ndarray, "row column"] | None = None,
    scale_of: "PatchEffects | None" = None,
    picked: int | None = None,
    differing: Sequence[int] = (),
    theme: ThemeName = "light",
) -> go.Figure:
    """A cell for each layer, or head, and token or head: the share of the difference; custom data are row and column.

    Where the difference cannot be divided into shares, a cell has the change of the outcome instead. The colours go from -1 to 1, or
    further if a share is larger; those of changes go as far as the largest. A token that differs is written "cat → door".

    Args:
        spread: for a mean over several pairs of texts, the standard deviation of each cell's change, shown in hover texts.
        scale_of: a map that decides this one's colour scale, and whether it shows shares or changes; None for itself.
        picked: position of the selected token, whose cells are outlined; not where columns are heads.
        differing: positions at which the texts differ, which are marked beside the axis.
    """
    receiver, donor = effects.receiver_tokens, effects.donor_tokens
    reference = effects if scale_of is None else scale_of
    is_shared = reference.can_be_shared
    unit = effects.donor - effects.base if is_shared else 1.0
    numbers, what = effects.changes / np.float32(unit), "share" if is_shared else "change"
    row, is_of_heads = effects.rows, effects.columns == "head"
    columns = range(numbers.shape[1])
    if is_of_heads:
        names = [f"{_part(effects)} {at}" for at in columns]
        written = [f"{'KV' if effects.carried in ('key', 'value') else 'H'}{at}" for at in columns]
    else:
        names = [f"{_name(receiver, donor, at, LONGEST_HOVER)}·{at}" for at in columns]
        written = [
            f"{f'{DIFFERS} ' * (at in differing)}{_name(receiver, donor, at, LONGEST_LABEL)}"
            for at in columns
        ]
    largest = float(np.nanmax(np.abs(reference.changes), initial=0.0)) / abs(unit)
    largest = max(1.0, largest) if is_shared else largest or 1.0

    def hovers(number: int, at: int) -> str:
        share, outcome = (
            number_text(float(numbers[number, at])),
            number_text(float(effects.outcomes[number, at])),
        )
        over = "" if spread is None else spread_text(float(spread[number, at]) / abs(unit))
        return f"{row} {number}, {names[at]}<br>{what} {share}{over}, outcome {outcome}"

    return draw_layer_grid(
        numbers,
        row=row,
        names=names,
        written=written,
        colours=Colours(
            scale=difference_scale(THEMES[theme]),
            low=-largest,
            high=largest,
            title=_TITLES[what],
        ),
        hovers=[[hovers(number, at) for at in columns] for number in range(len(numbers))],
        picked=None if is_of_heads else picked,
        theme=theme,
    )


def _part(effects: "PatchEffects") -> str:
    """What a column of heads is: keys and values are shared by heads in many models."""
    return "key-value head" if effects.carried in ("key", "value") else "head"


def _name(receiver: Tokens, donor: Tokens, at: int, longest: int) -> str:
    """A token, or "cat → door" where the donor has another."""
    mine, theirs = (isolated(literal(shortened(tokens.labels[at], longest))) for tokens in (receiver, donor))
    return mine if receiver.ids[at] == donor.ids[at] else f"{mine} → {theirs}"
