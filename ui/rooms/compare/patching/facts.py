"""Facts for the findings of the page Patching, before they are put into words."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from attnviz.effects.patching import PatchEffects
from attnviz.figures.numbers import percent_text
from ui.words.extremes import places_of_largest


@dataclass(frozen=True, slots=True, kw_only=True)
class NoShares:
    """Why the difference between the two outcomes is not divided into shares."""

    reason: Literal["equal", "small", "unknown"]
    """The outcomes are equal up to rounding, too close compared with how far single states move them, or NaN."""
    base: float
    donor: float
    spread: float
    """Standard deviation of the outcomes with one patched state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestShare:
    """The state that moves the outcome most, towards the other sentence's outcome or away from it."""

    row: int
    column: int
    """A head if the map has heads across, otherwise a token."""
    share: float
    n_equal: int
    """Other states that move the outcome as far."""


def reads_last(effects: PatchEffects) -> bool:
    """Whether the outcome is read from the last row, so that a large share there is trivial."""
    return effects.carried == "layer" and len(effects.outcomes) > 1


def largest_share(effects: PatchEffects) -> LargestShare | NoShares:
    """The share with the largest magnitude, in all rows except one from which the outcome is read."""
    asked = slice(None, -1 if reads_last(effects) else None)
    places = places_of_largest(np.abs(effects.shares[asked]), percent_text)
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
