"""Where the difference between two texts lies: the share that each state brings, layer by layer and token by token."""

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

    The colours go from -1 to 1, or further where a share is larger.

    Args:
        receiver, donor: the tokens of the two texts; a token that differs is written "cat → door".
        picked: position of the selected token, whose column is outlined.
        differing: positions at which the texts differ, which are marked below the axis.
    """
    shares = found.shares
    row = "head" if found.carried == "heads" else "layer"
    names = [_name(receiver, donor, at, LONGEST_HOVER) for at in range(shares.shape[1])]
    largest = max(1.0, float(np.nanmax(np.abs(shares), initial=0.0)))
    return draw_layer_grid(
        shares,
        row=row,
        names=names,
        written=[
            f"{'▲ ' * (at in differing)}{_name(receiver, donor, at, LONGEST_LABEL)}"
            for at in range(len(names))
        ],
        colours=Colours(
            scale=difference_scale(THEMES[theme]), low=-largest, high=largest, title="share of the difference"
        ),
        said=[
            [
                f"{row} {number}, {names[at]}·{at}<br>share {number_text(float(share))}, outcome "
                f"{number_text(float(found.outcomes[number, at]))}"
                for at, share in enumerate(of_row)
            ]
            for number, of_row in enumerate(shares)
        ],
        picked=picked,
        theme=theme,
    )


def _name(receiver: Tokens, donor: Tokens, at: int, longest: int) -> str:
    """A token, or "cat → door" where the donor has another."""
    mine, theirs = (isolated(literal(shortened(one.labels[at], longest))) for one in (receiver, donor))
    return mine if receiver.labels[at] == donor.labels[at] else f"{mine} → {theirs}"
