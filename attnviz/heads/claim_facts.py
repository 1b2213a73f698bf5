"""Whether each measured claim holds on a text, and the numbers behind that.

numpy only.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool

from attnviz.heads.claims import Claims
from attnviz.records import known

Standing = Literal["holds", "half true", "does not hold"]

ALIKE, APART = 0.05, 0.3
"""Asymmetry up to which the two halves of a matrix count as the same, and from which they count as different."""
DIFFERING = 0.1
"""Two orders of a head's keys agree if fewer than this share of its queries have another strongest key."""
CORRELATED = 0.9
"""Two orders of a head's keys agree if their mean rank correlation is larger than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Showing:
    """How many heads show a claim."""

    n_showing: int
    n_heads: int

    @property
    def standing(self) -> Standing:
        """A claim holds where at least two heads in three show it, and does not where at most one in three does."""
        if 3 * self.n_showing >= 2 * self.n_heads:
            return "holds"
        return "does not hold" if 3 * self.n_showing <= self.n_heads else "half true"


@dataclass(frozen=True, slots=True, kw_only=True)
class Symmetry:
    """Whether the attention matrix is symmetric."""

    heads: Showing
    """Heads with an asymmetry of at most `ALIKE`."""
    n_far: int
    """Heads with an asymmetry of at least `APART`."""
    median: float
    scores: float | None
    """Median asymmetry of the scores; None where no two tokens may see each other, as under a causal mask."""
    tied: float | None
    """Median asymmetry of the weights, were queries and keys the same vectors; None as for ``scores``."""


def symmetry(claims: Claims) -> Symmetry:
    """Whether matrices are symmetric; heads without a number (NaN) are left out of the medians."""
    asymmetry = claims.weight_asymmetry
    is_mutual = bool(np.isfinite(claims.score_asymmetry).any())
    return Symmetry(
        heads=_showing(asymmetry <= ALIKE, claims),
        n_far=int((asymmetry >= APART).sum()),
        median=float(np.nanmedian(asymmetry)),
        scores=float(np.nanmedian(claims.score_asymmetry)) if is_mutual else None,
        tied=float(np.nanmedian(claims.tied_asymmetry)) if is_mutual else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagonal:
    """Whether tokens attend to themselves most; the shares of queries are means over the heads, and sum to 1."""

    heads: Showing
    """Heads where more than half of the queries give their own token the largest weight."""
    own: float
    special: float | None
    """A special token, not the query's own; None where the text has none."""
    first: float | None
    """The first token of a decoder's text, unless it is the query's own; None where it is special, and for encoders."""
    neighbour: float
    """The token before or after, unless it is one of those above."""
    other: float


def diagonal(claims: Claims, *, has_special: bool, rests_on_first: bool) -> Diagonal:
    """Whether heads attend to the diagonal.

    Args:
        has_special: whether any key is a special token.
        rests_on_first: whether the text is a decoder's and its first token is not special.
    """
    own, special, first, neighbour = (
        float(known(shares).mean(dtype=np.float64))
        for shares in (claims.on_itself, claims.on_special, claims.on_first, claims.on_neighbour)
    )
    return Diagonal(
        heads=_showing(claims.on_itself > 0.5, claims),
        own=own,
        special=special if has_special else None,
        first=first if rests_on_first else None,
        neighbour=neighbour,
        other=max(0.0, 1 - own - special - first - neighbour),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """Whether every cell is filled, which every cell decides, not most heads."""

    masked: float
    """Share of all cells that a mask hides."""
    rounded: float
    """Share of the other cells whose weight float32 rounds to 0."""
    median: float
    """Smallest share of these cells that holds `attnviz.heads.claims.MOST_WEIGHT` of the weight, in the median head."""
    least: float
    """The same in the most concentrated head."""

    @property
    def is_full(self) -> bool:
        """Whether every cell of every head has a weight above 0."""
        return not self.masked and not self.rounded


def filling(claims: Claims) -> Filling:
    """Whether cells are filled."""
    seen, positive = (known(table).astype(np.float64) for table in (claims.seen, claims.positive))
    return Filling(
        masked=float(1 - seen.mean()),
        rounded=float(1 - (seen * positive).sum() / seen.sum()),
        median=float(np.nanmedian(claims.cells_for_most)),
        least=float(np.nanmin(claims.cells_for_most)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """Whether a larger weight means that a key adds more to the output, by norm-based weight."""

    heads: Showing
    """Heads where fewer than `DIFFERING` of the queries have another strongest key, and the two orders correlate by more
    than `CORRELATED`."""
    differing: float
    """Share of the queries whose strongest key by weight is not the strongest by norm, mean over the heads."""
    correlation: float
    """Rank correlation of weights and norm-based weights in a row, mean over queries and heads."""


def contribution(claims: Claims) -> Contribution | None:
    """What weights say about contributions; None where W_O is not known."""
    if claims.other_strongest is None or claims.rank_agreement is None:
        return None
    agree = (claims.other_strongest < DIFFERING) & (claims.rank_agreement > CORRELATED)
    return Contribution(
        heads=_showing(agree, claims),
        differing=float(known(claims.other_strongest).mean(dtype=np.float64)),
        correlation=float(known(claims.rank_agreement).mean(dtype=np.float64)),
    )


def _showing(shows: Bool[np.ndarray, "layer head"], claims: Claims) -> Showing:
    """The count of heads that show a claim; places without a head, in layers with fewer, are left out."""
    return Showing(n_showing=int(shows.sum()), n_heads=known(claims.positive).size)
