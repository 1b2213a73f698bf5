"""Retrieval heads: the heads that look from a question at the sentence of a long text that answers it.

A sentence, the needle, is placed in a text, and a question at its end. In one pass the model reads all of it and the answer;
every head gets two numbers. Its weight on the needle is the mean, over the tokens that ask, of the sum of the weights on the
needle's tokens, the text's first token left out, where heads rest (Xiao et al. 2023, arXiv:2309.17453); it is defined here. Its retrieval score is the share of the answer's tokens that it copies: where the answer's
token is predicted, the head's largest weight is on a token of the needle, and that token is the answer's.

Source: Wu et al. 2024, "Retrieval Head Mechanistically Explains Long-Context Factuality" (arXiv:2404.15574), section 2: the
retrieval score |g ∩ k| / |k| of the tokens g that a head copies and the tokens k of the answer in the needle, counted for each
generated token as in retrieval_head_detection.py of github.com/nightdessert/Retrieval_Head, commit 1012272. They let the
model write the answer, and keep only the texts where it is right. Here the answer is read, in one pass: the score is theirs wherever
the model would write that answer itself (`NeedleHeads.writes_answer`), and is defined where it would not. Where the needle
goes: Kamradt 2023, github.com/gkamradt/LLMTest_NeedleInAHaystack, at the end of a sentence.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnviz.arguments import typed
from attnviz.effects.ablation import switched_off
from attnviz.effects.outcome import AnyOutcome, measured, unchanged, words_of
from attnviz.errors import SelectionError, TextTooLongError
from attnviz.maths.ranks import rank_correlations
from attnviz.model.answers import token_logits
from attnviz.model.parts import fills_masks
from attnviz.model.token_labels import labels_of
from attnviz.model.variants import OutcomeMeasure, measured_variants
from attnviz.records import (
    Head,
    Kind,
    Progress,
    Record,
    Result,
    Tokens,
    heads_in,
    progress_within,
)
from attnviz.records.table import Table

if TYPE_CHECKING:
    from attnviz.model.interventions import Intervention
    from attnviz.model.model import Model
    from attnviz.model.trace import Trace

DEPTHS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Where the needle is placed: shares of the text that are before it."""
N_BEST = 5
"""Heads that are followed from depth to depth, and switched off together."""
N_DRAWS = 5
"""Random draws of other heads that the best are compared with."""
_QUESTION = "\n\n"
"""Between text and question."""
_SENTENCE_END = re.compile(r"[.!?]['\")\]\u2019\u201d]*\s+|[\u3002\uff01\uff1f]\s*")
_ANSWERS = "An answer needs a model that predicts the next token, such as SmolLM2-135M-Instruct"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacedNeedle(Record):
    """A text with a needle in it and a question at its end, and which of its tokens are which."""

    tokens: Tokens
    depth: float
    """Share of the text's characters that are before the needle, which is at the end of a sentence nearest to where it was asked for."""
    needle: range
    """Positions of the needle's tokens."""
    asking: range
    """The tokens that look for the needle: each token after which a token of the answer comes, or without an answer the question's."""
    answer: range
    """Positions of the answer's tokens; empty without one."""

    def answer_ids(self) -> list[int]:
        """Ids of the answer's tokens."""
        return [int(number) for number in self.tokens.ids[self.answer.start : self.answer.stop]]

    def probability(self, model: "Model") -> OutcomeMeasure:
        """The probability of the whole answer after the question, as an outcome: the product of those of its tokens.

        Raises:
            SelectionError: it has no answer.
        """
        if not self.answer:
            raise SelectionError(
                "The probability of an answer was asked for; this needle was placed without one. " + _ANSWERS
            )

        def number(hidden: Float[Tensor, "variant token d_model"]) -> Float[Tensor, " variant"]:
            return self.log_probabilities(model, hidden).sum(dim=-1).exp()

        return number

    def log_probabilities(
        self, model: "Model", hidden: Float[Tensor, "variant token d_model"]
    ) -> Float[Tensor, "variant answer"]:
        """The logarithm of the probability of each token of the answer, after those before it."""
        logits = token_logits(model, hidden[:, self.asking.start : self.asking.stop].float())
        ids = torch.tensor(self.answer_ids(), device=logits.device)[None, :, None]
        chosen: Tensor = logits.log_softmax(dim=-1).gather(-1, ids.expand(len(logits), -1, -1))[..., 0]
        return chosen


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NeedleHeads(Result):
    """The weight of every head on a needle, and how much of the answer it copies, wherever the needle is."""

    kind: Kind
    needle: str
    question: str
    answer: str
    depths: tuple[float, ...]
    """Shares of the text's characters before the needle, as far as it was placed apart."""
    places: Int[np.ndarray, " depth"]
    """Position of the needle's first token."""
    n_tokens: Int[np.ndarray, " depth"]
    """Number of tokens that were read."""
    weights: Float[np.ndarray, "depth layer head"]
    """Sum of the weights on the needle's tokens, mean over the asking tokens; without the text's first token, where heads rest."""
    copied: Float[np.ndarray, "depth layer head"]
    """Retrieval score: the share of the answer's tokens that the head copies; NaN without an answer."""
    probabilities: Float[np.ndarray, "depth answer"]
    """Probability of each token of the answer, after those before it; none without an answer."""
    written: tuple[tuple[str, ...], ...]
    """The likeliest token in the place of each token of the answer, by depth."""
    writes: tuple[bool, ...]
    """For each depth, whether these are the answer's own tokens, so that the model writes the answer by itself."""

    @property
    def answer_probabilities(self) -> Float[np.ndarray, " depth"]:
        """Probability of the whole answer for each depth; 1 for an empty one."""
        return np.asarray(self.probabilities.prod(axis=1))

    @property
    def writes_answer(self) -> bool:
        """Whether the model writes the answer by itself wherever the needle is."""
        return bool(self.answer) and all(self.writes)

    @property
    def mean(self) -> Float[np.ndarray, "layer head"]:
        """Weight of every head on the needle, mean over the depths."""
        return np.asarray(self.weights.mean(axis=0))

    def ranked(self, depth: int | None = None) -> list[Head]:
        """All heads, the one with the largest weight on the needle first.

        Args:
            depth: its index; None for the mean over all depths.
        """
        numbers = self.mean if depth is None else self.weights[depth]
        return sorted(heads_in(numbers), key=lambda head: -float(numbers[head]))

    @property
    def agreement(self) -> Float[np.ndarray, "depth depth"]:
        """Spearman's rank correlation of the heads' weights between any two depths."""
        flat = np.nan_to_num(self.weights.reshape(len(self.depths), -1))
        seen = np.isfinite(self.weights.reshape(len(self.depths), -1))
        return np.stack(
            [rank_correlations(np.broadcast_to(row, flat.shape), flat, seen) for row in flat]
        ).astype(np.float32)

    @property
    def kept(self) -> Int[np.ndarray, "depth depth"]:
        """How many of the best heads of one depth are among the best of another."""
        best = [set(self.ranked(at)[:N_BEST]) for at in range(len(self.depths))]
        return np.array([[len(heads & others) for others in best] for heads in best], dtype=np.int64)

    def joined(self, other: "NeedleHeads") -> "NeedleHeads":
        """These depths followed by others of the same needle, question and answer."""
        new = [at for at, place in enumerate(other.places.tolist()) if place not in self.places]
        return replace(
            self,
            depths=(*self.depths, *(other.depths[at] for at in new)),
            places=np.concatenate([self.places, other.places[new]]),
            n_tokens=np.concatenate([self.n_tokens, other.n_tokens[new]]),
            weights=np.concatenate([self.weights, other.weights[new]]),
            copied=np.concatenate([self.copied, other.copied[new]]),
            probabilities=np.concatenate([self.probabilities, other.probabilities[new]]),
            written=(*self.written, *(other.written[at] for at in new)),
            writes=(*self.writes, *(other.writes[at] for at in new)),
        )

    def _table(self) -> Table:
        """A row for each depth and head, the largest weight first."""
        rows: list[list[object]] = []
        for at, depth in enumerate(self.depths):
            for head in self.ranked(at):
                copied = self.copied[at][head]
                rows.append([depth, *head, self.weights[at][head], "" if np.isnan(copied) else copied])
        return ["depth", "layer", "head", "weight on the needle", "retrieval score"], rows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeadsOff(Result):
    """An outcome without some heads together, and without as many random heads of the same layers."""

    outcome: str
    """What is measured, in words; "" for a function."""
    base: float
    """The outcome of the unchanged run."""
    heads: tuple[Head, ...]
    off: float
    """The outcome without these heads."""
    drawn: tuple[tuple[Head, ...], ...]
    """The random heads of each draw."""
    random: Float[np.ndarray, " draw"]
    """The outcome without them."""

    def _table(self) -> Table:
        """The unchanged run, the heads together, and each draw."""
        names = ["heads off", "which", "outcome", "effect"]

        def row(name: str, heads: Sequence[Head], outcome: float) -> list[object]:
            return [name, " ".join(map(str, heads)), outcome, outcome - self.base]

        drawn = zip(self.drawn, self.random.tolist(), strict=True)
        return names, [
            row("none", (), self.base),
            row("best", self.heads, self.off),
            *(row(f"random {number}", heads, outcome) for number, (heads, outcome) in enumerate(drawn, 1)),
        ]


