"""A text as a model reads it, and the tokens or words that are the rows and columns of a matrix."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
from jaxtyping import Bool, Float, Int

from attnviz.records.glyphs import SPACE, as_label
from attnviz.records.record import Record

LONG = 1024
"""Tokens; the matrices of a longer text are read some rows at a time, and never held whole."""
Unit = Literal["tokens", "words"]
"""Unit of a row or column."""

Template = Literal["plain", "begin", "chat"]
"""What is put around a text besides what its tokenizer adds to every text: ``plain``, nothing; ``begin``, the begin-of-text token;
``chat``, the chat template, which makes it a user's message and begins the answer."""
TEMPLATES: tuple[Template, ...] = get_args(Template)

TextForm = Literal[Template, "messages", "ids"]
"""How tokens came from their text: in a template; ``messages``, the text is a chat as its template wrote it; ``ids``, the ids were
given, and the text is what they decode to."""


_SPECIAL = re.compile(r"\[[A-Z]+\]|<[^<>\s]+>")
"""How vocabularies write special tokens: BERT's "[CLS]", RoBERTa's "<s>", GPT-2's "<|endoftext|>"."""


@dataclass(frozen=True, kw_only=True, eq=False)  # without slots, for what is computed once
class Tokens(Record):
    """A text as a model reads it: one entry per token, special tokens included."""

    text: str
    text_pair: str | None = None
    ids: Int[np.ndarray, " token"]
    labels: tuple[str, ...]
    """The label of each token, literally: ``"##ing"``, ``"[CLS]"``, ``"␣door"`` where a space belongs to it, and
    ``"é 1/2"``, ``"é 2/2"`` where two tokens share a character."""
    pieces: tuple[str, ...] = ()
    """What each token adds to the text of its word: ``"ing"`` for ``"##ing"``, ``" door"``; nothing where it ends inside a
    character. If empty, the labels without "##"."""
    is_special: Bool[np.ndarray, " token"]
    """True for special tokens: those that are added around the text, such as [CLS] and [SEP], and those that are written in it or by a
    chat template, such as <|im_start|>. A mask token is not special, nor is an unknown token that stands for a piece of text."""
    segment: Int[np.ndarray, " token"]
    """0 for the first text and 1 for the second."""
    word: Int[np.ndarray, " token"]
    """Number of each token's word within its text; -1 for special tokens."""
    template: TextForm = "plain"
    """What was put around the text, or whether it is more than a text."""
    in_text: tuple[int, ...] = ()
    """Positions of special tokens written in the text or by a chat template, which the tokenizer did not add."""
    language: str | None = None
    """The language that the tokenizer was given, such as "fr_XX"; None where it takes none."""
    unknown: tuple[int, ...] = ()
    """Positions of the unknown token where it stands for a piece of text that the vocabulary has no entry for."""
    n_cut: tuple[int, ...] = (0,)
    """Number of tokens left out at the end of each text because of the limit."""
    n_unread: tuple[int, ...] = (0,)
    """Number of characters that were given after the end of ``text`` and ``text_pair``, and never split into tokens."""
    pictures: tuple[bytes, ...] = ()
    """What each token looks like, as PNG, where tokens are patches of an image; empty for text."""
    masked: Mapping[int, str] = field(default_factory=dict)
    """Positions whose token was replaced by the model's mask token, with the original label."""

    def __post_init__(self) -> None:
        Record.__post_init__(self)
        object.__setattr__(self, "masked", MappingProxyType(dict(self.masked)))
        n_token = len(self.ids)
        for name in ("labels", "pieces", "pictures", "is_special", "segment", "word"):
            length = len(getattr(self, name))
            if length != n_token and (name, length) not in (("pieces", 0), ("pictures", 0)):
                raise self._unfit(f"{n_token} ids, but {length} entries in {name}")
        for name in ("in_text", "unknown", "masked"):
            beyond = [position for position in getattr(self, name) if not 0 <= position < n_token]
            if beyond:
                raise self._unfit(f"{name} names token {beyond[0]} of {n_token} tokens")

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def from_labels(cls, labels: Sequence[str]) -> "Tokens":
        """Tokens of which only the labels are known, as a tokenizer's ``convert_ids_to_tokens`` gives them.

        What begins with "Ġ" or "▁" begins with a space; what is written as "[CLS]" or "<s>" is a special token.
        """
        shown = tuple(as_label(label.replace("\u0120", " ").replace("\u2581", " ")) for label in labels)
        special = np.array([_SPECIAL.fullmatch(label) is not None for label in labels], dtype=bool)
        numbers = {label: -1 - number for number, label in enumerate(dict.fromkeys(shown))}
        return cls(
            text=" ".join(
                label.replace(SPACE, "")
                for label, is_special in zip(shown, special, strict=True)
                if not is_special
            ),
            ids=np.array([numbers[label] for label in shown], dtype=np.int64),  # below 0: of no vocabulary
            labels=shown,
            is_special=special,
            segment=np.zeros(len(shown), dtype=np.int64),
            word=words_of_labels(shown, special),
            template="ids",
        )

    @cached_property
    def axes(self) -> "dict[Unit, Axis]":
        """What `Axis.of` has made of these tokens, which every matrix of a text shares."""
        return {}

    def equal(self, other: "Tokens") -> bool:
        """Whether another record holds the same tokens, as after reading the same text a second time."""
        if self is other:
            return True
        arrays = ("ids", "is_special", "segment", "word")
        same_text = (self.labels, self.language, self.template) == (
            other.labels,
            other.language,
            other.template,
        )
        return same_text and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in arrays)

    @property
    def is_added(self) -> Bool[np.ndarray, " token"]:
        """True for special tokens that the tokenizer added around the text, and for a begin-of-text token that was asked for."""
        return self.is_special & ~np.isin(np.arange(len(self)), self.in_text)

    @property
    def is_unknown(self) -> Bool[np.ndarray, " token"]:
        """True where the vocabulary had no entry for a piece of text."""
        return np.isin(np.arange(len(self)), self.unknown)

    @property
    def continues_word(self) -> Bool[np.ndarray, " token"]:
        """True where a token is a further piece of the word that the token before it belongs to."""
        same = (self.word[1:] == self.word[:-1]) & (self.segment[1:] == self.segment[:-1])
        return np.concatenate([[False], same & (self.word[1:] >= 0)])

    def piece(self, position: int) -> str:
        """What a token adds to the text of its word; see `pieces`."""
        return self.pieces[position] if self.pieces else self.labels[position].removeprefix("##")

    def label(self, first: int, stop: int) -> str:
        """The tokens from one position up to another as text, with the pieces of each word joined."""
        if stop == first + 1:
            return self.labels[first]
        continued = self.continues_word[first:stop]
        starts = [first, *(first + np.flatnonzero(~continued[1:]) + 1).tolist()]
        written = ""
        for start, end in zip(starts, [*starts[1:], stop], strict=True):
            pieces = map(self.piece, range(start, end))
            word = as_label("".join(pieces)) if end > start + 1 else self.labels[start]
            has_gap = not written or written.endswith(SPACE) or word.startswith(SPACE)
            written += word if has_gap else f" {word}"
        return written


