"""The continuation of a text by a decoder: the next tokens of its own language head, one after another.

The Continuation. Its tokens are the model's own, or picked by hand at some steps, which makes a branch. The attention
of every step is recorded as its token is read (`attnviz.model.incremental`).

Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 2; temperature as in Ackley et al.
1985, "A Learning Algorithm for Boltzmann Machines" (doi:10.1207/s15516709cog0901_7), equation 5.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnviz.arguments import typed
from attnviz.errors import SelectionError, UnsupportedArchitectureError, enough_memory
from attnviz.model.capture import forward
from attnviz.model.configuration import end_ids, text_config
from attnviz.model.incremental import IncrementalPass
from attnviz.model.model import Model
from attnviz.model.token_labels import labels_in_text, labels_of
from attnviz.model.tokenization import special_ids
from attnviz.model.trace import Trace
from attnviz.records import Result, Tokens
from attnviz.records.table import Table


class Written(NamedTuple):
    """A token that has just been written."""

    label: str
    probability: float
    """As in `Continuation.probabilities`."""


Told = Callable[[float, Written], None]
"""Called for each token that is written: the share that is done, 0 to 1, and the token."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Continuation(Result):
    """A text and the tokens that a decoder wrote after it, with what else it could have written."""

    trace: Trace
    """The trace of all tokens: those of the text, then those that were written. A token's row is the attention with which
    the next token was written."""
    n_read: int
    """Number of tokens of the text, and position of the first token that was written."""
    probabilities: Float[np.ndarray, " step"]
    """Probability of each token that was written: the softmax over the whole vocabulary, at temperature 1."""
    candidates: tuple[tuple[str, ...], ...]
    """The most likely tokens of each step, most likely first."""
    candidate_ids: Int[np.ndarray, "step rank"]
    candidate_probabilities: Float[np.ndarray, "step rank"]
    picks: Mapping[int, int] = field(default_factory=dict)
    """Ids of the tokens that were picked by hand, by step from 0."""
    temperature: float
    seed: int
    ended: bool
    """Whether the model wrote its end token, which is the last of the tokens."""

    @property
    def text(self) -> str:
        """The text, and what was written after it."""
        return self.trace.tokens.text

    @property
    def tokens(self) -> Tokens:
        """All tokens: those of the text, then those that were written."""
        return self.trace.tokens

    @property
    def written(self) -> tuple[str, ...]:
        """Labels of the tokens that were written."""
        return self.tokens.labels[self.n_read :]

    def _table(self) -> Table:
        """A row for every token that was written: its probability, and the candidates with theirs."""
        top = self.candidate_probabilities.shape[1]
        header = ["step", "position", "written", "probability"]
        header += [f"{what} {rank}" for rank in range(1, top + 1) for what in ("candidate", "probability")]
        rows = []
        for step, label in enumerate(self.written):
            pairs = zip(self.candidates[step], self.candidate_probabilities[step], strict=True)
            row = [step + 1, self.n_read + step, label, self.probabilities[step]]
            rows.append([*row, *(value for pair in pairs for value in pair)])
        return header, rows


@typed
def generate(
    model: Model,
    text: str | Tokens,
    *,
    n_tokens: int = 20,
    temperature: float = 0.0,
    seed: int = 0,
    top: int = 5,
    picks: Mapping[int, int] | None = None,
    progress: Told | None = None,
) -> Continuation:
    """The tokens that a decoder writes after a text, until it writes its end token.

    Args:
        text: a text, or tokens as they are, such as those of a pair or of a cut text. A final end token is left out.
        n_tokens: most tokens that are written.
        temperature: 0 for the most likely token of each step (greedy); otherwise logits are divided by it, and a token is
            drawn from their softmax.
        seed: of the draws; without effect at temperature 0.
        top: candidates that are kept of each step.
        picks: ids of tokens that replace the model's own, by step from 0. Random numbers are drawn at these steps too, so that
            the text up to the first pick is the same as without picks.
        progress: called after each token.

    Raises:
        EmptyTextError, InvalidTextError, TextTooLongError: as `Model.trace`, of a text.
        ModelFailedError, OutOfMemoryError: as `attnviz.model.capture.forward`.
        SelectionError: fewer than one token or candidate asked for, more tokens than the model has room for, a negative
            temperature, a seed of more than 64 bits, or a pick that the vocabulary or the text has no place for.
        UnsupportedArchitectureError: the model is no decoder with a language head.
    """
    picks = dict(picks or {})
    tokens = without_end(model.tokenize(text) if isinstance(text, str) else text)
    _check(model, tokens, n_tokens, temperature, seed, top, picks)
    draws = torch.Generator().manual_seed(seed)
    ends = end_ids(model.network)
    ids, chances, candidates, rows = [], [], [], []
    with enough_memory(), torch.inference_mode():
        reading = IncrementalPass(model, tokens)
        if reading.kinds != ("decoder",):
            raise _does_not_write(model)
        for step in range(n_tokens):
            logits = _next_logits(model, reading)
            probabilities = logits.softmax(dim=-1)
            chosen = _choose(logits, temperature, draws)
            chosen = picks.get(step, chosen)
            best = probabilities.topk(min(top, len(logits)))
            ids.append(chosen)
            chances.append(float(probabilities[chosen]))
            candidates.append(best.indices.tolist())
            rows.append(best.values.numpy())
            reading.read(chosen)
            if progress is not None:
                [label] = labels_of(model.tokenizer, [chosen])
                progress((step + 1) / n_tokens, Written(label, chances[-1]))
            if chosen in ends:
                break
    if late := [step for step in picks if step >= len(ids)]:
        raise SelectionError(
            f"Another token was picked for step {late[0] + 1}; {model.name} ends the text with step {len(ids)}. Pick one of an "
            "earlier step."
        )
    return Continuation(
        trace=reading.trace(_extended(model, tokens, [*tokens.ids.tolist(), *ids])),
        n_read=len(tokens),
        probabilities=np.array(chances, dtype=np.float32),
        candidates=tuple(labels_of(model.tokenizer, candidate) for candidate in candidates),
        candidate_ids=np.array(candidates, dtype=np.int64),
        candidate_probabilities=np.stack(rows),
        picks=picks,
        temperature=temperature,
        seed=seed,
        ended=ids[-1] in ends,
    )


