"""Where the difference between two texts lies: the share that each state accounts for, layer by layer and token by token."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from plotly import graph_objects as go

from attnviz.figures.labels import LONGEST_HOVER, LONGEST_LABEL, isolated, literal, shortened
from attnviz.figures.layer_grid import Colours, draw_layer_grid
from attnviz.figures.numbers import number_text
from attnviz.figures.theme import THEMES, ThemeName, difference_scale
from attnviz.records.tokens import Tokens

if TYPE_CHECKING:
    from attnviz.effects.patching import PatchEffects

_TITLES = {"share": "share of the difference", "change": "change of the outcome"}


def draw_patching(
    found: "PatchEffects",
    receiver: Tokens,
    donor: Tokens,
    *,
    picked: int | None = None,
    differing: Sequence[int] = (),
    theme: ThemeName = "light",
) -> go.Figure:
    """A cell for each layer, or head, and token: the share of the difference; custom data are row and token.

    Where the difference cannot be shared out, a cell has the change of the outcome instead. The colours go from -1 to 1, or
    further where a share is larger; those of changes as far as the largest.

    Args:
        receiver, donor: the tokens of the two texts; a token that differs is written "cat → door".
        picked: position of the selected token, whose column is outlined.
        differing: positions at which the texts differ, which are marked below the axis.
    """
    numbers, what = (found.shares, "share") if found.can_be_shared else (found.changes, "change")
    row = "head" if found.carried == "heads" else "layer"
    names = [_name(receiver, donor, at, LONGEST_HOVER) for at in range(numbers.shape[1])]
    largest = float(np.nanmax(np.abs(numbers), initial=0.0))
    largest = max(1.0, largest) if found.can_be_shared else largest or 1.0
    return draw_layer_grid(
        numbers,
        row=row,
        names=names,
        written=[
            f"{'▲ ' * (at in differing)}{_name(receiver, donor, at, LONGEST_LABEL)}"
            for at in range(len(names))
        ],
        colours=Colours(
            scale=difference_scale(THEMES[theme]),
            low=-largest,
            high=largest,
            title=_TITLES[what],
        ),
        said=[
            [
                f"{row} {number}, {names[at]}·{at}<br>{what} {number_text(float(cell))}, outcome "
                f"{number_text(float(found.outcomes[number, at]))}"
                for at, cell in enumerate(of_row)
            ]
            for number, of_row in enumerate(numbers)
        ],
        picked=picked,
        theme=theme,
    )


def _name(receiver: Tokens, donor: Tokens, at: int, longest: int) -> str:
    """A token, or "cat → door" where the donor has another."""
    mine, theirs = (isolated(literal(shortened(one.labels[at], longest))) for one in (receiver, donor))
    return mine if receiver.ids[at] == donor.ids[at] else f"{mine} → {theirs}"
