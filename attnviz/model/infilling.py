"""The token in a gap of a text: what a language model makes of each candidate, from the text before the gap and the text after it.

A masked language model predicts the gap itself. A decoder predicts only what follows, so the text after the gap is read
once for each candidate, and Bayes' rule joins both sides.

Source: Bayes' rule, P(t | before, after) = P(t | before) P(after | before, t) / Σ P(u | before) P(after | before, u), where both
factors are the decoder's own; Devlin et al. 2019, arXiv:1810.04805, section 3.1 (masked language model).
"""

import re
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from attnviz.arguments import typed
from attnviz.errors import (
    EmptyTextError,
    SelectionError,
    TextTooLongError,
    UnsupportedArchitectureError,
    enough_memory,
)
from attnviz.model.answers import language_head, token_logits
from attnviz.model.configuration import text_config
from attnviz.model.continuation import cut_after, without_end
from attnviz.model.incremental import IncrementalPass
from attnviz.model.model import Model
from attnviz.model.parts import fills_masks
from attnviz.model.token_labels import labels_of
from attnviz.records import Progress, Provenance, Record, Result, Tokens, check_index
from attnviz.records.table import Table

GAP = "___"
"""How a gap is written in a text; BERT's mask token, or the model's own, marks one as well."""
SHARE, MOST = 0.99, 1000
"""Candidates are taken until they cover this share of the probability before the gap, at most this many."""
_FILLER = " it"
"""A token in the gap, to see how the tokenizer divides what follows it."""
_BATCH = 128
"""Candidates that are read at once; larger batches take no less time for each."""
_CACHE_BYTES, _LOGITS_BYTES = 2**28, 2**26
"""Most bytes of the keys and values of a batch, and of logits at once."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Infilling(Result):
    """Candidates for the token in a gap, likeliest first. A word of several tokens is no candidate."""

    before: str
    after: str
    ids: Int[np.ndarray, " candidate"]
    labels: tuple[str, ...]
    probabilities: Float64[np.ndarray, " candidate"]
    """Of a decoder: P(candidate | before, after), given that the gap holds one of the candidates, so that they sum to 1. Of a
    masked language model: its own probability, of the whole vocabulary."""
    before_probabilities: Float64[np.ndarray, " candidate"] | None = None
    """P(candidate | before), of the whole vocabulary; None for a masked language model, which reads both sides at once."""
    after_log_probabilities: Float64[np.ndarray, " candidate"] | None = None
    """log P(after | before, candidate) in nats, the sum over the tokens after the gap; None for a masked language model."""
    mass: float
    """Share of P(· | before), or of a masked language model's prediction, that the candidates cover, 0 to 1."""
    provenance: Provenance

    def __post_init__(self) -> None:
        Record.__post_init__(self)
        given = (self.labels, self.probabilities, self.before_probabilities, self.after_log_probabilities)
        if any(array is not None and len(array) != len(self.ids) for array in given):
            raise self._unfit(f"its lists do not all have {len(self.ids)} candidates.")

    @property
    def left_out(self) -> float:
        """Share of P(· | before), or of the prediction, on tokens that are no candidates, 0 to 1."""
        return max(0.0, 1.0 - self.mass)

    @property
    def after_shares(self) -> Float64[np.ndarray, " candidate"] | None:
        """P(after | before, candidate) as shares that sum to 1: the probabilities, had all candidates been equally likely before."""
        logs = self.after_log_probabilities
        return None if logs is None else _shares(logs)

    def _table(self) -> Table:
        """A row for every candidate: its id, what the text before gave, what the text after made of it, and both."""
        header = ["rank", "id", "candidate", "probability"]
        columns: list[np.ndarray] = [self.probabilities]
        if self.before_probabilities is not None and self.after_log_probabilities is not None:
            header += ["probability before", "log probability of the text after (nats)"]
            columns += [self.before_probabilities, self.after_log_probabilities]
        rows = zip(self.ids.tolist(), self.labels, *(column.tolist() for column in columns), strict=True)
        return header, [[rank, *row] for rank, row in enumerate(rows, 1)]