@typed
def place_needle(
    model: "Model",
    text: str,
    needle: str,
    question: str,
    answer: str = "",
    *,
    depth: float = 0.5,
    cut: bool = False,
    max_tokens: int | None = None,
) -> PlacedNeedle:
    """A text with a needle at the end of a sentence, then a question, then its answer.

    Args:
        answer: what the model is to say after the question, better a part of the needle; an encoder, which predicts no next token, is
            given none.
        depth: share of the text that is before the needle, 0 to 1.
        cut: leave out the end of the text where the whole does not fit, instead of raising an error.
        max_tokens: a lower limit than the model's own.

    Raises:
        SelectionError: a depth outside 0 to 1, an empty needle or question, or an encoder-decoder model.
        EmptyTextError, InvalidTextError, TextTooLongError: as `Model.tokenize`.
    """
    if not 0 <= depth <= 1:
        raise SelectionError(
            f"A needle at depth {depth:g} was asked for; depths are shares of the text, 0 to 1. Give one of those."
        )
    if not needle.strip() or not question.strip():
        raise SelectionError(
            "A needle test was asked for without a needle or without a question. Write a sentence to be found, and a question about it."
        )
    if model.network.config.is_encoder_decoder:
        raise SelectionError(
            f"A needle test of {model.name} was asked for; it has an encoder and a decoder, and the question is in another text than the "
            "needle. Select a decoder such as SmolLM2-135M-Instruct."
        )
    answer = answer.strip() if _predicts_next(model) else ""
    limit = min((most for most in (model.max_tokens, max_tokens) if most is not None), default=None)
    while True:
        place = _nearest_end(text, depth)
        whole, characters = _composed(text, place, needle.strip(), question.rstrip(), answer)
        try:
            tokens = model.tokenize(whole, max_tokens=limit)
        except TextTooLongError as error:
            if not cut or not text:
                raise
            text = _without_last(model, text, error)
            continue
        of_needle, of_question, of_answer = _positions(model, tokens, characters)
        asking = range(of_answer.start - 1, of_answer.stop - 1) if answer else of_question
        before = place / len(text) if text else 0.0
        return PlacedNeedle(tokens=tokens, depth=before, needle=of_needle, asking=asking, answer=of_answer)


