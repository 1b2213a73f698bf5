"""A tokenizer's reading of a text: ids, each token's text and its place there, and the tokenizer's own words.

Tokenizers with a tokenizer.json report all of this; those written in Python report only the ids, so that places are
found by searching for each token's text. Imports no torch.
"""

import html
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from attnviz.model.token_labels import END_OF_WORD, labels_in_text

if TYPE_CHECKING:
    from transformers import BatchEncoding, PreTrainedTokenizerBase

Span = tuple[int, int]
"""Characters of a text that a token stands for, [first, after the last)."""

_REACH = 256
"""Characters that are searched for a token's text after tokens that stand for other text, such as unknown ones."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reading:
    """What a tokenizer reports for each token."""

    ids: list[int]
    text: Int[np.ndarray, " token"]
    """Number of the text that each token comes from; -1 for special tokens that the tokenizer added."""
    spans: list[Span]
    """Its characters in that text, including those that it has only a part of; (0, 0) where it has none."""
    words: list[int | None]
    """Number of the tokenizer's own word; None where it has none."""


def read_texts(
    tokenizer: "PreTrainedTokenizerBase",
    texts: tuple[str, ...],
    *,
    is_target: bool = False,
    max_tokens: int | None = None,
    add_special_tokens: bool = True,
) -> Reading:
    """The reading of a text or of a pair.

    Args:
        is_target: read a single text as ``text_target``, as a decoder writes it.
        max_tokens: most tokens, special ones included; the longer text is cut at its end. None for no limit.
        add_special_tokens: False for a text that has all its special tokens already.
    """
    encoding = encode(
        tokenizer, texts, is_target=is_target, max_tokens=max_tokens, add_special_tokens=add_special_tokens
    )
    ids, is_added = list(encoding["input_ids"]), np.array(encoding["special_tokens_mask"], dtype=bool)
    if tokenizer.is_fast:
        of_text = np.array(
            [-1 if sequence_id is None else sequence_id for sequence_id in encoding.sequence_ids()],
            dtype=np.int64,
        )
        return Reading(
            ids=ids,
            text=np.where(is_added, -1, of_text),
            spans=list(encoding[0].offsets),
            words=encoding.word_ids(),
        )
    of_text = np.where(is_added, -1, 0) if len(texts) == 1 else _segments(tokenizer, texts, max_tokens)
    return _aligned(tokenizer, ids, of_text, texts)


def encode(
    tokenizer: "PreTrainedTokenizerBase",
    texts: tuple[str, ...],
    *,
    is_target: bool = False,
    max_tokens: int | None = None,
    add_special_tokens: bool = True,
) -> "BatchEncoding":
    """The tokenizer's own encoding of a text or of a pair, with its special tokens marked; arguments as `read_texts`."""
    given: dict[str, Any] = (
        {"text_target": texts[0]} if is_target else dict(zip(("text", "text_pair"), texts, strict=False))
    )
    cut: dict[str, Any] = {"truncation": False} if max_tokens is None else _cut(max_tokens)
    encoding: BatchEncoding = tokenizer(
        **given,
        add_special_tokens=add_special_tokens,
        return_special_tokens_mask=True,
        verbose=False,
        **cut,
    )
    return encoding


def _cut(max_tokens: int) -> dict[str, Any]:
    return {"truncation": "longest_first", "max_length": max_tokens}


def _segments(
    tokenizer: "PreTrainedTokenizerBase", texts: tuple[str, ...], max_tokens: int | None
) -> Int[np.ndarray, " token"]:
    """For each token of a pair the number of its text; -1 for special tokens.

    The tokenizer joins as many -1 and -2 as the texts have tokens in the same way as it joins the texts.
    """
    lengths = [len(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]) for text in texts]
    cut: dict[str, Any] = {} if max_tokens is None else _cut(max_tokens)
    marked = [[-1 - number] * length for number, length in enumerate(lengths)]
    joined = np.array(tokenizer.prepare_for_model(*marked, **cut)["input_ids"], dtype=np.int64)
    return np.where(joined < 0, -1 - joined, -1)


def _aligned(
    tokenizer: "PreTrainedTokenizerBase", ids: list[int], of_text: np.ndarray, texts: tuple[str, ...]
) -> Reading:
    spans: list[Span] = [(0, 0)] * len(ids)
    words: list[int | None] = [None] * len(ids)
    pieces = labels_in_text(tokenizer, ids)[1]
    entries = tokenizer.convert_ids_to_tokens(ids)
    for number, text in enumerate(texts):
        word = 0
        positions = np.flatnonzero(of_text == number).tolist()
        for position, span in zip(
            positions, align([pieces[position] for position in positions], text), strict=True
        ):
            spans[position], words[position] = span or (0, 0), None if span is None else word
            word += str(entries[position]).endswith(END_OF_WORD)
    return Reading(ids=ids, text=of_text, spans=spans, words=words)


def align(pieces: list[str], text: str) -> list[Span | None]:
    """Where each piece stands in a text, in order; None for a piece that is not found before the next piece.

    Case, whitespace and compatibility forms are ignored, and HTML entities, which Moses' tokenizers write, are decoded (BioGPT).
    Pieces that are not found, such as unknown tokens, get the characters up to the next piece that is.
    """
    folded = [
        (folded_character, at) for at, character in enumerate(text) for folded_character in _folded(character)
    ]
    whole, places = "".join(character for character, _ in folded), [at for _, at in folded] + [len(text)]
    spans: list[Span | None] = [None] * len(pieces)
    cursor = 0
    lost: list[int] = []
    for number, piece in enumerate(pieces):
        wanted = _folded(html.unescape(piece))
        start = whole.find(wanted, cursor, cursor + len(wanted) + (_REACH if lost else 0))
        if not wanted:  # a space, or a piece that ends inside a character
            spans[number] = (places[cursor], places[cursor])
        elif start < 0:
            lost.append(number)
        else:
            _fill(spans, lost, places[cursor:start])
            cursor, lost = start + len(wanted), []
            spans[number] = (places[start], places[cursor - 1] + 1)
    _fill(spans, lost, places[cursor:-1])
    return spans


def _fill(spans: list[Span | None], lost: list[int], places: list[int]) -> None:
    """Gives tokens that were not found the characters between their neighbours, if there are any."""
    for number in lost if places else ():
        spans[number] = (places[0], places[-1] + 1)


def _folded(text: str) -> str:
    """Text by which a piece is recognised: decomposed (NFKD), without case and whitespace."""
    return "".join(
        character for character in unicodedata.normalize("NFKD", text).casefold() if not character.isspace()
    )
