"""Many sentences: the vectors of one layer for all of them.

The model reads line by line, and only the vectors of one layer are kept.
"""

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from attnviz.arguments import typed
from attnviz.errors import EmptyTextError, InvalidTextError, SelectionError
from attnviz.model.head_attention import HeadAttention
from attnviz.model.tokenization import CHARACTER_LIMIT
from attnviz.records import (
    Axis,
    Kind,
    LayerAttention,
    Progress,
    Provenance,
    Record,
    Tokens,
    bare,
    check_index,
)

if TYPE_CHECKING:
    from attnviz.model.model import Model

MOST_COLLECTED = 10_000
"""Most tokens of a collection: 20,000 points. One layer of 12 heads of 64 dimensions then takes 61 MB."""
LONGEST_SENTENCE = 512
"""Most tokens of a sentence, even where the model reads more: masks grow with the square of this number."""
LARGEST_FILE = 1_000_000
"""Most bytes of a text file: `MOST_COLLECTED` tokens are about 50,000 bytes of English."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Collection(Record):
    """Queries and keys of one layer, all heads, for many sentences; each sentence was read by itself.

    Tokens are numbered consecutively through all sentences.
    """

    tokens: tuple[Tokens, ...]
    """Tokens of each sentence."""
    line: Int[np.ndarray, " sentence"]
    """Number of the line of each sentence, counted from 1."""
    attention: tuple[LayerAttention, ...]
    """Attention of each sentence, without its values."""
    n_found: int
    """Number of sentences in the text, whether read or not."""
    most_tokens: int = MOST_COLLECTED
    """Limit on the number of tokens."""
    cut: tuple[int, ...] = ()
    """Numbers of the lines that were cut."""
    dropped: tuple[int, ...] = ()
    """Numbers of the lines without anything that the model can read."""
    provenance: Provenance

    def __post_init__(self) -> None:
        Record.__post_init__(self)
        lengths = [len(token) for token in self.tokens]
        shapes = [(call.query.shape[1], call.key.shape[1]) for call in self.attention]
        if len(self.line) != len(lengths):
            raise self._unfit(f"{len(self.line)} lines, {len(lengths)} sentences")
        if shapes != [(length, length) for length in lengths]:
            raise self._unfit(f"tokens are {lengths}, queries and keys {shapes}")

    @property
    def kind(self) -> Kind:
        """The kind of attention."""
        return self.attention[0].kind

    @property
    def layer(self) -> int:
        """The layer, counted from 0."""
        return self.attention[0].layer

    @property
    def n_heads(self) -> int:
        """Number of query heads in the layer."""
        return int(self.attention[0].query.shape[0])

    @property
    def n_tokens(self) -> int:
        """Number of tokens of all sentences together."""
        return sum(map(len, self.tokens))

    @property
    def sentence(self) -> Int[np.ndarray, " token"]:
        """Number of the sentence that each token belongs to, counted from 0."""
        return np.repeat(np.arange(len(self.tokens)), [len(token) for token in self.tokens])

    @property
    def position(self) -> Int[np.ndarray, " token"]:
        """Position of each token in its sentence."""
        return np.concatenate([np.arange(len(token)) for token in self.tokens])

    def start(self, sentence: int) -> int:
        """Number of the first token of a sentence."""
        return sum(len(token) for token in self.tokens[:sentence])

    def vectors(
        self, head: int
    ) -> tuple[Float[np.ndarray, "token d_head"], Float[np.ndarray, "token d_head"]]:
        """Queries and keys of one head, of all tokens.

        Raises:
            SelectionError: no such head.
        """
        parts = [self.head(sentence, head) for sentence in range(len(self.tokens))]
        return np.concatenate([part.query for part in parts]), np.concatenate([part.key for part in parts])

    def head(self, sentence: int, head: int) -> HeadAttention:
        """The attention of one head in one sentence.

        Raises:
            SelectionError: no such sentence or head.
        """
        check_index("sentence", sentence, len(self.tokens), "this collection")
        check_index("head", head, self.n_heads, f"layer {self.layer} of {self.provenance.model}")
        return HeadAttention.of(self.attention[sentence], head)

    def scores(self, sentence: int, head: int) -> Float[np.ndarray, "query key"]:
        """Scores of one sentence before the softmax, as the model had them: minus infinity where masked.

        Raises:
            SelectionError: no such sentence or head.
        """
        return self.head(sentence, head).scores()

    def weights(self, sentence: int, head: int) -> Float[np.ndarray, "query key"]:
        """Attention weights of one sentence.

        Raises:
            SelectionError: no such sentence or head.
        """
        return self.head(sentence, head).weights()

    def find(self, text: str) -> Int[np.ndarray, " match"]:
        """Numbers of the tokens that are this text, or part of a word that is; case is ignored.

        A word piece is found with or without its "##", a token with or without its space.
        """
        wanted, matches = text.strip().casefold(), []
        first = 0
        for tokens in self.tokens:
            words = Axis.of(tokens, "words")
            for label, (start, stop) in zip(words.labels, words.spans, strict=True):
                is_word = bare(label).casefold() == wanted
                for position in range(start, stop):
                    token, piece = tokens.labels[position].casefold(), tokens.piece(position).casefold()
                    if is_word or wanted in (token, piece, piece.strip()):
                        matches.append(first + position)
            first += len(tokens)
        return np.array(matches, dtype=np.int64)

    def remarks(self) -> tuple[str, ...]:
        """Notes on parts of the text that were not read, a sentence each; usually empty."""
        remarks = []
        if len(self.tokens) + len(self.dropped) < self.n_found:
            remarks.append(
                f"The first {len(self.tokens):,} of {self.n_found:,} sentences are read: together "
                f"{self.n_tokens:,} tokens, and the limit is {self.most_tokens:,}."
            )
        if self.cut:
            limit = min(
                len(line_tokens)
                for line_tokens, line in zip(self.tokens, self.line, strict=True)
                if line in self.cut
            )
            remarks.append(f"{_lines(self.cut)} longer than {limit:,} tokens, and cut there.")
        if self.dropped:
            remarks.append(f"{_lines(self.dropped)} left out: nothing there that the model can read.")
        return tuple(remarks)


def bundled() -> str:
    """The sentences bundled with attnviz, one per line: about 200, written for it."""
    return files("attnviz.maps").joinpath("sentences.txt").read_text(encoding="utf-8")


def decoded(data: bytes) -> str:
    """The text of a file.

    Raises:
        InvalidTextError: more than `LARGEST_FILE` bytes, or not UTF-8.
    """
    if len(data) > LARGEST_FILE:
        raise InvalidTextError(
            f"The file has {len(data):,} bytes; at most {LARGEST_FILE:,} can be read. Use a part of it."
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidTextError(
            f"The file is not text in UTF-8: byte {error.start + 1:,} is 0x{data[error.start]:02X}. Save it as plain "
            "text in UTF-8, one sentence per line."
        ) from None


def sentences(text: str) -> list[tuple[int, str]]:
    """The lines that are not blank, with their numbers from 1.

    Lines are as editors count them: Unicode's other line separators do not end a line.
    """
    lines = re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff"))
    return [(number, line) for number, line in enumerate(lines, 1) if line.strip()]


@typed
def collect(
    model: "Model",
    text: str,
    layer: int,
    *,
    kind: Kind | None = None,
    most_tokens: int = MOST_COLLECTED,
    progress: Progress | None = None,
) -> Collection:
    """Queries and keys of one layer for every line of a text that is not blank.

    Each line is read by itself, as by `Model.trace`. Sentences and tokens above the limits are left out, which
    `Collection.remarks` reports.

    Args:
        most_tokens: limit for all sentences together; the first sentence above it and all later ones are left out.
        progress: called with the share that is done, 0 to 1. It may raise to stop the reading.

    Raises:
        EmptyTextError: no line has anything that the model can read.
        SelectionError: no such layer or kind, or a kind whose queries and keys are not of one line.
    """
    sentences_of_text = sentences(text)
    tokens: list[Tokens] = []
    calls: list[LayerAttention] = []
    lines: list[int] = []
    cut: list[int] = []
    dropped: list[int] = []
    n_token = 0
    with _one_thread():
        for n_read, (number, line) in enumerate(sentences_of_text):
            if progress is not None:
                progress(max(n_read / len(sentences_of_text), n_token / most_tokens))
            try:
                trace = model.trace(line[:CHARACTER_LIMIT], cut=True, max_tokens=LONGEST_SENTENCE)
            except (EmptyTextError, InvalidTextError):
                dropped.append(number)
                continue
            if trace.target_tokens is not None and kind not in (None, "encoder"):
                raise SelectionError(
                    f"Attention of kind {kind!r} was asked for; single lines are read only by the encoder of "
                    f"{model.name}. Select encoder attention."
                )
            call = trace.attention(layer, kind)
            if n_token + len(trace.tokens) > most_tokens:
                break
            n_token += len(trace.tokens)
            if len(line) > CHARACTER_LIMIT or any(trace.tokens.n_cut):
                cut.append(number)
            tokens.append(trace.tokens)
            lines.append(number)
            calls.append(replace(call, value=call.value[..., :0].copy(), output_weight=None))
    if not tokens:
        raise EmptyTextError("No line of the text holds a token. Give it a sentence on a line of its own.")
    return Collection(
        tokens=tuple(tokens),
        line=np.array(lines),
        attention=tuple(calls),
        n_found=len(sentences_of_text),
        most_tokens=most_tokens,
        cut=tuple(cut),
        dropped=tuple(dropped),
        provenance=model.provenance,
    )


def _one_thread() -> AbstractContextManager[object]:
    """A context in which torch uses one core in this thread.

    On a short sentence a layer takes less time than starting a second thread. On an idle machine with two cores
    206 sentences took 2.0 s; with 16 processes waiting, 72 to 123 s with two threads and 8 to 19 s with one.
    """
    import torch
    from threadpoolctl import threadpool_limits

    torch.get_num_threads()  # sets this thread's number of threads, which torch would otherwise set at its first call
    return threadpool_limits(1, user_api="openmp")  # type: ignore[no-any-return]


def _lines(numbers: Sequence[int]) -> str:
    """Lines by number, with their verb: "Lines 3, 5, 8 and 4 more are"."""
    shown = [str(number) for number in numbers[:3]]
    if len(numbers) == 1:
        return f"Line {shown[0]} is"
    last = f"{len(numbers) - 3:,} more" if len(numbers) > 3 else shown.pop()
    return f"Lines {', '.join(shown)} and {last} are"