def _predicts_next(model: "Model") -> bool:
    return model.language_head is not None and not fills_masks(model.language_head)


def _nearest_end(text: str, depth: float) -> int:
    """Where the end of a sentence, or of the text, is nearest to a depth."""
    ends = [0, *(sentence.end() for sentence in _SENTENCE_END.finditer(text)), len(text)]
    return min(ends, key=lambda end: abs(end - depth * len(text)))


def _composed(
    text: str, place: int, needle: str, question: str, answer: str
) -> tuple[str, tuple[range, range, range]]:
    """The whole text, and the characters of needle, question and answer in it."""
    before, after = text[:place], text[place:]
    parts = [before, " " if before and not before[-1].isspace() else "", needle, " " if after else "", after]
    parts += [_QUESTION, question, " " if answer else "", answer]
    at = np.cumsum([0, *map(len, parts)]).tolist()
    return "".join(parts), (range(at[2], at[3]), range(at[6], at[7]), range(at[8], at[9]))


def _without_last(model: "Model", text: str, error: TextTooLongError) -> str:
    """The text without as much of its end as a text that it is a part of is too long."""
    n_beyond = error.length - error.limit
    if error.unit == "characters":
        return text[:-n_beyond]
    tokens = model.tokenize(text, cut=True)
    reading = model.reading(tokens)[1]
    starts = [first for (first, _), of in zip(reading.spans, reading.text, strict=True) if of >= 0]
    n_dropped = max(1, n_beyond - sum(tokens.n_cut))
    return text[: starts[-n_dropped]] if n_dropped <= len(starts) else ""


