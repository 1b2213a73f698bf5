"""Names of heads, from their profile.

A name needs a number that is clearly large: the lower end of its interval is above the threshold.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attnviz.corpus.profile import Profile, Relation
from attnviz.corpus.relation_words import could_relate, linked_words
from attnviz.corpus.relations import DIRECTIONS
from attnviz.heads.frequent_words import is_english
from attnviz.heads.head_statistics import NEAR
from attnviz.heads.probes import PROBES
from attnviz.records import AttentionPattern, Axis, Head, Kind, bare

NAMES = {
    "previous": "previous token",
    "next": "next token",
    "self": "own token",
    "cls": "[CLS]",
    "sep": "[SEP]",
    "first": "first token",
    "punctuation": "punctuation",
    "same_token": "same token",
    "induction": "induction",
}
"""By statistic, the name of a head that puts more than `NEAR` of its weight there."""
FEWEST_WORDS = 20
"""Fewest words with a relation that can name a head."""


def relation_words(relation: str, direction: str) -> str:
    """A relation in a direction with its label, as in "links a preposition to its noun (pobj)"."""
    words, label = f"links {linked_words(relation, direction)}", f" ({relation})"
    return words.removesuffix(label) + label


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadName:
    """A name of a head, and the share that earned it."""

    called: str
    share: float
    low: float
    """Lower end of its interval, which is above `NEAR`; ``high`` is the upper end."""
    high: float
    relation: str = ""
    """The grammatical relation that it is named after, by its label; empty for another name."""
    direction: str = ""
    """One of `attnviz.corpus.relations.DIRECTIONS`; empty for another name."""
    position_alone: float = float("nan")
    """The share of the relation that the best fixed distance finds; NaN for another name."""


def names_of(profile: Profile, kind: Kind | None = None) -> dict[Head, tuple[HeadName, ...]]:
    """What each head is called: by its probes, by its statistics, and by the relations that it finds better than any fixed offset.

    A number that names a head has the lower end of its interval above `NEAR`. A first token that is [CLS] is called [CLS].
    """
    heads = profile.heads(kind)
    names: dict[Head, dict[str, HeadName]] = {head: {} for head in heads}
    for called, (share, low, high), relation in _candidates(profile, heads[0], kind):
        alone = float("nan") if relation is None else relation.offset_accuracy
        least = NEAR if relation is None else max(alone, NEAR)
        for at in np.flatnonzero(low > least):
            name = HeadName(
                called=called,
                share=float(share[at]),
                low=float(low[at]),
                high=float(high[at]),
                relation="" if relation is None else relation.relation,
                direction="" if relation is None else relation.direction,
                position_alone=alone,
            )
            names[heads[at]].setdefault(called, name)
    for of_head in names.values():
        if NAMES["cls"] in of_head:
            of_head.pop(NAMES["first"], None)
    return {head: tuple(of_head.values()) for head, of_head in names.items()}


_Numbers = Float[np.ndarray, " head"]


def _candidates(
    profile: Profile, first: Head, kind: Kind | None
) -> Iterator[tuple[str, tuple[_Numbers, _Numbers, _Numbers], Relation | None]]:
    """Every name with each head's share and both ends of its interval, and the relation, if it is a relation's."""
    for name, called in [*((name, probe.called) for name, probe in PROBES.items()), *NAMES.items()]:
        share, low, high = (profile.numbers(f"{name}{end}", kind) for end in ("", "_low", "_high"))
        yield called, (share, low, high), None
    for relation in profile.relations(first, kind):
        if relation.words >= FEWEST_WORDS:
            numbers = profile.accuracies(relation.relation, relation.direction, kind)
            yield f"links {linked_words(relation.relation, relation.direction)}", numbers, relation


STANDS_OUT = 2.0
"""A word stands out in a row if its weight is at least this multiple of the mean of the other words'."""


def is_done_here(name: HeadName, pattern: AttentionPattern, *, in_english: bool) -> bool:
    """Whether a head links two words of a text as its name says; true of another name, and of two texts.

    A text's grammar is not known. So it counts that some word's strongest other word stands out, as `STANDS_OUT` says, and that these
    two could be so related: that one is an English preposition, for a relation of prepositions. The text's special tokens and
    what has no letter are no words.

    Args:
        pattern: weights of the head on the text.
        in_english: whether the name was found in English texts.
    """
    if not name.relation or pattern.kind == "cross":
        return True
    axis = Axis.of(pattern.keys.tokens, "words")
    whole = pattern.arranged(axis, axis)
    labels = [bare(label) for label in axis.labels]
    is_word = ~axis.is_special & [any(map(str.isalpha, label)) for label in labels]
    words = np.flatnonzero(is_word)
    if in_english and not is_english(labels):
        return False
    cells = whole.weights if name.direction == DIRECTIONS[0] else whole.weights.T  # [dependent, parent]
    for dependent in words:
        others = words[words != dependent]
        if not len(others):
            return False
        row = cells[dependent, others]
        parent = others[row.argmax()]
        rest = np.delete(row, row.argmax())
        stands_out = row.max() > 0 and (not len(rest) or row.max() >= STANDS_OUT * rest.mean())
        could = not in_english or could_relate(name.relation, labels[dependent], labels[parent])
        if stands_out and could:
            return True
    return False