def _check(
    model: Model,
    tokens: Tokens,
    n_tokens: int,
    temperature: float,
    seed: int,
    top: int,
    picks: Mapping[int, int],
) -> None:
    if model.language_head is None:
        raise _does_not_write(model)
    if n_tokens < 1 or top < 1:
        raise SelectionError(
            f"{n_tokens} tokens with {top} candidates each were asked for. Ask for one or more of both."
        )
    if not 0 <= temperature < float("inf"):
        raise SelectionError(
            f"The temperature {temperature} was asked for; it is 0 for the most likely token, or more. Give such a number."
        )
    if not 0 <= seed < 2**64:
        raise SelectionError(f"The seed {seed} was asked for; seeds are 0 to 2^64 - 1. Give such a number.")
    if model.max_tokens is not None and len(tokens) + n_tokens > model.max_tokens:
        raise SelectionError(
            f"{n_tokens} tokens were to be written after a text of {len(tokens):,}; {model.name} reads at most "
            f"{model.max_tokens:,} tokens. Shorten the text, or ask for fewer."
        )
    n_row = text_config(model.language_head.config).vocab_size
    for step, picked in picks.items():
        if not (0 <= step < n_tokens and 0 <= picked < n_row):
            raise SelectionError(
                f"The token with the id {picked} was picked for step {step + 1}; steps are 1 to {n_tokens}, and the vocabulary of "
                f"{model.name} has the ids 0 to {n_row - 1}. Pick one of those."
            )


def _does_not_write(model: Model) -> UnsupportedArchitectureError:
    return UnsupportedArchitectureError(
        f"A continuation by {model.name} was asked for; it is no decoder with a language head. Select a model that writes, "
        "such as SmolLM2-135M-Instruct."
    )


def _choose(logits: Float[Tensor, " vocabulary"], temperature: float, draws: torch.Generator) -> int:
    """The most likely token, or a random draw."""
    if not temperature:
        return int(logits.argmax())
    shifted = (logits - logits.max()).double()  # a low temperature does not overflow
    return int(torch.multinomial((shifted / temperature).softmax(dim=-1), 1, generator=draws))


def _next_logits(model: Model, reading: IncrementalPass) -> Float[Tensor, " vocabulary"]:
    assert model.language_head is not None  # `_check`
    logits: Tensor = forward(model.language_head, inputs_embeds=reading.last_state).logits
    return logits[0, 0].float().cpu()


def without_end(tokens: Tokens) -> Tokens:
    """The tokens without the end token that some tokenizers add."""
    n_kept = len(tokens)
    while n_kept > 1 and tokens.is_added[n_kept - 1]:
        n_kept -= 1
    return tokens if n_kept == len(tokens) else cut_after(tokens, n_kept)


def cut_after(tokens: Tokens, n_kept: int) -> Tokens:
    """The first tokens of a text."""
    kept = slice(n_kept)
    return replace(
        tokens,
        ids=tokens.ids[kept],
        labels=tokens.labels[kept],
        pieces=tokens.pieces[kept],
        is_special=tokens.is_special[kept],
        segment=tokens.segment[kept],
        word=tokens.word[kept],
        in_text=tuple(position for position in tokens.in_text if position < n_kept),
        unknown=tuple(position for position in tokens.unknown if position < n_kept),
    )


def _extended(model: Model, tokens: Tokens, ids: list[int]) -> Tokens:
    """The tokens, followed by those that were written, whose words are not known."""
    new = ids[len(tokens) :]
    special = np.isin(new, list(special_ids(model.tokenizer)))
    written = len(tokens) + np.flatnonzero(special)
    labels, pieces = labels_in_text(model.tokenizer, ids)  # a character may be begun by the text
    return replace(
        tokens,
        text=str(model.tokenizer.decode(ids, skip_special_tokens=True)),
        ids=np.array(ids, dtype=np.int64),
        labels=labels,
        pieces=pieces,
        is_special=np.concatenate([tokens.is_special, special]),
        in_text=(*tokens.in_text, *written.tolist()),
        segment=np.concatenate([tokens.segment, np.zeros(len(new), dtype=tokens.segment.dtype)]),
        word=np.concatenate([tokens.word, np.full(len(new), -1, dtype=tokens.word.dtype)]),
    )


def __getattr__(name: str) -> Any:
    """The name that README had for `generate`."""
    if name == "continue_text":
        warnings.warn("continue_text is called attnviz.generate now.", DeprecationWarning, stacklevel=2)
        return generate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
