"""Finds the largest of some numbers: all if several are equal, none if all are NaN."""

import numpy as np

from attnviz.heads.facts import Written, alike

Place = tuple[int, ...]
"""Indices of a number, one per axis."""


def places_of_largest(numbers: np.ndarray, written: Written = repr) -> tuple[Place, ...]:
    """Indices of the largest number and of those that are written like it, the largest first; NaN is ignored."""
    if not (~np.isnan(numbers)).any():
        return ()
    largest = np.nanmax(numbers)
    places = np.argwhere(alike(numbers, largest, written)).tolist()
    return tuple(sorted(map(tuple, places), key=lambda place: -numbers[place]))


def equals(count: int, how: str = "large") -> str:
    """A note on ties with the named number: "", " (1 other is as large)", " (3 others are as large)"."""
    if not count:
        return ""
    return f" ({count:,} other{'s are' if count > 1 else ' is'} as {how})"