def _positions(
    model: "Model", tokens: Tokens, characters: tuple[range, range, range]
) -> tuple[range, range, range]:
    """The tokens that stand for some characters, for each of the three."""
    reading = model.reading(tokens)[1]
    found = []
    for part in characters:
        at = [
            position
            for position, ((first, stop), of) in enumerate(zip(reading.spans, reading.text, strict=True))
            if of >= 0 and first < part.stop and stop > part.start
        ]
        found.append(range(at[0], at[-1] + 1) if at else range(0))
    return found[0], found[1], found[2]


@typed
def needle(
    model: "Model",
    text: str,
    needle: str,
    question: str,
    answer: str = "",
    *,
    depths: Sequence[float] = DEPTHS,
    cut: bool = False,
    max_tokens: int | None = None,
    progress: Progress | None = None,
) -> NeedleHeads:
    """How much every head looks at a needle in a text while a question about it is answered, with the needle at several depths.

    One pass of the text for each depth; only the rows of the asking tokens are computed. Depths that lead to the same place are read once.

    Args:
        needle: the sentence that is placed in the text.
        question: what stands at the end of the text, better without what the answer begins with: "The key to the cellar lies".
        answer: "under the blue stone", better a part of the needle; empty to rank heads by the question's tokens alone. Not used with an
            encoder, which predicts no next token.
        depths: shares of the text that are before the needle.
        cut, max_tokens: as `place_needle`.
        progress: called with the share that is done, 0 to 1.

    Raises:
        CaptureError, ModelFailedError, OutOfMemoryError: as `Model.trace_tokens`.
        SelectionError: no depth, or as `place_needle`.
        EmptyTextError, InvalidTextError, TextTooLongError: as `place_needle`.
    """
    if not depths:
        raise SelectionError(
            "A needle test at no depth was asked for; it takes one or more. Give depths, as in (0.1, 0.5, 0.9)."
        )
    found: list[NeedleHeads] = []
    given = (model, text, needle, question, answer)
    for number, depth in enumerate(depths, 1):
        placed = place_needle(*given, depth=depth, cut=cut, max_tokens=max_tokens)
        if all(placed.needle.start not in heads.places for heads in found):
            written = {"needle": needle.strip(), "question": question.strip(), "answer": answer.strip()}
            within = progress_within(progress, (number - 1) / len(depths), 1 / len(depths))
            trace = model.trace_tokens(placed.tokens, progress=within)
            found.append(needle_heads(model, trace, placed, **written))
        if progress is not None:
            progress(number / len(depths))
    first, *others = found
    for other in others:
        first = first.joined(other)
    return first


def needle_heads(
    model: "Model", trace: "Trace", placed: PlacedNeedle, *, needle: str, question: str, answer: str
) -> NeedleHeads:
    """How much every head of a trace looks at the needle in its text; `needle` for one depth."""
    [kind] = trace.kinds
    asking, ids = placed.asking, trace.tokens.ids
    at = range(max(placed.needle.start, 1), placed.needle.stop)
    weights = np.full(trace.shape(kind), np.nan, dtype=np.float32)
    copied = weights.copy()
    for layer in range(trace.n_layers(kind)):
        blocks = trace.blocks(layer, kind, rows=slice(asking.start, asking.stop))
        rows = np.concatenate([numbers for _, numbers in blocks], axis=1)  # [head, asking, key]
        heads = len(rows)
        weights[layer, :heads] = rows[..., at.start : at.stop].sum(axis=-1).mean(axis=-1)
        if placed.answer:
            largest = rows.argmax(axis=-1)  # [head, asking]
            is_needle = (largest >= at.start) & (largest < at.stop)
            copied[layer, :heads] = (is_needle & (ids[largest] == placed.answer_ids())).mean(axis=-1)
    probabilities, likeliest = _read_answer(model, trace, placed)
    return NeedleHeads(
        kind=kind,
        needle=needle,
        question=question,
        answer=answer if placed.answer else "",
        depths=(placed.depth,),
        places=np.array([placed.needle.start]),
        n_tokens=np.array([len(ids)]),
        weights=weights[None],
        copied=copied[None],
        probabilities=probabilities[None],
        written=(labels_of(model.tokenizer, likeliest),),
        writes=(likeliest == placed.answer_ids(),),
    )


