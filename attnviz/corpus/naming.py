"""Names of heads, from their profile.

One concept: the names of a head. A name needs a number that is clearly large: the lower end of its interval is above the threshold.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attnviz.corpus.profile import Profile
from attnviz.heads.head_labels import NEAR
from attnviz.heads.probes import PROBES
from attnviz.records import Head, Kind

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
RELATIONS = {
    "acomp": "adjective after a verb",
    "advmod": "adverb",
    "agent": "by-phrase of a passive",
    "amod": "adjective of a noun",
    "attr": "noun after a form of be",
    "aux": "auxiliary",
    "auxpass": "auxiliary of a passive",
    "case": "preposition of a noun",
    "cc": "conjunction",
    "ccomp": "clause of a verb",
    "compound": "compound",
    "conj": "what is joined by a conjunction",
    "cop": "form of be",
    "dative": "indirect object",
    "det": "determiner",
    "dobj": "direct object",
    "iobj": "indirect object",
    "mark": "subordinating word",
    "neg": "negation",
    "nmod": "noun of a noun",
    "nsubj": "subject",
    "nsubjpass": "subject of a passive",
    "nummod": "number of a noun",
    "obj": "direct object",
    "obl": "noun of a verb",
    "pcomp": "complement of a preposition",
    "pobj": "object of a preposition",
    "poss": "possessive",
    "prep": "preposition",
    "prt": "particle of a verb",
    "punct": "punctuation mark",
    "relcl": "relative clause",
    "xcomp": "verb of a verb",
}
"""What the relations of spaCy's English pipelines and of Universal Dependencies are called; others keep their short names."""
FEWEST_WORDS = 20
"""Fewest words with a relation that can name a head."""


def relation_name(relation: str) -> str:
    """A relation in words with its short name, as in "direct object (dobj)"."""
    return f"{RELATIONS[relation]} ({relation})" if relation in RELATIONS else relation


def relation_words(relation: str, direction: str) -> str:
    """A relation in a direction, as in "direct object (dobj) attends to its parent"; the parent is the word that it depends on."""
    return f"{relation_name(relation)} {direction} its parent"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadName:
    """A name of a head, and the share that earned it."""

    called: str
    share: float
    low: float
    """Lower end of its interval, which is above `NEAR`; ``high`` is the upper end."""
    high: float
    is_relation: bool
    """Whether it is named after a grammatical relation."""


def names_of(profile: Profile, kind: Kind | None = None) -> dict[Head, tuple[HeadName, ...]]:
    """What each head is called: by its probes, by its statistics, and by the relations that it finds better than any fixed offset.

    A number that names a head has the lower end of its interval above `NEAR`. A first token that is [CLS] is called [CLS].
    """
    heads = profile.heads(kind)
    names: dict[Head, dict[str, HeadName]] = {head: {} for head in heads}
    for called, share, low, high, least, is_relation in _candidates(profile, heads[0], kind):
        for at in np.flatnonzero(low > least):
            names[heads[at]].setdefault(
                called,
                HeadName(
                    called=called,
                    share=float(share[at]),
                    low=float(low[at]),
                    high=float(high[at]),
                    is_relation=is_relation,
                ),
            )
    for of_head in names.values():
        if NAMES["cls"] in of_head:
            of_head.pop(NAMES["first"], None)
    return {head: tuple(of_head.values()) for head, of_head in names.items()}


_Numbers = Float[np.ndarray, " head"]


def _candidates(
    profile: Profile, first: Head, kind: Kind | None
) -> Iterator[tuple[str, _Numbers, _Numbers, _Numbers, float, bool]]:
    """Every name with each head's share, both ends of its interval, the lower end's threshold, and whether it is a relation's."""
    for name, called in [*((name, probe.called) for name, probe in PROBES.items()), *NAMES.items()]:
        share, low, high = (profile.numbers(f"{name}{end}", kind) for end in ("", "_low", "_high"))
        yield called, share, low, high, NEAR, False
    for relation in profile.relations(first, kind):
        if relation.words >= FEWEST_WORDS:
            share, low, high = profile.accuracies(relation.relation, relation.direction, kind)
            called = relation_words(relation.relation, relation.direction)
            yield called, share, low, high, max(relation.offset_accuracy, NEAR), True
