"""Which of some numbers are the largest: all of them where several are equal, none where none is a number.

One concept: an extreme without a silent choice among equals.
"""

import numpy as np

Place = tuple[int, ...]
"""Indices of a number, one for each axis."""


def places_of_largest(numbers: np.ndarray) -> tuple[Place, ...]:
    """Where the largest of the numbers is, in the order of the axes; numbers that are NaN do not count."""
    if not (~np.isnan(numbers)).any():
        return ()
    places = np.argwhere(numbers == np.nanmax(numbers))
    return tuple(tuple(int(index) for index in place) for place in places)


def equals(count: int, how: str = "large") -> str:
    """That others are as large as the one that is named: "", " (1 other is as large)", " (3 others are as large)"."""
    if not count:
        return ""
    return f" ({count:,} other{'s are' if count > 1 else ' is'} as {how})"