@typed
def fill(
    model: Model,
    before: str,
    after: str | None = None,
    *,
    share: float = SHARE,
    most: int = MOST,
    progress: Progress | None = None,
) -> Infilling:
    """The likeliest tokens for a gap in a text, with what each side of the gap makes of them.

    Of a decoder the text before is read once, and its keys and values serve all candidates where the family keeps a cache; time and
    memory grow with the number of candidates and of tokens after the gap. The distribution is exact for the candidates: its only
    approximation is that the gap holds one of them.

    Args:
        before: the text before the gap; or, without ``after``, a text in which ``___`` or a mask token stands for the gap.
        after: the text after the gap, with the space that begins it; empty for a gap at the end.
        share: candidates are taken, likeliest before the gap first, until they cover this share of the probability.
        most: most candidates.
        progress: called with the share that is done, 0 to 1.

    Raises:
        EmptyTextError: nothing stands before the gap, and the decoder's tokenizer begins no text with a token of its own.
        InvalidTextError: as `attnviz.model.tokenization.tokenize`.
        ModelFailedError, OutOfMemoryError: as `attnviz.model.capture.forward`.
        SelectionError: no gap or several in the text, or a share or number of candidates out of range.
        TextTooLongError: both sides and one token between them are more than the model reads.
        UnsupportedArchitectureError: the checkpoint has no language head.
    """
    if not 0 < share <= 1 or most < 1:
        raise SelectionError(
            f"At most {most} candidates that cover {share:g} of the probability were asked for. Ask for at least one candidate, "
            "and a share above 0 and up to 1."
        )
    head = language_head(model, "what fills a gap")
    before, after = split_gap(model, before) if after is None else (before, after)
    if fills_masks(head):
        return _predicted(model, before, after, share, most)
    return _joined(model, before, after, share, most, progress or (lambda _: None))


def split_gap(model: Model, text: str) -> tuple[str, str]:
    """The text before the gap and the text after it.

    Raises:
        SelectionError: the text has no gap, or several.
    """
    marks = [GAP, "[MASK]", *filter(None, [model.mask_label])]
    gaps = list(re.finditer("|".join(["_{3,}", *map(re.escape, marks[1:])]), text))
    if len(gaps) != 1:
        raise SelectionError(
            f"A text with one gap was asked for; this one has {len(gaps) or 'none'}. Write {GAP} once, in the place of the token."
        )
    [gap] = gaps
    return text[: gap.start()], text[gap.end() :]


def gap_at(model: Model, tokens: Tokens, position: int) -> tuple[str, str]:
    """The text before and the text after the word that a token belongs to; of a pair, those of its own text.

    Raises:
        SelectionError: no such token, or a special token.
    """
    check_index("token", position, len(tokens), "this text")
    if tokens.template == "ids":
        raise SelectionError(
            "These tokens were given as ids, which no place in a text belongs to. Trace the text itself."
        )
    given, read = model.reading(tokens)
    number = int(read.text[position])
    if number < 0:
        raise SelectionError(
            f"Token {position}, {tokens.labels[position]}, was to be a gap; it is a special token. Select another one."
        )
    word = tokens.word[position]
    spans = [
        read.spans[at]
        for at in range(len(tokens))
        if at == position or (word >= 0 and tokens.word[at] == word and read.text[at] == number)
    ]
    text = given.texts[number]
    first, stop = given.content if number == 0 else (0, len(text))
    start, end = min(start for start, _ in spans), max(end for _, end in spans)
    start = end - len(text[start:end].lstrip())  # a space before a word may be a part of its token
    return text[first:start], text[end:stop]


def _predicted(model: Model, before: str, after: str, share: float, most: int) -> Infilling:
    """A masked language model's own prediction at its mask token."""
    tokens = model.tokenize(f"{before}{model.mask_label}{after}")
    at = np.flatnonzero(tokens.ids == model.tokenizer.mask_token_id)
    if len(at) != 1:
        raise SelectionError(
            f"One gap was asked for; this text has {len(at)} {model.mask_label} tokens. Leave the others out."
        )
    with enough_memory(), torch.inference_mode():
        state = torch.tensor(model.trace_tokens(tokens).last_hidden_state[at[0]])
        candidates, probabilities = _candidates(token_logits(model, state), share, most)
    return Infilling(
        before=before,
        after=after,
        ids=candidates.numpy(),
        labels=labels_of(model.tokenizer, candidates.tolist()),
        probabilities=probabilities.numpy(),
        mass=float(probabilities.sum()),
        provenance=model.provenance,
    )


def _joined(model: Model, before: str, after: str, share: float, most: int, progress: Progress) -> Infilling:
    """A decoder's prediction after the text before, times what it gives the text after, candidate by candidate."""
    tokens, after_ids = _sides(model, before, after)
    with enough_memory(), torch.inference_mode():
        reading = IncrementalPass(model, tokens)
        if reading.kinds != ("decoder",):
            raise UnsupportedArchitectureError(
                f"What fills a gap was asked for; {model.name} neither predicts masked tokens nor reads a text from left to right. "
                "Select a model that does, such as SmolLM2-135M-Instruct or bert-base-uncased."
            )
        candidates, from_before = _candidates(
            token_logits(model, reading.last_state[0, 0].float()), share, most
        )
        logs = [torch.zeros(0, dtype=torch.float64)]
        for batch in torch.split(candidates, _batch_size(reading)):
            logs.append(_log_probabilities(model, reading, batch, after_ids))
            progress(sum(map(len, logs)) / len(candidates))
    from_after = torch.cat(logs).numpy()
    probabilities = _shares(from_before.log().numpy() + from_after)
    order = np.argsort(-probabilities, kind="stable")
    return Infilling(
        before=before,
        after=after,
        ids=candidates.numpy()[order],
        labels=labels_of(model.tokenizer, candidates.numpy()[order].tolist()),
        probabilities=probabilities[order],
        before_probabilities=from_before.numpy()[order],
        after_log_probabilities=from_after[order],
        mass=float(from_before.sum()),
        provenance=model.provenance,
    )