def _read_answer(
    model: "Model", trace: "Trace", placed: PlacedNeedle
) -> tuple[Float[np.ndarray, " answer"], list[int]]:
    """The probability of each token of the answer, and the likeliest in its place."""
    if not placed.answer:
        return np.zeros(0, dtype=np.float32), []
    with torch.inference_mode():
        states = torch.tensor(trace.last_hidden_state[placed.asking.start : placed.asking.stop])
        logits = token_logits(model, states)
    probabilities = logits.float().softmax(dim=-1).cpu().numpy()
    chosen = probabilities[np.arange(len(placed.answer)), placed.answer_ids()]
    return chosen, logits.argmax(dim=-1).tolist()


@typed
def heads_off(
    model: "Model",
    trace: "Trace",
    outcome: AnyOutcome,
    heads: Sequence[Head],
    *,
    n_draws: int = N_DRAWS,
    seed: int = 0,
    kind: Kind | None = None,
    progress: Progress | None = None,
) -> HeadsOff:
    """The outcome of a text without some heads together, and without as many random heads of the same layers, in several draws.

    Of a layer all of whose other heads are fewer than those asked for, all others are drawn.

    Args:
        trace: of the text without interventions.
        outcome: as `attnviz.ablate` takes it.
        heads: such as the best `N_BEST` of `NeedleHeads.ranked`.
        n_draws: draws of random heads, a forward pass each.
        seed: of the draws.

    Raises:
        As `attnviz.ablate`; SelectionError also for no head, a head twice, or fewer than one draw.

    Source: Wu et al. 2024 (arXiv:2404.15574), section 4.1, who mask retrieval heads and as many random ones.
    """
    measure = measured(model, trace, outcome)
    kind = trace.attention(0, kind).kind
    if not heads or len(set(heads)) < len(heads) or n_draws < 1:
        raise SelectionError(
            f"{len(heads)} heads off against {n_draws} random draws were asked for; it takes one head or more, each once, and one draw "
            "or more. Name such heads."
        )
    for head in heads:
        trace.head(*head, kind)  # raises where there is none
    draws = np.random.default_rng(seed)
    drawn = [_drawn(trace, kind, heads, draws) for _ in range(n_draws)]

    def off(places: Sequence[Head]) -> "list[Intervention]":
        return [change for place in places for change in switched_off(trace, place, kind)]

    base = unchanged(trace, measure)
    outcomes = measured_variants(model, trace, [*map(off, (heads, *drawn))], measure, progress=progress)
    return HeadsOff(
        outcome=words_of(measure, trace),
        base=base,
        heads=tuple(heads),
        off=float(outcomes[0]),
        drawn=tuple(drawn),
        random=outcomes[1:],
    )


def _drawn(trace: "Trace", kind: Kind, heads: Sequence[Head], draws: np.random.Generator) -> tuple[Head, ...]:
    """As many random heads of each layer, none of them one of these."""
    drawn: list[Head] = []
    for layer in sorted({head.layer for head in heads}):
        taken = {head.head for head in heads if head.layer == layer}
        others = [head for head in range(trace.n_heads(layer, kind)) if head not in taken]
        chosen = draws.choice(others, size=min(len(taken), len(others)), replace=False)
        drawn += [Head(layer, int(head)) for head in sorted(chosen)]
    return tuple(drawn)


@typed
def needle_off(
    model: "Model",
    text: str,
    needle: str,
    question: str,
    answer: str,
    heads: Sequence[Head],
    *,
    depth: float = 0.5,
    outcome: AnyOutcome | None = None,
    cut: bool = False,
    max_tokens: int | None = None,
    n_draws: int = N_DRAWS,
    seed: int = 0,
    progress: Progress | None = None,
) -> HeadsOff:
    """What happens to the answer about a needle without some heads; `heads_off` for a placed needle.

    Args:
        outcome: as `attnviz.ablate` takes it, of the whole text with question and answer; None for the answer's probability.
        Others as for `needle` and `heads_off`.

    Raises:
        As `needle` and `heads_off`; SelectionError also where there is no answer whose probability could be measured.
    """
    placed = place_needle(model, text, needle, question, answer, depth=depth, cut=cut, max_tokens=max_tokens)
    measure = placed.probability(model) if outcome is None else outcome
    of_pass = 1 / (n_draws + 2)
    trace = model.trace_tokens(placed.tokens, progress=progress_within(progress, 0.0, of_pass))
    told = progress_within(progress, of_pass, 1 - of_pass)
    off = heads_off(model, trace, measure, heads, n_draws=n_draws, seed=seed, progress=told)
    return off if outcome is not None else replace(off, outcome=f"probability of “{answer.strip()}”")
