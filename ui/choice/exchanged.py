"""A sentence that differs from another by one word: the default that an experiment compares with.

Words and their partners are one token each in most vocabularies, so positions stay the same; an exchange keeps the
sentence grammatical, or there is none.
"""

import re
from collections.abc import Sequence

from attnviz.heads.frequent_words import FOREIGN, is_english
from ui.choice.presets import DOOR_IT


def _pairs(written: str) -> dict[str, str]:
    return dict(pair.split(">") for pair in written.split())


_NOUNS = _pairs(
    "door>window opened>closed boats>ships river>street money>house window>door closed>opened ships>boats street>river house>garden "
    "cat>dog dog>cat cats>dogs dogs>cats girl>boy boy>girl mother>father father>mother brother>sister sister>brother"
)
"""Words whose exchange says most, in any text without a word of `FOREIGN`."""
_ENGLISH_ONLY = _pairs(
    "capital>king mayor>king man>woman woman>man men>women women>men old>new new>old good>bad bad>good first>last last>first he>she "
    "she>he him>her they>we we>they them>us us>them me>us his>her her>his their>our our>their my>our its>his i>we you>we this>that "
    "these>those those>these a>the an>the the>my"
)
"""Words that are exchanged only in a text that `is_english`: in other languages some of them are other words."""
_PARTNERS = _NOUNS | _ENGLISH_ONLY
_RANKS = {word: rank for rank, word in enumerate(_PARTNERS)}
_PERSONS = [
    set(forms.split()) for forms in ("i me my", "we us our", "he him his", "she her hers", "they them their")
]
_NAMES = {"he": "John", "him": "John", "she": "Mary"}
"""Stands where the partner would make two persons of the sentence one: "He saw her" is exchanged for "John saw her"."""
_AFTER_HER = frozenset(
    [
        "a",
        "about",
        "after",
        "again",
        "alone",
        "all",
        "an",
        "and",
        "as",
        "at",
        "away",
        "back",
        "because",
        "before",
        "but",
        "by",
        "down",
        "every",
        "for",
        "from",
        "here",
        "home",
        "in",
        "into",
        "last",
        "of",
        "off",
        "on",
        "or",
        "out",
        "over",
        "so",
        "some",
        "that",
        "the",
        "then",
        "there",
        "this",
        "to",
        "today",
        "up",
        "when",
        "where",
        "while",
        "who",
        "why",
        "with",
        "yesterday",
    ]
)
"""Words before which "her" is no possessive."""
_WORD = re.compile(r"[^\W\d_]+")


def other_sentence(text: str) -> str:
    """A sentence to compare a text with, of any length: the `exchanged` text, or else the bundled door sentence."""
    return exchanged(text) or DOOR_IT.text


def exchanged(text: str) -> str:
    """The text with one word exchanged for one of the same form; empty if no word of it has a partner."""
    words = list(_WORD.finditer(text))
    spelled = [word.group().casefold() for word in words]
    if not FOREIGN.isdisjoint(spelled):
        return ""
    partners = _PARTNERS if is_english(spelled) else _NOUNS
    for at in sorted(range(len(words)), key=lambda at: _RANKS.get(spelled[at], len(_RANKS))):
        if spelled[at] in partners and (other := _partner(text, words, spelled, at)) is not None:
            written, start = words[at].group(), words[at].start()
            if written.isupper() and len(written) > 1:
                other = other.upper()
            elif written[0].isupper() and (written != "I" or _begins(text, start)):
                other = other.capitalize()
            return text[:start] + other + text[words[at].end() :]
    return ""


def _partner(text: str, words: Sequence[re.Match[str]], spelled: Sequence[str], at: int) -> str | None:
    """What stands in place of a word; None where no partner fits."""
    word, other = spelled[at], _PARTNERS[spelled[at]]
    before, after = (spelled[place] if 0 <= place < len(words) else "" for place in (at - 1, at + 1))
    end = words[at + 1].start() if after else len(text)
    ends_phrase = not text[words[at].end() : end].isspace() or not after
    match word:
        case "i":
            if words[at].group() != "I" or after in ("am", "m", "ve", "ll", "d"):
                return None
            other = "she" if after == "was" else "we"
        case "you":
            if not _begins(text, words[at].start()) or after in ("re", "ve", "ll", "d"):
                return None
        case "her":
            other = "him" if ends_phrase or after in _AFTER_HER else "his"
        case "his" if ends_phrase:
            other = "hers"
    others = [*spelled[:at], *spelled[at + 1 :]]
    if any(other in person and not person.isdisjoint(others) for person in _PERSONS):
        return _NAMES.get(word)
    is_apart = before in ("a", "an") and (before == "an") != (other[0] in "aeiou")
    return None if is_apart else other


def _begins(text: str, start: int) -> bool:
    """Whether a sentence begins at a character."""
    before = text[:start].rstrip(" \t\n\"'“‘(")
    return not before or before[-1] in ".!?"