def words_of_labels(
    labels: Sequence[str], is_special: Bool[np.ndarray, " token"]
) -> Int[np.ndarray, " token"]:
    """The number of each token's word, told by the labels alone; -1 for special tokens.

    A word begins where a label begins with a space, or, where none does, with every label but those such as "##ing".
    """
    has_spaces = any(label.startswith(SPACE) for label in labels)
    starts = [
        not at
        or is_special[at - 1]
        or (label.startswith(SPACE) if has_spaces else not label.startswith("##"))
        for at, label in enumerate(labels)
    ]
    return np.where(is_special, -1, np.cumsum(np.array(starts, dtype=bool) & ~is_special) - 1)


@dataclass(frozen=True, kw_only=True, eq=False)  # as above
class Axis(Record):
    """One side of a matrix: its entries, each a token or a group of neighbouring tokens."""

    tokens: Tokens
    spans: Int[np.ndarray, "entry 2"]
    """Position of the first token of each entry, and the position after its last; in order, without overlap."""

    def __post_init__(self) -> None:
        Record.__post_init__(self)
        edges = self.spans.ravel()
        fits = len(edges) == 0 or (edges[0] >= 0 and edges[-1] <= len(self.tokens))
        fits = fits and bool((np.diff(edges)[::2] > 0).all() and (np.diff(edges)[1::2] >= 0).all())
        if not fits:  # the message is as long as the text
            raise self._unfit(
                f"spans {self.spans.tolist()} are not groups of {len(self.tokens)} tokens in order"
            )

    @classmethod
    def of(cls, tokens: Tokens, unit: Unit = "tokens") -> "Axis":
        """All tokens of a text, or all its words; a special token is a word of its own."""
        if unit not in tokens.axes:
            starts = np.flatnonzero(~tokens.continues_word) if unit == "words" else np.arange(len(tokens))
            stops = np.append(starts[1:], len(tokens))
            tokens.axes[unit] = cls(tokens=tokens, spans=np.column_stack([starts, stops]))
        return tokens.axes[unit]

    def __len__(self) -> int:
        return len(self.spans)

    @cached_property
    def positions(self) -> Int[np.ndarray, " entry"]:
        """Position of the first token of each entry."""
        return self.spans[:, 0]

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The label of each entry, literally."""
        return tuple(self.tokens.label(int(first), int(stop)) for first, stop in self.spans)

    @property
    def ids(self) -> tuple[tuple[int, ...], ...]:
        """The ids of each entry's tokens, which decide whether entries are the same to a model; labels may be equal where ids differ."""
        ids = self.tokens.ids.tolist()
        return tuple(tuple(ids[first:stop]) for first, stop in self.spans.tolist())

    @cached_property
    def is_special(self) -> Bool[np.ndarray, " entry"]:
        """True for special tokens, such as [CLS] and [SEP]; see `Tokens.is_special`."""
        return _read_only(self.tokens.is_special[self.positions])

    @cached_property
    def segment(self) -> Int[np.ndarray, " entry"]:
        """0 for entries of the first text and 1 for those of the second."""
        return _read_only(self.tokens.segment[self.positions])

    @cached_property
    def is_merged(self) -> bool:
        """Whether any entry has more than one token."""
        return bool((np.diff(self.spans, axis=1) > 1).any())

    def index(self, position: int) -> int | None:
        """The entry that the token at a position belongs to; None where it is not shown."""
        segments = np.flatnonzero((self.spans[:, 0] <= position) & (position < self.spans[:, 1]))
        return int(segments[0]) if len(segments) else None

    def where(self, keep: Bool[np.ndarray, " entry"]) -> "Axis":
        """The axis with only these entries."""
        return replace(self, spans=self.spans[keep])

    def without_special(self) -> "Axis":
        """The axis without special tokens such as [CLS] and [SEP]."""
        return self.where(~self.is_special)

    def without_first(self) -> "Axis":
        """The axis without the entry of the first token, where heads rest in models that add no special token there."""
        return self.where(self.positions > 0)

    def of_segment(self, segment: int) -> "Axis":
        """The entries of the first text (0) or of the second (1) only."""
        return self.where(self.segment == segment)


