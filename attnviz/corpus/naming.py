"""What a head is called after its profile.

One concept: the names of a head. A name stands for a number that is large beyond doubt: the lower end of its interval is above
the threshold.
"""

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
"""By statistic, what a head is called that gives more than `NEAR` of its weight there."""
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
"""Words of a relation that a name needs."""


def relation_name(relation: str) -> str:
    """A relation in words with its short name, as in "direct object (dobj)"."""
    return f"{RELATIONS[relation]} ({relation})" if relation in RELATIONS else relation


def names_of(profile: Profile, head: Head, kind: Kind | None = None) -> tuple[str, ...]:
    """What a head is called: by its probes, by its statistics, and by the relations that it finds better than any fixed offset."""
    at = profile.heads(kind).index(head)
    found = [one.called for name, one in PROBES.items() if profile.numbers(f"{name}_low", kind)[at] > NEAR]
    found += [called for name, called in NAMES.items() if profile.numbers(f"{name}_low", kind)[at] > NEAR]
    if NAMES["cls"] in found:  # which is the first token
        found = [one for one in found if one != NAMES["first"]]
    found += [
        f"{relation_name(one.relation)}, {one.direction}"
        for one in profile.relations(head, kind)
        if one.words >= FEWEST_WORDS and one.low > max(one.offset_accuracy, NEAR)
    ]
    return tuple(dict.fromkeys(found))
