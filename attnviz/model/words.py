"""Which tokens make a word: as the tokenizer splits a text, but never between a letter and its marks.

Imports no torch.

Source: Unicode Standard Annex 29, section 4: rule WB4, marks and joiners belong to the character before them; WB5, letters
stay together; and which scripts no rule splits. Blocks are those of Unicode 16.0.
"""

import re
import unicodedata
from itertools import pairwise

import numpy as np
from jaxtyping import Int

from attnviz.model.token_spans import Reading, Span
from attnviz.records import Tokens
from attnviz.records.glyphs import JOINERS

_SPACELESS = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    r"\uff66-\uff9f\U00020000-\U0003fffd]"
)
"""Thai, Lao, Burmese, Khmer, kana and Han, which put no spaces between words, so that no rule tells where one ends."""


_UNFINISHED = re.compile(r" (\d+)/(\d+)$")
"""The end of a label whose token ends inside a character, or with the last part of one; see `attnviz.model.token_labels.PART`."""


def has_words(*texts: Tokens | None) -> bool:
    """Whether the word of any token in these texts is known."""
    return any(bool((text.word >= 0).any()) for text in texts if text is not None)


def words_of(read: Reading, texts: tuple[str, ...], labels: tuple[str, ...]) -> Int[np.ndarray, " token"]:
    """For each token the number of its word in its text; -1 where the word is not known.

    Words end at whitespace (Llama 2's tokenizer takes a whole text as one word), and where the tokenizer's own words end,
    but not before a combining mark or joiner, nor between one and the next letter: GPT-2's tokenizer splits there. Where no rule
    tells words, the tokens of one character are a word, and other tokens of none.

    Args:
        labels: of the tokens, which tell those that share a character.
    """
    groups: list[list[int]] = []
    own_start = -1  # position at which the tokenizer's own word starts
    for position, (which, own) in enumerate(zip(read.text, read.words, strict=True)):
        if which < 0 or own is None:
            continue
        before = position - 1
        follows = bool(groups) and groups[-1][-1] == before and read.text[before] == which
        is_own = follows and read.words[before] == own
        own_start = own_start if is_own else position
        text, spans = texts[which], read.spans
        if follows and _goes_on(text, spans[before], spans[position], spans[own_start], is_own=is_own):
            groups[-1].append(position)
        else:
            groups.append([position])
    words = np.full(len(read.ids), -1, dtype=np.int64)
    n_words = [0] * len(texts)
    for group in groups:
        which = int(read.text[group[0]])
        written = texts[which][read.spans[group[0]][0] : read.spans[group[-1]][1]]
        if len(group) == 1 or (written and not _SPACELESS.search(written)):
            parts = [group]
        else:
            parts = [part for part in _characters(texts[which], read.spans, labels, group) if len(part) > 1]
        for part in parts:
            words[part] = n_words[which]
            n_words[which] += 1
    return words


def _characters(text: str, spans: list[Span], labels: tuple[str, ...], group: list[int]) -> list[list[int]]:
    """The tokens of a group by the character, with its marks, that they belong to; a token of several is with the first."""
    parts = [group[:1]]
    for before, position in pairwise(group):
        is_begun = (number := _UNFINISHED.search(labels[before])) is not None and number[1] != number[2]
        is_joined = text[: spans[before][1]].endswith(tuple(JOINERS)) or _extends(
            text[slice(*spans[position])][:1]
        )
        if is_begun or is_joined:
            parts[-1].append(position)
        else:
            parts.append([position])
    return parts


def _goes_on(text: str, left: Span, right: Span, own: Span, *, is_own: bool) -> bool:
    """Whether two neighbouring tokens belong to one word, given their spans in the text."""
    if _is_apart(text, left, right):
        return False
    first = text[slice(*right)][:1]
    if _extends(first):
        return True
    end = left[1]
    while end > left[0] and _extends(text[end - 1]):
        end -= 1
    if end == left[1]:
        return is_own
    # After marks the tokenizer's own word says nothing: it may hold them alone, or with the next full stop.
    return (_base(text, end).isalpha() and first.isalpha()) or (
        is_own and not _extends(text[slice(*own)][:1])
    )


def _base(text: str, end: int) -> str:
    """The character that the marks after it belong to; "" at the beginning of the text."""
    while end > 0 and _extends(text[end - 1]):
        end -= 1
    return text[end - 1 : end]


def _extends(character: str) -> bool:
    """Whether a character belongs to the one before it: a combining mark (Mn, Mc, Me) or a joiner."""
    return bool(character) and (unicodedata.category(character)[0] == "M" or character in JOINERS)


def _is_apart(text: str, left: Span, right: Span) -> bool:
    """Whether there is whitespace between two neighbouring tokens, given their spans in the text."""
    first, between, second = text[slice(*left)], text[left[1] : right[0]], text[slice(*right)]
    if any(map(str.isspace, between)) or second[:1].isspace():
        return True
    return first[-1:].isspace() and not first.isspace()  # a single space belongs to the token that follows