def _read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def arrange(
    cells: Float[np.ndarray, "*batch query key"], queries: Axis, keys: Axis
) -> Float[np.ndarray, "*batch row column"]:
    """Cells of single tokens combined into cells of the entries of two axes: columns summed, rows averaged.

    So a row of weights whose columns are all kept still sums to 1.

    Source: Clark et al. 2019, "What Does BERT Look At?" (arXiv:1906.04341), section 4.1.
    """
    if queries.is_merged:
        lengths = np.diff(queries.spans, axis=1)
        cells = _summed(cells, queries, axis=-2) / lengths.astype(cells.dtype)
    else:
        cells = cells[..., _places(queries), :]
    return _summed(cells, keys, axis=-1) if keys.is_merged else cells[..., _places(keys)]


def _places(entries: Axis) -> slice | np.ndarray:
    """Where single tokens are; neighbours as a slice, which copies nothing."""
    positions = entries.positions
    if len(positions) and positions[-1] - positions[0] == len(positions) - 1:
        return slice(int(positions[0]), int(positions[-1]) + 1)
    return positions


def _summed(cells: np.ndarray, entries: Axis, axis: int) -> np.ndarray:
    """Sums over the tokens of each entry."""
    ahead = [(0, 0)] * cells.ndim
    ahead[axis] = (0, 1)  # so that the position after the last token is included
    sums: np.ndarray = np.add.reduceat(np.pad(cells, ahead), entries.spans.ravel(), axis=axis)
    return np.take(sums, np.arange(0, 2 * len(entries), 2), axis=axis)
