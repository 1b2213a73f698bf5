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
FEWEST_WORDS = 20
"""Words of a relation that a name needs."""


def names_of(profile: Profile, head: Head, kind: Kind | None = None) -> tuple[str, ...]:
    """What a head is called: by its probes, by its statistics, and by the relations that it finds better than any fixed offset."""
    at = profile.heads(kind).index(head)
    found = [
        f"{one.called} (random tokens)"
        for name, one in PROBES.items()
        if profile.numbers(f"{name}_low", kind)[at] > NEAR
    ]
    found += [called for name, called in NAMES.items() if profile.numbers(f"{name}_low", kind)[at] > NEAR]
    found += [
        f"{one.relation} ({one.direction})"
        for one in profile.relations(head, kind)
        if one.words >= FEWEST_WORDS and one.low > max(one.offset_accuracy, NEAR)
    ]
    return tuple(dict.fromkeys(found))
