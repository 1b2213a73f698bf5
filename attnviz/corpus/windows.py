"""A long text in windows that a model can read, none of which ends inside a sentence.

A sentence longer than a window is split between words, a word longer than a window between characters.
"""

import re
from collections.abc import Callable

from attnviz.model.tokenization import CHARACTER_LIMIT

_SENTENCE = re.compile(r".+?(?:[.!?…。！？]+[\"'”’»)\]]*(?:\s+|$)|\n+|$)", re.DOTALL)
_WORD = re.compile(r"\s*\S+\s*")


def windows(text: str, n_tokens: Callable[[str], int], most_tokens: int) -> list[str]:
    """The windows of a text in its order; together they are the text but for space at their edges.

    Args:
        n_tokens: number of tokens of a text, special tokens included.
        most_tokens: of a window.

    >>> windows("One two. Three four? Five.", lambda text: len(text.split()), 3)
    ['One two.', 'Three four? Five.']
    >>> windows("One two. Three four? Five.", lambda text: len(text.split()), 2)
    ['One two.', 'Three four?', 'Five.']
    """
    if _fits(text, n_tokens, most_tokens):
        return [text]
    packed: list[str] = []
    for part in _parts(text, n_tokens, most_tokens):
        if packed and _fits(packed[-1] + part, n_tokens, most_tokens):
            packed[-1] += part
        else:
            packed.append(part)
    return [part.strip() for part in packed if part.strip()]


def _fits(text: str, n_tokens: Callable[[str], int], most_tokens: int) -> bool:
    return len(text) <= CHARACTER_LIMIT and n_tokens(text) <= most_tokens


def _parts(text: str, n_tokens: Callable[[str], int], most_tokens: int) -> list[str]:
    """The sentences; one that does not fit is replaced by its words, and such a word by its halves."""
    parts: list[str] = []
    for sentence in _SENTENCE.findall(text):
        if _fits(sentence, n_tokens, most_tokens):
            parts.append(sentence)
            continue
        for word in _WORD.findall(sentence):
            parts += _halves(word, n_tokens, most_tokens)
    return parts


def _halves(word: str, n_tokens: Callable[[str], int], most_tokens: int) -> list[str]:
    if len(word) < 2 or _fits(word, n_tokens, most_tokens):
        return [word]
    middle = len(word) // 2
    return _halves(word[:middle], n_tokens, most_tokens) + _halves(word[middle:], n_tokens, most_tokens)
