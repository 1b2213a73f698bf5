"""What the numbers of the page Patching say, before it is put into words."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from attnviz.effects.patching import PatchEffects
from ui.words.extremes import places_of_largest


@dataclass(frozen=True, slots=True, kw_only=True)
class NoShares:
    """Why the difference of the two outcomes is not shared out."""

    reason: Literal["equal", "small", "unknown"]
    """The outcomes are the same up to rounding, too close to each other for how far single states move them, or not numbers."""
    base: float
    donor: float
    spread: float
    """Standard deviation of the outcomes with one state carried over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestShare:
    """The state that moves the outcome most, towards the other sentence's or away from it."""

    row: int
    column: int
    """A head where the map has heads across, otherwise a token."""
    share: float
    n_equal: int
    """Other states that move it as far."""


def reads_last(effects: PatchEffects) -> bool:
    """Whether the last row is what the outcome reads, so that a large share there tells nothing."""
    return effects.carried == "layer" and len(effects.outcomes) > 1


def largest_share(effects: PatchEffects) -> LargestShare | NoShares:
    """The largest share of all rows but one that the outcome reads; as a size, for it may be below 0."""
    asked = slice(None, -1 if reads_last(effects) else None)
    places = places_of_largest(np.abs(effects.shares[asked]))
    if not places:
        known = (
            np.isfinite(effects.base)
            and np.isfinite(effects.donor)
            and np.isfinite(effects.outcomes[asked]).any()
        )
        different: Literal["equal", "small"] = "small" if effects.has_difference else "equal"
        return NoShares(
            reason=different if known else "unknown",
            base=effects.base,
            donor=effects.donor,
            spread=effects.spread,
        )
    row, column = places[0]
    share = float(effects.shares[row, column])
    return LargestShare(row=row, column=column, share=share, n_equal=len(places) - 1)
