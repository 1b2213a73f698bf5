"""Finds the largest of some numbers: all if several are equal, none if all are NaN.

One concept: a maximum without an arbitrary choice among ties.
"""

import numpy as np

Place = tuple[int, ...]
"""Indices of a number, one per axis."""


def places_of_largest(numbers: np.ndarray) -> tuple[Place, ...]:
    """Indices of the largest numbers, in the order of the axes; NaN is ignored."""
    if not (~np.isnan(numbers)).any():
        return ()
    places = np.argwhere(numbers == np.nanmax(numbers))
    return tuple(tuple(int(index) for index in place) for place in places)


def equals(count: int, how: str = "large") -> str:
    """A note on ties with the named number: "", " (1 other is as large)", " (3 others are as large)"."""
    if not count:
        return ""
    return f" ({count:,} other{'s are' if count > 1 else ' is'} as {how})"
