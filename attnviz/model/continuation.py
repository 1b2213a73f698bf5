"""What a decoder writes after a text: the next tokens of its own language head, one after another.

One concept: the Continuation. A causal model's row of attention for a token is the same whatever follows, so that one trace
of all tokens (`attnviz.model.loading.Model.trace_tokens`) holds the attention of every step.

Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 2; temperature as in Ackley et al.
1985, "A Learning Algorithm for Boltzmann Machines" (doi:10.1207/s15516709cog0901_7), equation 5.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnviz.errors import SelectionError, UnsupportedArchitectureError, enough_memory
from attnviz.model.configuration import end_ids
from attnviz.model.forward import forward
from attnviz.model.loading import Model
from attnviz.model.token_labels import labels_in_text, labels_of
from attnviz.model.tokenization import special_ids
from attnviz.records import Progress, Record, Tokens
from attnviz.records.table import table_csv


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Continuation(Record):
    """A text and the tokens that a decoder wrote after it, with what else it could have written."""

    tokens: Tokens
    """All tokens: those of the text, then those that were written."""
    n_read: int
    """Tokens of the text; the first token that was written stands at this position."""
    probabilities: Float[np.ndarray, " step"]
    """Probability of each token that was written: the softmax over the whole vocabulary, at temperature 1."""
    candidates: tuple[tuple[str, ...], ...]
    """The most likely tokens of each step, most likely first."""
    candidate_probabilities: Float[np.ndarray, "step rank"]
    temperature: float
    seed: int
    ended: bool
    """Whether the model wrote its end token, which is the last of the tokens."""

    @property
    def written(self) -> tuple[str, ...]:
        """Labels of the tokens that were written."""
        return self.tokens.labels[self.n_read :]

    def csv(self) -> bytes:
        """A line for every token that was written: its probability, and the candidates with theirs."""
        top = self.candidate_probabilities.shape[1]
        header = ["step", "position", "written", "probability"]
        header += [f"{what} {rank}" for rank in range(1, top + 1) for what in ("candidate", "probability")]
        rows = []
        for step, label in enumerate(self.written):
            pairs = zip(self.candidates[step], self.candidate_probabilities[step], strict=True)
            row = [step + 1, self.n_read + step, label, self.probabilities[step]]
            rows.append([*row, *(one for pair in pairs for one in pair)])
        return table_csv(header, rows)


def continue_text(
    model: Model,
    text: str | Tokens,
    *,
    n_tokens: int = 20,
    temperature: float = 0.0,
    seed: int = 0,
    top: int = 5,
    progress: Progress | None = None,
) -> Continuation:
    """The tokens that a decoder writes after a text, until it writes its end token.

    Args:
        text: a text, or tokens as they are: those of a pair, or of a text that is cut. An end token at their end is left out.
        n_tokens: most tokens that are written.
        temperature: 0 for the most likely token of each step (greedy); otherwise logits are divided by it, and a token is
            drawn from their softmax.
        seed: of the draws; without effect at temperature 0.
        top: candidates that are kept of each step.
        progress: called with the share that is done, 0 to 1, after each token.

    Raises:
        EmptyTextError, InvalidTextError, TextTooLongError: as `Model.trace`, of a text.
        ModelFailedError, OutOfMemoryError: as `attnviz.model.forward.forward`.
        SelectionError: fewer than one token or candidate asked for, more tokens than the model has room for, a negative
            temperature, or a seed of more than 64 bits.
        UnsupportedArchitectureError: the model is no decoder with a language head.
    """
    tokens = _without_end(model.tokenize(text) if isinstance(text, str) else text)
    _check(model, tokens, n_tokens, temperature, seed, top)
    draws = torch.Generator().manual_seed(seed)
    ids, ends = tokens.ids.tolist(), end_ids(model.network, model.head)
    chances, candidates, rows = [], [], []
    for step in range(n_tokens):
        logits = _next_logits(model, tokens, ids)
        probabilities = logits.softmax(dim=-1)
        if temperature:
            shifted = (logits - logits.max()).double()  # a low temperature does not overflow
            chosen = int(torch.multinomial((shifted / temperature).softmax(dim=-1), 1, generator=draws))
        else:
            chosen = int(logits.argmax())
        best = probabilities.topk(min(top, len(logits)))
        ids.append(chosen)
        chances.append(float(probabilities[chosen]))
        candidates.append(labels_of(model.tokenizer, best.indices.tolist()))
        rows.append(best.values.numpy())
        if progress is not None:
            progress((step + 1) / n_tokens)
        if chosen in ends:
            break
    return Continuation(
        tokens=_extended(model, tokens, ids),
        n_read=len(tokens),
        probabilities=np.array(chances, dtype=np.float32),
        candidates=tuple(candidates),
        candidate_probabilities=np.stack(rows),
        temperature=temperature,
        seed=seed,
        ended=ids[-1] in ends,
    )


def _check(model: Model, tokens: Tokens, n_tokens: int, temperature: float, seed: int, top: int) -> None:
    if model.head is None or model.trace_tokens(tokens).kinds != ("decoder",):
        raise UnsupportedArchitectureError(
            f"A continuation by {model.name} was asked for; it is no decoder with a language head. Select a model that writes, "
            "such as gpt2."
        )
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


def _next_logits(model: Model, tokens: Tokens, ids: list[int]) -> Float[Tensor, " vocabulary"]:
    inputs: dict[str, Any] = model.inputs(tokens)
    inputs["input_ids"] = torch.tensor([ids], device=model.network.device)
    if "token_type_ids" in inputs:
        inputs["token_type_ids"] = torch.zeros_like(inputs["input_ids"])
    assert model.head is not None  # `writes`
    with enough_memory(), torch.inference_mode():
        last = forward(model.network, **inputs).last_hidden_state[:, -1:]
        logits: Tensor = forward(model.head, inputs_embeds=last).logits[0, 0].float().cpu()
    return logits


def _without_end(tokens: Tokens) -> Tokens:
    """The tokens without the end token that some tokenizers add."""
    n_kept = len(tokens)
    while n_kept > 1 and tokens.is_added[n_kept - 1]:
        n_kept -= 1
    return tokens if n_kept == len(tokens) else _cut(tokens, n_kept)


def _cut(tokens: Tokens, n_kept: int) -> Tokens:
    kept = slice(n_kept)
    return replace(
        tokens,
        ids=tokens.ids[kept],
        labels=tokens.labels[kept],
        pieces=tokens.pieces[kept],
        is_special=tokens.is_special[kept],
        segment=tokens.segment[kept],
        word=tokens.word[kept],
        in_text=tuple(one for one in tokens.in_text if one < n_kept),
        unknown=tuple(one for one in tokens.unknown if one < n_kept),
    )


def _extended(model: Model, tokens: Tokens, ids: list[int]) -> Tokens:
    """The tokens and those that were written; their words are not known."""
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
