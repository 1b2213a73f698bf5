"""What the tokens that a search found have in common: the token, its part of speech, and what the head attends to there."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from attnviz.corpus.token_index import Nearest

Relation = Literal["itself", "previous", "next", "first", "token"]
"""Which token a head attends to: the same, the previous, the next, the first of the text, or a named one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attended:
    """What a head attends to most at some tokens."""

    relation: Relation
    token: str
    """The named token; empty for the other relations."""
    n: int
    """At how many of these tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFacts:
    """What the tokens that a search found have in common."""

    n: int
    n_same: int
    """How many are the token that was searched for."""
    other: tuple[str, int] | None
    """The most frequent other token and its count; None where there is none."""
    part: tuple[str, int] | None
    """The most frequent part of speech and its count; None where no token has one."""
    n_part: int
    """Tokens whose part of speech is known."""
    attended: Attended | None
    """What the head attends to most at most of the tokens; None where none was found."""
    lowest: float
    highest: float
    """Range of the similarities; 0 where none was found."""


def found_facts(token: str, nearest: Sequence[Nearest]) -> FoundFacts:
    """What the tokens that a search found have in common.

    Ties go to whichever comes first; of relations, in the order of `Relation`, but "token" before "first".

    Args:
        token: the label of the token that was searched for.
    """
    others = Counter(near.token for near in nearest if near.token != token)
    parts = Counter(near.part for near in nearest if near.part is not None)
    similarities = [near.similarity for near in nearest]
    return FoundFacts(
        n=len(nearest),
        n_same=sum(near.token == token for near in nearest),
        other=others.most_common(1)[0] if others else None,
        part=parts.most_common(1)[0] if parts else None,
        n_part=sum(parts.values()),
        attended=_attended(nearest),
        lowest=min(similarities, default=0.0),
        highest=max(similarities, default=0.0),
    )


def _attended(nearest: Sequence[Nearest]) -> Attended | None:
    counts: Counter[tuple[Relation, str]] = Counter()
    steps: dict[Relation, int] = {"itself": 0, "previous": -1, "next": 1}
    for relation, step in steps.items():
        counts[relation, ""] = sum(near.key == near.position + step for near in nearest)
    counts["first", ""] = sum(near.key == 0 for near in nearest)
    named = Counter(near.labels[near.key] for near in nearest)
    for label, n in named.items():
        counts["token", label] = n
    if not nearest:
        return None
    # a token that is always the first of its text, such as [CLS], is named
    order: dict[Relation, int] = {"itself": 0, "previous": 1, "next": 2, "token": 3, "first": 4}
    (most, token), n = max(counts.items(), key=lambda counted: (counted[1], -order[counted[0][0]]))
    return Attended(relation=most, token=token, n=n)
