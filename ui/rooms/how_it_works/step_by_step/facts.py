"""Facts for the sentences of the page Step by step, before they are put into words."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from attnviz.figures.numbers import number_text
from ui.words.extremes import places_of_largest

MOST_KEYS = 12
"""Most keys in the table of a row; for a longer text, the strongest."""
TOLERANCE = 1e-4
"""Largest difference from the model's numbers, as a share of the largest of them, that counts as a match: the verdict's
tolerance for hidden states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The page's own results compared with the model's numbers."""

    difference: float
    """Largest difference."""
    matches: bool


def comparison(numbers: np.ndarray, expected: np.ndarray) -> Comparison:
    """The largest difference, and whether it is within `TOLERANCE`; NaN does not match."""
    difference = float(np.abs(numbers.astype(np.float64) - expected).max(initial=0.0))
    largest = float(np.abs(expected).max(initial=0.0))
    return Comparison(difference=difference, matches=difference <= TOLERANCE * max(largest, 1e-12))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowEnds:
    """The highest and the lowest score of a row, among the keys that the query may see."""

    highest: int
    n_as_high: int
    """Other keys with the same score."""
    lowest: int
    n_as_low: int


def row_ends(row: Float[np.ndarray, " key"]) -> RowEnds | None:
    """Highest and lowest finite score of a row; None if the query may see no key."""
    seen = np.where(np.isfinite(row), row, np.nan)
    highest, lowest = (places_of_largest(side, number_text) for side in (seen, -seen))
    if not highest:
        return None
    return RowEnds(
        highest=highest[0][0],
        n_as_high=len(highest) - 1,
        lowest=lowest[0][0],
        n_as_low=len(lowest) - 1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The keys of a row that are listed, in the order of the text."""

    positions: tuple[int, ...]
    n_others: int
    others_weight: float
    """Weight of the keys that are not listed."""
    are_strongest: bool
    """Whether these are the strongest keys; not if the selected key replaces a stronger one."""


def listed_keys(weights: Float[np.ndarray, " key"], key: int) -> Listed:
    """All keys of a short row, or the `MOST_KEYS` strongest, always with the selected one; earlier ones first if tied."""
    order = [int(key) for key in np.argsort(-weights, kind="stable")[:MOST_KEYS]]
    if key not in order:
        order[-1] = key
    others = np.delete(weights, order)
    return Listed(
        positions=tuple(sorted(order)),
        n_others=len(others),
        others_weight=float(others.sum(dtype=np.float64)),
        are_strongest=not others.size or bool(weights[order].min() >= others.max()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadLengths:
    """Lengths of the vectors that a layer's heads add, and the selected head's rank."""

    longest: int
    n_as_long: int
    """Other heads with a vector as long."""
    length: float
    """Length of the longest vector."""
    own: float
    """Length of the selected head's vector."""
    rank: int
    """The selected head's rank: 1 if no other head adds a longer vector."""
    n_head: int


def head_lengths(parts: Float[np.ndarray, "head d_model"], head: int) -> HeadLengths:
    """The lengths of what each head adds to one token."""
    lengths = np.linalg.norm(parts, axis=1)
    longest = places_of_largest(lengths, number_text) or ((head,),)
    return HeadLengths(
        longest=longest[0][0],
        n_as_long=len(longest) - 1,
        length=float(lengths[longest[0][0]]),
        own=float(lengths[head]),
        rank=int((lengths > lengths[head]).sum()) + 1,
        n_head=len(lengths),
    )


def strongest_dimensions(
    products: Float[np.ndarray, " d_head"], count: int = 3
) -> Int[np.ndarray, " strongest"]:
    """The dimensions with the largest products by magnitude, largest first; earlier ones first if tied."""
    return np.argsort(-np.abs(products), kind="stable")[:count]
