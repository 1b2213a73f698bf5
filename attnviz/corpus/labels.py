"""Grammatical labels of a text: its words, and the head, relation and part of speech of each."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int

from attnviz.model.token_spans import align
from attnviz.records import Record, Tokens

if TYPE_CHECKING:
    from spacy.language import Language


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Labels(Record):
    """Words of a text in their order."""

    spans: Int[np.ndarray, "word 2"]
    """Characters of each word: the first, and the one after the last; both 0 where it shares them with the word before it, as in
    "del" for "de el"."""
    heads: Int[np.ndarray, " word"]
    """Index of the word that each depends on; -1 for the root."""
    relations: tuple[str, ...]
    """How each word depends on its head, such as "nsubj"; without a treebank's subtype after a colon."""
    parts: tuple[str, ...]
    """Part of speech of each word in Universal Dependencies, such as "NOUN"."""

    def __post_init__(self) -> None:
        Record.__post_init__(self)
        n_word = len(self.spans)
        for name in ("heads", "relations", "parts"):
            if len(getattr(self, name)) != n_word:
                raise self._unfit(f"{n_word} spans, {len(getattr(self, name))} {name}")
        if (self.heads >= n_word).any():
            raise self._unfit(f"heads are up to {self.heads.max(initial=-1)}, words {n_word}")

    def written(self) -> str:
        """The labels as JSON, which `read` reads."""
        return json.dumps(
            [self.spans.tolist(), self.heads.tolist(), list(self.relations), list(self.parts)],
            separators=(",", ":"),
        )

    @classmethod
    def read(cls, written: str) -> "Labels":
        """The labels that `written` wrote."""
        spans, heads, relations, parts = json.loads(written)
        return cls(
            spans=np.array(spans, dtype=np.int64).reshape(-1, 2),
            heads=np.array(heads, dtype=np.int64),
            relations=tuple(relations),
            parts=tuple(parts),
        )

    def word_of(self, tokens: Tokens) -> Int[np.ndarray, " token"]:
        """The word that each token of the text belongs to; -1 for added special tokens and tokens between words."""
        of_character = np.full(len(tokens.text) + 1, -1)
        for number, (first, stop) in enumerate(self.spans):
            of_character[first:stop] = number
        words = np.full(len(tokens), -1)
        own = np.flatnonzero(~tokens.is_added & (tokens.segment == 0))
        for position, span in zip(
            own, align([tokens.piece(int(position)) for position in own], tokens.text), strict=True
        ):
            inside = of_character[slice(*span)] if span is not None else of_character[:0]
            inside = inside[inside >= 0]
            words[position] = inside[0] if len(inside) else -1
        return words


def read_conllu(lines: Iterable[str]) -> Iterator[tuple[int, str, Labels | str]]:
    """The sentences of a CoNLL-U file: the number of each one's first line, its text, and its labels.

    A sentence whose labels cannot be read has the reason in their place, and no text.
    """
    for begins, rows in sentence_rows(lines):
        try:
            text, labels = read_sentence(rows)
        except ValueError as error:
            yield begins, "", str(error)
        else:
            yield begins, text, labels


def sentence_rows(lines: Iterable[str]) -> Iterator[tuple[int, list[list[str]]]]:
    """The sentences of a CoNLL-U file as the columns of their lines, with the number of each one's first line."""
    rows: list[list[str]] = []
    begins = 1
    for number, line in enumerate(chain(lines, [""]), 1):
        line = line.rstrip("\r\n")
        if not line.strip():
            if rows:
                yield begins, rows
            rows = []
        elif not line.startswith("#"):
            begins = number if not rows else begins
            rows.append(line.split("\t"))


_ID = re.compile(r"(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9})|\.(?P<empty>[0-9]{1,9}))?")


def read_sentence(rows: Iterable[list[str]]) -> tuple[str, Labels]:
    """The text and labels of a sentence of CoNLL-U; the text joins its tokens, with a space after each without ``SpaceAfter=No``.

    Raises:
        ValueError: a line has not 10 columns, ids are not in order, or the heads do not make trees; without a full stop.

    Source: https://universaldependencies.org/format.html
    """
    text = ""
    spans: list[tuple[int, int]] = []
    written_heads, relations, parts = [], [], []
    within, shared = range(0), (0, 0)  # words of a multiword token, and its characters
    for row in rows:
        if len(row) != 10:
            raise ValueError(f"a line of CoNLL-U has 10 columns; one here has {len(row)}")
        written, form, _, part, _, _, head, relation, _, other = row
        if (id_ := _ID.fullmatch(written)) is None:
            raise ValueError(f"{written[:20]!r} is not the id of a word, such as 3, 3-4 or 3.1")
        first = int(id_["first"])
        if id_["empty"]:  # an empty node has no text
            continue
        if first != len(spans) + 1:
            raise ValueError(f"the id {written} comes after {len(spans)} words; they are counted from 1")
        span = len(text), len(text) + len(form)
        if id_["last"]:
            if first in within or int(id_["last"]) < first:
                raise ValueError(f"the id {written} is not a range of words of its own")
            within = range(first, int(id_["last"]) + 1)
            text += form + " " * ("SpaceAfter=No" not in other)
            shared = span
            continue
        if first in within:
            span = shared if first == within.start else (0, 0)
        else:
            text += form + " " * ("SpaceAfter=No" not in other)
        spans.append(span)
        written_heads.append(head)
        relations.append(relation.split(":")[0])
        parts.append(part)
    if within.stop > len(spans) + 1:
        raise ValueError(f"the token {within.start}-{within.stop - 1} lacks words; there are {len(spans)}")
    numbers = {str(number): number - 1 for number in range(len(spans) + 1)}
    if unknown := set(written_heads) - numbers.keys():
        raise ValueError(f"a word depends on {min(unknown)[:20]}, and there is no such word")
    heads = [numbers[head] for head in written_heads]
    if (word := _in_circle(heads)) is not None:
        raise ValueError(f"the word {word + 1} depends on itself, directly or through others")
    return text.rstrip(), Labels(
        spans=np.array(spans, dtype=np.int64).reshape(-1, 2),
        heads=np.array(heads, dtype=np.int64),
        relations=tuple(relations),
        parts=tuple(parts),
    )


def _in_circle(heads: Sequence[int]) -> int | None:
    """A word that depends on itself through others; None where every word has a root."""
    ends: set[int] = {-1}
    for word in range(len(heads)):
        way: dict[int, None] = {}
        while word not in ends:
            if word in way:
                return word
            way[word] = None
            word = heads[word]
        ends.update(way)
    return None


def spacy_labels(pipeline: "Language", texts: Iterable[str]) -> Iterator[Labels]:
    """Labels of texts as a spaCy pipeline gives them; its relations are those of its model."""
    for document in pipeline.pipe(texts):
        words = [token for token in document if not token.is_space]
        numbers = {token.i: number for number, token in enumerate(words)}
        yield Labels(
            spans=np.array([(word.idx, word.idx + len(word)) for word in words], dtype=np.int64).reshape(
                -1, 2
            ),
            heads=np.array(
                [-1 if word.head.i == word.i else numbers.get(word.head.i, -1) for word in words],
                dtype=np.int64,
            ),
            relations=tuple(word.dep_ for word in words),
            parts=tuple(word.pos_ for word in words),
        )
