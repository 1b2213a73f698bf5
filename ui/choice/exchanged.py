"""A sentence that differs from another by one word: the default that an experiment compares with.

One concept: the exchange. Words and their partners are one token each in most vocabularies, so positions stay the same.
"""

import re

_PAIRS = (
    *(("door", "window"), ("opened", "closed"), ("boats", "ships"), ("river", "street"), ("money", "house")),
    *(("capital", "king"), ("mayor", "king"), ("cat", "dog"), ("man", "woman"), ("men", "women")),
    *(("old", "new"), ("good", "bad"), ("first", "last"), ("he", "she"), ("his", "her"), ("they", "we")),
    *(("was", "is"), ("were", "are"), ("it", "he"), ("i", "you"), ("not", "now"), ("in", "on"), ("the", "a")),
)
_PARTNERS = {
    **{other: first for first, other in reversed(_PAIRS)},
    **{first: other for first, other in reversed(_PAIRS)},
}
_RANKS = {word: rank for rank, pair in enumerate(_PAIRS) for word in reversed(pair)}
_WORD = re.compile(r"[^\W\d_]+")


def exchanged(text: str) -> str:
    """The text with one word exchanged: the first match from a short list of pairs, or else the last word for "it"."""
    words = [match for match in _WORD.finditer(text)]
    known = [word for word in words if word.group().lower() in _PARTNERS]
    if known:
        pronoun = min(known, key=lambda match: _RANKS[match.group().lower()])
        other = _PARTNERS[pronoun.group().lower()]
    elif words:
        pronoun, other = words[-1], "it"
    else:
        return f"{text} it"
    other = other.capitalize() if pronoun.group()[0].isupper() and pronoun.group() != "I" else other
    return text[: pronoun.start()] + other + text[pronoun.end() :]
