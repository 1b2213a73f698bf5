"""Facts for the findings of the page Lens, before they are put into words."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attnviz.effects.lens import FollowedTokens, LayerSimilarities, Lens
from attnviz.effects.logit_attribution import DirectParts
from attnviz.figures.numbers import number_text
from attnviz.records import Head
from ui.words.extremes import places_of_largest

HALF = 0.5
"""Cosine from which a vector counts as similar to the last one: an angle of 60 degrees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """From which layer on the model's own answer is the most likely one."""

    answer: str
    probability: float
    """After the last layer."""
    layer: int
    """The layer from which on no token is likelier."""
    last: int


def settled(answers: Lens, at: int) -> Settled:
    """The answer at a token, and from which layer on it is the answer."""
    return Settled(
        answer=answers.answers[at],
        probability=float(answers.answer_probabilities[-1, at]),
        layer=int(answers.settled[at]),
        last=len(answers.answer_ranks) - 1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rise:
    """How similar a token's vectors are to its last one."""

    first: float
    """Cosine between the vector after layer 0 and the last one."""
    layer: int | None
    """The first layer after which the cosine is at least `HALF`; None if that is layer 0, or never happens."""
    is_last: bool
    """Whether that is the last layer, with whose vector all are compared."""


def rise(similarities: LayerSimilarities, at: int) -> Rise:
    """The similarity of a token's vectors with its last one."""
    similar = similarities.similarities[:, at]
    reached = np.flatnonzero(similar >= HALF)
    layer = int(reached[0]) if reached.size and reached[0] else None
    return Rise(first=float(similar[0]), layer=layer, is_last=layer == len(similar) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestPart:
    """The head with the largest direct effect, up or down."""

    head: Head
    n_equal: int
    """Other heads whose direct effect is as large."""
    adds: float


def largest_part(parts: DirectParts) -> LargestPart | None:
    """The head that adds or subtracts most; None if all are NaN."""
    places = places_of_largest(np.abs(parts.heads), number_text)
    if not places:
        return None
    head = Head(*places[0])
    return LargestPart(head=head, n_equal=len(places) - 1, adds=float(parts.heads[head]))


def strongest(adds: Float[np.ndarray, " part"], most: int) -> list[int]:
    """The parts that add or subtract most, largest first; ties in their order, without parts that add nothing."""
    order = np.argsort(-np.abs(adds), kind="stable")[:most].tolist()
    return [row for row in order if adds[row]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """From which layer on a chosen token is ahead."""

    ahead_from: int | None
    """The layer from which on its logit is larger than the other's; None if it is not in the end, or there is no other."""
    first_from: int | None
    """The layer from which on no token is likelier; None if one is in the end."""
    rank: int
    """Rank after the last layer, 1 for the most likely token."""
    last: int


def course(tokens: FollowedTokens) -> Course:
    """From which layer on the first chosen token is ahead of the second, and of all."""
    ahead = None if tokens.differences is None else _since(tokens.differences > 0)
    ranks = tokens.ranks[:, 0]
    return Course(ahead_from=ahead, first_from=_since(ranks == 1), rank=int(ranks[-1]), last=len(ranks) - 1)


def _since(holds: np.ndarray) -> int | None:
    """The first layer from which on a condition holds in every layer; None if it does not hold in the last."""
    fails = np.flatnonzero(~holds)
    first = int(fails[-1]) + 1 if fails.size else 0
    return first if first < len(holds) else None
