"""The label of a token: its text as in the vocabulary, with the space that belongs to it, but never bytes as letters.

GPT-2's tokenizers write each byte of a text as a letter ("Ġ" for a space, "Ð¼" for "м"), SentencePiece a space as "▁";
both are read back here. Imports no torch.

Source: ``bytes_to_unicode`` of Radford et al. 2019's encoder.py, as in transformers 5.23.0; ``<0x0A>`` for a byte as in
SentencePiece (Kudo and Richardson 2018, arXiv:1808.06226).
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from attnviz.records import as_label

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

END_OF_WORD = "</w>"
"""Suffix of a token that ends a word (Sennrich et al. 2016, arXiv:1508.07909); a space follows it."""

BYTES = re.compile(r"(<0x[0-9A-F]{2}>)+")
"""In a label, bytes that form no whole character."""

PART = re.compile(r" \d+/\d+ ?")
"""In the label of a token that shares a character with others, its number among these; other labels write a space as "␣"."""

_PRINTED = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_BYTES = {chr(code): code for code in _PRINTED} | {
    chr(0x100 + number): code
    for number, code in enumerate(code for code in range(0x100) if code not in _PRINTED)
}
"""The byte that a letter of a byte-level vocabulary stands for; a printable byte is its own letter, others begin at U+0100."""

_WORD_START = "\N{LOWER ONE EIGHTH BLOCK}"
"""SentencePiece's space."""

_BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")


def labels_of(tokenizer: "PreTrainedTokenizerBase", ids: Sequence[int]) -> tuple[str, ...]:
    """The label of each token by itself; a token that is only a part of a character is shown as its bytes, "<0xF0>"."""
    return tuple(labels_in_text(tokenizer, [number])[0][0] for number in ids)


def labels_in_text(
    tokenizer: "PreTrainedTokenizerBase", ids: Sequence[int]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The label of each token of a text, and the piece that it adds to its word; see `attnviz.records.Tokens`.

    WordPiece tokens are shown as they are, "##" included. Tokens that share a character are shown with the
    character and their part of it: "é 1/2", "é 2/2". A token that is not in the vocabulary is shown by its id.
    """
    entries = [token or "" for token in tokenizer.convert_ids_to_tokens(list(ids))]
    if tokenizer.is_fast and type(tokenizer.backend_tokenizer.decoder).__name__ == "WordPiece":
        labels = tuple(map(as_label, entries))
        pieces = tuple(entry.removeprefix("##") for entry in entries)
    else:
        labels, pieces = _joined(_spelled(tokenizer, ids, entries))
    return tuple(label or f"id {number}" for label, number in zip(labels, ids, strict=True)), pieces


def _spelled(tokenizer: "PreTrainedTokenizerBase", ids: Sequence[int], entries: list[str]) -> list[bytes]:
    """The text of each token in UTF-8, which may end inside a character."""
    letters = _byte_letters(tokenizer)
    added = () if letters is None else tokenizer.added_tokens_decoder  # added tokens are written as they are
    spelled = []
    for number, entry in zip(ids, entries, strict=True):
        body, space = entry.removesuffix(END_OF_WORD), b" " * entry.endswith(END_OF_WORD)
        if letters is not None and number not in added and all(character in letters for character in body):
            spelled.append(bytes(letters[character] for character in body) + space)
        elif byte := _BYTE_TOKEN.fullmatch(entry):
            spelled.append(bytes.fromhex(byte[1]))
        else:
            marked = body if letters is not None else body.replace(_WORD_START, " ")
            spelled.append(marked.encode(errors="replace") + space)
    return spelled


def _byte_letters(tokenizer: "PreTrainedTokenizerBase") -> dict[str, int] | None:
    """The byte of each letter, where a tokenizer writes bytes as letters."""
    if tokenizer.is_fast:
        backend = tokenizer.backend_tokenizer
        parts = backend.decoder, backend.pre_tokenizer, backend.normalizer
        return _BYTES if any("ByteLevel(" in repr(part) for part in parts) else None
    if hasattr(tokenizer, "_utf_vocab_size"):  # ByT5 of transformers 5.23: byte n is character n
        return {chr(code): code for code in range(0x100)}
    return getattr(tokenizer, "byte_decoder", None)


def _joined(spelled: list[bytes]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Labels and pieces of tokens whose bytes follow each other: each character is decoded once, whole."""
    token_of = [number for number, letters in enumerate(spelled) for _ in letters]
    pieces, whole, begun, ended = ([""] * len(spelled) for _ in range(4))
    at = 0
    for character in b"".join(spelled).decode("utf-8", "surrogateescape"):
        of_character = character.encode("utf-8", "surrogateescape")
        tokens = list(dict.fromkeys(token_of[at : at + len(of_character)]))
        at += len(of_character)
        if "\udc80" <= character <= "\udcff":  # a byte that belongs to no whole character
            character = f"<0x{of_character[0]:02X}>"
        pieces[tokens[-1]] += character
        if len(tokens) == 1:
            whole[tokens[0]] += character
        for part, token in enumerate(tokens if len(tokens) > 1 else (), 1):
            side = begun if part == 1 else ended
            side[token] = f"{as_label(character)} {part}/{len(tokens)}"
    labels = (
        " ".join(filter(None, [end, as_label(middle) + begin]))
        for end, middle, begin in zip(ended, whole, begun, strict=True)
    )
    return tuple(labels), tuple(pieces)