def _sides(model: Model, before: str, after: str) -> tuple[Tokens, list[int]]:
    """The tokens before the gap, and the ids after it as the tokenizer writes them behind another token.

    A space before the gap belongs to the token in it.
    """
    before = before.rstrip(" ")
    tokens = without_end(model.tokenize(before)) if before else _opening(model)
    if not len(tokens):
        raise EmptyTextError(
            f"Nothing stands before the gap, and {model.name} begins no text with a token of its own, so it has nothing to predict "
            "from. Write a word before the gap."
        )
    if not after:
        return tokens, []
    filled = without_end(model.tokenize(before + _FILLER)).ids.tolist()
    whole = without_end(model.tokenize(before + _FILLER + after)).ids.tolist()
    if whole[: len(filled)] != filled:  # what follows is joined with the filler: read it alone
        return tokens, model.read_as(after)
    after_ids = whole[len(filled) :]
    if model.max_tokens is not None and (length := len(tokens) + 1 + len(after_ids)) > model.max_tokens:
        raise TextTooLongError(
            f"This text is {length:,} tokens long with its gap; at most {model.max_tokens:,} can be read. Shorten it.",
            length=length,
            limit=model.max_tokens,
            unit="tokens",
        )
    return tokens, after_ids


def _opening(model: Model) -> Tokens:
    """The tokens that the tokenizer puts before every text; none for many decoders."""
    tokens = model.tokenize(_FILLER)
    return cut_after(tokens, int(tokens.is_added.cumprod().sum()))


def _candidates(
    logits: Float[Tensor, " vocabulary"], share: float, most: int
) -> tuple[Int[Tensor, " candidate"], Float64[Tensor, " candidate"]]:
    """The likeliest tokens and their probabilities, until these sum to a share of 1."""
    probabilities, ids = logits.cpu().double().softmax(dim=-1).sort(descending=True, stable=True)
    n_needed = len(ids) if share == 1 else int((probabilities.cumsum(dim=0) < share).sum()) + 1
    n_candidate = min(n_needed, most, len(ids))
    return ids[:n_candidate], probabilities[:n_candidate]


def _batch_size(reading: IncrementalPass) -> int:
    return max(1, min(_BATCH, _CACHE_BYTES // max(1, reading.cache_bytes)))


def _log_probabilities(
    model: Model, reading: IncrementalPass, candidates: Int[Tensor, " candidate"], after: list[int]
) -> Float64[Tensor, " candidate"]:
    """Log P(after | before, candidate) for each candidate, in nats."""
    if not after:
        return torch.zeros(len(candidates), dtype=torch.float64)
    rows = torch.cat(
        [candidates[:, None], torch.tensor([after[:-1]], dtype=torch.int64).expand(len(candidates), -1)],
        dim=1,
    )
    states = reading.states_after(rows)
    wanted = torch.tensor(after, device=states.device).expand(len(candidates), -1).reshape(-1)
    flat = states.reshape(-1, states.shape[-1])
    n_row = max(1, _LOGITS_BYTES // (4 * text_config(language_head(model, "a gap").config).vocab_size))
    logs = [
        _log_softmax_at(token_logits(model, some), ids)
        for some, ids in zip(torch.split(flat, n_row), torch.split(wanted, n_row), strict=True)
    ]
    return torch.cat(logs).cpu().reshape(len(candidates), len(after)).sum(dim=1)


def _log_softmax_at(
    logits: Float[Tensor, "place vocabulary"], ids: Int[Tensor, " place"]
) -> Float64[Tensor, " place"]:
    """Log softmax of one entry a row; the largest logit is taken off first, so that rounding stays that of the logits."""
    shifted = logits.float() - logits.float().amax(dim=-1, keepdim=True)
    wanted = shifted.gather(-1, ids[:, None])[:, 0]
    return wanted.double() - shifted.exp_().sum(dim=-1).double().log()


def _shares(logs: Float64[np.ndarray, " candidate"]) -> Float64[np.ndarray, " candidate"]:
    """The softmax, in float64."""
    exponentials: np.ndarray = np.exp(logs - logs.max())
    return exponentials / exponentials.sum()  # type: ignore[no-any-return]
