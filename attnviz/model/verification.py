"""The numbers of a trace compared with the model's own: all that matrices, maps and rankings are drawn from.

The differences that rounding explains are in `attnviz.model.tolerances`.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnviz.arguments import typed
from attnviz.errors import ShapeError, VerificationError
from attnviz.maths import attribution
from attnviz.maths.attention import expand_heads, join_heads
from attnviz.maths.rounding import is_exact_factor
from attnviz.model.configuration import start_remark
from attnviz.model.memory import refuse_beyond_memory
from attnviz.model.reference import ReferenceCall, ReferencePass, in_float64
from attnviz.model.storage import Storage
from attnviz.model.token_labels import BYTES, PART
from attnviz.model.tolerances import REASONS, UNITS, Distance, Tolerances, drift
from attnviz.records import (
    FILE,
    ROLE_NAMES,
    WEIGHTS,
    Check,
    Kind,
    Progress,
    Tokens,
    VerificationReport,
    as_label,
    bare,
    head_table,
    progress_within,
)

if TYPE_CHECKING:
    from attnviz.model.model import Model
    from attnviz.model.trace import Trace

_NO_CHARACTER = "\N{REPLACEMENT CHARACTER}"
"""What a tokenizer decodes bytes to that form no whole character."""

NORMS, OUTPUT = "norm-based weights", "output after W_O"
_UNKNOWN_OUTPUT = (
    "W_O of this family does not take the heads' outputs unchanged, or attnviz does not find W_O, so the contribution "
    "of a head to the layer's output is not known."
)

_NO_FILES = "It is a live model: no files compared."
_FIRST = 0.9
"""Share of the progress for the first comparison, which is the only one for most models."""
_GIVEN_IDS = "The ids were given, so they are not compared with the tokenizer's."


@typed
def verify(model: "Model", trace: "Trace", *, progress: Progress | None = None) -> VerificationReport:
    """The numbers of a trace, compared with the model's own, in every layer and head.

    The files of the weights are those that the model was loaded from (a live model, `attnviz.wrap`, has none), where each of their tensors was compared with the
    parameter in memory (`attnviz.model.weights`). Tokens are compared with those of the tokenizer; queries, keys, values,
    scales, masks and biases with the inputs of the model's own attention; scores with what its softmax gets, where the family
    adds a term of its own (a softcap, or what its attention class computes); attention weights (those of `Trace.pattern` and
    `Trace.layer_weights`), norm-based weights, head outputs and the output after W_O with its outputs; and the last hidden
    state with the model's. What is computed from these numbers, such as statistics, rollout, maps and effects, is not compared.

    Both runs share all modules but attention, and with these their errors: a family's module that left out, say, its rotary
    positions would still pass.

    Vectors that differ more than rounding usually explains are compared once more, with a tolerance taken from the
    same model in float64: some models amplify every rounding error.

    In a text of over 1,024 tokens attention is computed and compared some queries at a time: the weights of
    `Trace.blocks` and of `HeadAttention` by rows with the family's own attention on the same rows, every cell of every head.

    Args:
        progress: called with the share that is done, 0 to 1; an error that it raises ends the comparison.

    Raises:
        VerificationError: the layers, heads or tokens of the reference differ from the trace's; or the trace has an intervention,
            which the model's own attention does not.
        OutOfMemoryError: a text of over 1,024 tokens whose comparison does not fit into the free memory.
    """
    if trace.interventions:
        raise VerificationError(
            f"This trace was made with {len(trace.interventions)} intervention(s), so the model has no numbers of "
            "its own to compare it with. Verify the trace of the same text without them."
        )
    if trace.is_given:
        raise VerificationError(
            "This trace was made from arrays: your numbers, not compared. attnviz.wrap(model, tokenizer) traces a model that can be."
        )
    n_token = max(len(trace.key_tokens(kind)) for kind in trace.kinds)
    refuse_beyond_memory(model.network, n_token, verified=True)
    report = _compare(model, trace, {}, progress_within(progress, 0.0, _FIRST))
    drifted = {check.name for check in report.failed} & {*ROLE_NAMES.values(), "last hidden state"}
    if drifted:
        exact = _exact_vectors(model, trace, progress_within(progress, _FIRST, (1 - _FIRST) / 2))
        report = _compare(model, trace, exact, progress_within(progress, (1 + _FIRST) / 2, (1 - _FIRST) / 2))
    progress_within(progress, 0.0, 1.0)(1.0)
    return report


def reference_weights(
    model: "Model", trace: "Trace", layer: int, kind: Kind | None = None, *, rows: slice = slice(None)
) -> Float[np.ndarray, "head row key"]:
    """The model's own attention weights of one layer.

    Args:
        rows: the queries that are asked for; all by default.

    Raises:
        SelectionError: no such layer or kind.
    """
    ours = trace.attention(layer, kind)
    asked = range(ours.query.shape[1])[rows]
    weights: list[np.ndarray] = []

    def keep(call: ReferenceCall) -> None:
        if (call.kind, call.layer) == (ours.kind, layer):
            for block in call.blocks:
                of_block = slice(max(asked.start, block.rows.start), min(asked.stop, block.rows.stop))
                if of_block.start < of_block.stop:
                    within = slice(of_block.start - block.rows.start, of_block.stop - block.rows.start)
                    weights.append(block.weights.numpy()[:, within])

    ReferencePass(model.reference, keep).run(**model.inputs(trace.tokens, trace.target_tokens))
    return weights[0] if len(weights) == 1 else np.concatenate(weights, axis=1)


_Vectors = Mapping[tuple[Kind, int, str] | None, np.ndarray]
"""Queries, keys and values [head, token, d] by kind, layer and name, and the last hidden state at None."""


def _exact_vectors(model: "Model", trace: "Trace", progress: Progress) -> _Vectors:
    """Vectors of the reference in float64."""
    vectors: dict[tuple[Kind, int, str] | None, np.ndarray] = {}
    calls = [call for calls in trace.layers.values() for call in calls]
    storage = Storage(sum(getattr(call, role).nbytes for call in calls for role in ROLE_NAMES))

    def keep(call: ReferenceCall) -> None:
        for role in ROLE_NAMES:
            vectors[call.kind, call.layer, role] = storage.keep(getattr(call, role).numpy())
        progress(len(vectors) / (len(ROLE_NAMES) * len(calls)))

    try:
        reference = in_float64(model.reference)
        hidden = ReferencePass(reference, keep).run(**model.inputs(trace.tokens, trace.target_tokens))
    finally:
        storage.end()
    vectors[None] = hidden[None].numpy()
    return vectors


def _compare(model: "Model", trace: "Trace", exact: _Vectors, progress: Progress) -> VerificationReport:
    comparison = _Comparison(model, trace, exact, progress)
    reference = ReferencePass(model.reference, comparison.attention, comparison.output)
    hidden = reference.run(**model.inputs(trace.tokens, trace.target_tokens))
    return comparison.report(hidden.numpy())


class _Comparison:
    """The checks of one trace, made while the reference runs."""

    def __init__(self, model: "Model", trace: "Trace", exact: _Vectors, progress: Progress) -> None:
        self._model, self._trace, self._exact, self._progress = model, trace, exact, progress
        self._dtype = model.network.dtype
        self._differences: dict[str, dict[Kind, list[np.ndarray]]] = {}
        self._allowed: dict[str, dict[Kind, list[np.ndarray]]] = {}
        self._n_calls = 0
        self._heads: tuple[np.ndarray, Distance] | None = None
        self._changed_files = model.weights.changed()
        if model.weights.stamps:
            self._add(FILE, trace.kinds[0], [len(self._changed_files)], [0.0])
        for name, count in _wrong_tokens(model, trace).items():
            self._add(name, trace.kinds[0], [count], [0.0])

    def attention(self, call: ReferenceCall) -> None:
        """Compares inputs and outputs of one attention of the reference with the trace."""
        kind, layer, trace = call.kind, call.layer, self._trace
        self._check_axes(call)
        self._n_calls += 1
        n_head = len(call.query)
        ours = trace.attention(layer, kind)
        distances = {
            role: Distance(
                np.repeat(getattr(ours, role), n_head // len(getattr(ours, role)), axis=0),
                expand_heads(getattr(call, role), n_head).numpy(),
            )
            for role in ROLE_NAMES
        }
        for role, name in ROLE_NAMES.items():
            differences, allowed = (
                distances[role].share,
                self._drift((kind, layer, role), getattr(call, role)),
            )
            self._add(name, kind, differences, np.full_like(differences, allowed))
            distances[role] = distances[role].capped(allowed)
        self._add("scale", kind, [abs(ours.scale / call.scale - 1.0)], [0.0])
        self._add("attention mask", kind, [_cells_apart(ours.allowed, call.allowed)], [0.0])
        bias = _bias_apart(ours.bias, call.bias)
        # a bias that a family's own class computes from vectors differs as these do; the scores themselves are compared
        allowed = self._drift((kind, layer, "query"), call.query) if call.has_scores else 0.0
        self._add("score bias", kind, [float(bias.share.max())], [allowed])

        tolerances = Tolerances(
            **distances,
            bias=bias.capped(allowed),
            scale=call.scale,
            softcap=call.softcap,
            n_key=call.key.shape[1],
            dtype=self._dtype,
        )
        output = self._blocks(call, tolerances)
        outputs = trace.outputs(layer, kind)
        heads, largest = Distance(outputs, output), distances["value"].largest
        self._add("head outputs", kind, heads.difference / largest, tolerances.outputs)
        self._heads = outputs, heads.capped(tolerances.outputs * largest / heads.largest)
        self._progress(self._n_calls / sum(map(len, trace.layers.values())))

    def _blocks(self, call: ReferenceCall, tolerances: Tolerances) -> Float[np.ndarray, "head query d_value"]:
        """Compares what the reference computes with what is shown, some queries at a time; returns its outputs of the heads."""
        kind, heads = call.kind, range(len(call.query))
        largest = np.zeros(len(call.query), dtype=np.float32)
        # the largest difference of each head, NaN if any is
        of_scores, of_weights, of_norms = (np.zeros(len(call.query)) for _ in range(3))
        lengths = self._lengths(call) if kind in self._model.output_maps else None
        outputs = []
        for block in call.blocks:
            scores, patterns, at_once = _shown(self._trace, call.layer, kind, block.rows)
            weights = block.weights.numpy()
            for head in heads:
                for ours in (patterns[head], at_once[head]):
                    of_weights[head] = np.maximum(of_weights[head], _apart(ours, weights[head]))
            if block.scores is not None:
                theirs = block.scores.numpy()
                seen = np.ones(theirs.shape, dtype=bool)
                if call.allowed is not None:
                    allowed = call.allowed.numpy()
                    seen &= allowed if allowed.shape[1] == 1 else allowed[:, block.rows]
                theirs = np.where(seen, theirs, 0.0)
                largest = np.maximum(largest, np.abs(theirs).max(axis=(1, 2)))
                for head in heads:
                    of_head = scores[head]
                    assert of_head is not None  # a trace of a model has its scores
                    ours = np.where(seen[head], of_head, 0.0)
                    of_scores[head] = np.maximum(of_scores[head], _apart(ours, theirs[head]))
            if lengths is not None:
                for head in heads:
                    ours = attribution.head_norms(patterns[head], lengths[0][head])
                    of_norms[head] = np.maximum(
                        of_norms[head], _apart(ours, weights[head] * lengths[1][head])
                    )
            outputs.append(block.output.numpy())
        if call.has_scores:
            largest = np.maximum(largest, np.finfo(np.float32).tiny)
            self._add("scores", kind, of_scores / largest, tolerances.scores / largest)
        self._add(WEIGHTS, kind, of_weights, tolerances.weights)
        if lengths is not None:
            weight = torch.tensor(self._model.output_maps[kind][call.layer].weight)
            longest = np.maximum(lengths[1].max(axis=1), np.finfo(np.float32).tiny)
            stretch = weight.norm(dim=(1, 2)).numpy() / longest
            self._add(NORMS, kind, of_norms / longest, tolerances.norms(stretch, *weight.shape[1:]))
        return outputs[0] if len(outputs) == 1 else np.concatenate(outputs, axis=1)

    def _lengths(
        self, call: ReferenceCall
    ) -> tuple[Float[np.ndarray, "head key"], Float[np.ndarray, "head key"]]:
        """The lengths of the values' vectors: the trace's, and of those that the reference's W_O makes."""
        weight = torch.tensor(self._model.output_maps[call.kind][call.layer].weight)
        values = expand_heads(call.value, len(weight))
        theirs = torch.stack(  # a head at a time, which fits into the processor's cache
            [torch.matmul(value, maps).norm(dim=-1) for value, maps in zip(values, weight, strict=True)]
        ).numpy()  # [head, key]
        return self._trace.value_lengths(call.layer, call.kind), theirs

    def output(self, kind: Kind, layer: int, output: Tensor) -> None:
        """Compares the output of the reference's W_O with the sum of the contributions of the trace's heads."""
        assert self._heads is not None  # W_O comes after attention
        outputs, heads = self._heads
        known, call = self._model.output_maps[kind][layer], self._trace.attention(layer, kind)
        weight, bias = (
            (known.weight, known.bias)  # a bundle holds no W_O
            if call.output_weight is None
            else (call.output_weight, call.output_bias)
        )
        ours = join_heads(
            torch.tensor(outputs), torch.tensor(weight), None if bias is None else torch.tensor(bias)
        )
        theirs = output.numpy()
        largest = max(float(np.abs(theirs).max()), float(np.finfo(np.float32).tiny))
        allowed = heads.joined(known.weight, self._dtype) / largest
        self._add(OUTPUT, kind, [_apart(ours.numpy(), theirs) / largest], [allowed])

    def report(self, hidden: Float[np.ndarray, "token d_model"]) -> VerificationReport:
        """All checks, after the reference has computed its last hidden state."""
        trace = self._trace
        expected = {kind: trace.n_layers(kind) for kind in trace.kinds}
        counts = {kind: len(layers) for kind, layers in self._differences["scale"].items()}
        if counts != expected:
            raise VerificationError(
                f"{trace.provenance.model} has layers of attention {counts}, attnviz recorded {expected}; they cannot "
                "be compared. Report this model."
            )
        last = Distance(trace.last_hidden_state[None], hidden[None])
        self._n_calls += 1
        self._add(
            "last hidden state", trace.kinds[0], last.share, [self._drift(None, torch.tensor(hidden)[None])]
        )
        if not any(call.bias is not None for calls in trace.layers.values() for call in calls) and not any(
            table.any() for tables in self._differences["score bias"].values() for table in tables
        ):
            del self._differences["score bias"]  # a family without one
        missing = [kind for kind in trace.kinds if kind not in self._model.output_maps]
        reasons = {name: reason.format(dtype=trace.provenance.dtype) for name, reason in REASONS.items()}
        reasons[FILE] = self._model.weights.in_words(self._changed_files)
        reasons[WEIGHTS] += self._why_identical()
        if trace.target_tokens is not None and "tokens" in self._differences:
            remark = start_remark(self._model.folder, int(trace.target_tokens.ids[0]))
            reasons["tokens"] = f"{reasons['tokens']} {remark}".rstrip()
        checks = tuple(
            Check(
                name=name,
                differences={kind: head_table(layers) for kind, layers in self._differences[name].items()},
                tolerances={kind: head_table(layers) for kind, layers in self._allowed[name].items()},
                unit=UNITS[name],
                reason=reasons[name],
            )
            for name in UNITS
            if name in self._differences
        )
        return VerificationReport(
            checks=checks,
            not_compared={
                **({} if self._model.weights.stamps else {FILE: _NO_FILES}),
                **({} if "tokens" in self._differences else {"tokens": _GIVEN_IDS}),
                **(dict.fromkeys((NORMS, OUTPUT), _UNKNOWN_OUTPUT) if missing else {}),
            },
            provenance=trace.provenance,
        )

    def _why_identical(self) -> str:
        """Why all weights are bit-identical, as a sentence after others; empty where they are not, or the reason is another."""
        scales = {call.scale for calls in self._trace.layers.values() for call in calls}
        differences = [table for tables in self._differences[WEIGHTS].values() for table in tables]
        if any(difference.any() for difference in differences):  # NaN is no 0
            return ""
        if not all(is_exact_factor(scale, self._dtype) for scale in scales):
            return ""
        named = " and ".join(_power_of_two(scale) for scale in sorted(scales))
        reason = f"scale, {named}, is a power" if len(scales) == 1 else f"scales, {named}, are powers"
        return (
            f" Here they are bit-identical: the {reason} of two, so that scaling rounds nothing, whether it comes before the product "
            "of query and key or after."
        )

    def _add(
        self,
        name: str,
        kind: Kind,
        values: "np.ndarray | Sequence[float | int]",
        allowed: "np.ndarray | Sequence[float]",
    ) -> None:
        """Adds a check of one layer: a number for each head, or one for all. A tolerance of NaN allows nothing."""
        for tables, numbers in (
            (self._differences, values),
            (self._allowed, np.nan_to_num(allowed, posinf=np.inf)),
        ):
            tables.setdefault(name, {}).setdefault(kind, []).append(np.asarray(numbers, dtype=np.float32))

    def _drift(self, place: tuple[Kind, int, str] | None, theirs: Tensor) -> float:
        """Tolerance of vectors, as a share of their largest number."""
        usual = drift(
            self._n_calls,
            d_model=self._trace.last_hidden_state.shape[-1],
            n_key=max(len(self._trace.key_tokens(kind)) for kind in self._trace.kinds),
            dtype=self._dtype,
        )
        if place not in self._exact:
            return usual
        return max(usual, 8 * float(Distance(theirs.numpy(), self._exact[place]).share.max()))

    def _check_axes(self, call: ReferenceCall) -> None:
        trace, kind = self._trace, call.kind
        shape = tuple(call.query.shape), tuple(call.key.shape), tuple(call.value.shape)
        recorded: object = "nothing"
        if kind in trace.kinds and call.layer < trace.n_layers(kind):
            ours = trace.attention(call.layer, kind)
            recorded = ours.query.shape, ours.key.shape, ours.value.shape
        if recorded != shape:
            raise VerificationError(
                f"{trace.provenance.model} has queries, keys and values {shape} in {kind} layer {call.layer}, "
                f"attnviz recorded {recorded}; they cannot be compared. Report this model."
            )


def _shown(
    trace: "Trace", layer: int, kind: Kind, rows: slice
) -> tuple[Sequence[np.ndarray | None], Sequence[np.ndarray], np.ndarray]:
    """Scores and weights of every head as they are shown head by head, and the weights of all heads at once.

    Of some rows, as long texts are shown, or of all, as patterns.
    """
    if rows.stop - rows.start < trace.attention(layer, kind).query.shape[1]:
        heads = (trace.head(layer, head, kind) for head in range(trace.n_heads(layer, kind)))
        scores, weights = zip(*(of_head.scores_and_weights(rows) for of_head in heads), strict=True)
        at_once = [made for _, made in trace.blocks(layer, kind, rows=rows)]
        return scores, weights, np.concatenate(at_once, axis=1)
    shown = (_pattern(trace, layer, head, kind) for head in range(trace.n_heads(layer, kind)))
    scores, weights = zip(*shown, strict=True)
    return scores, weights, trace.layer_weights(layer, kind)


def _pattern(trace: "Trace", layer: int, head: int, kind: Kind) -> tuple[np.ndarray | None, np.ndarray]:
    """Scores and weights as they are shown; numbers that are no attention, which nothing shows, fail the check all the same."""
    try:
        pattern = trace.pattern(layer, head, kind)
    except ShapeError:
        return trace.head(layer, head, kind).scores_and_weights()
    return pattern.scores, pattern.weights


def _power_of_two(factor: float) -> str:
    """A power of two: "1/8"."""
    return f"{factor:g}" if abs(factor) >= 1 else f"1/{1 / factor:g}"


def _wrong_tokens(model: "Model", trace: "Trace") -> dict[str, float]:
    """Number of ids that differ from the tokenizer's, unless they were given, and of labels that belong to another id."""
    texts = [tokens for tokens in (trace.tokens, trace.target_tokens) if tokens is not None]
    labels = {"labels": float(sum(_wrong_labels(model, text) for text in texts))}
    if any(text.template == "ids" for text in texts):
        return labels
    ids = sum(_wrong_ids(model, text, is_target=text is trace.target_tokens) for text in texts)
    return {"tokens": float(ids), **labels}


def _wrong_labels(model: "Model", tokens: Tokens) -> int:
    """Number of labels that are neither their token's entry in the vocabulary nor the text that it is decoded to.

    A token that alone decodes to no whole character has a label from the characters that it and its neighbours of this kind
    decode to together, or of bytes where that has no whole character either.
    """
    read = [model.spellings(int(number)) for number in tokens.ids]
    wrong = 0
    for is_part, run in groupby(range(len(tokens)), key=lambda at: _NO_CHARACTER in read[at][1]):
        positions = list(run)
        decoded = model.decode(tokens.ids[positions].tolist()) if is_part else ""
        together = "".join(map(as_label, decoded))  # one by one, as a joiner is visible only within a text
        for at in positions:
            label, (entry, text) = tokens.labels[at], read[at]
            plain = bare(BYTES.sub(_NO_CHARACTER, PART.sub("", label)))
            is_right = plain in together if is_part else plain == bare(as_label(text))
            wrong += not (is_right or label in (entry, as_label(entry)))
    return wrong


def _wrong_ids(model: "Model", tokens: Tokens, *, is_target: bool) -> int:
    expected = np.array(model.token_ids(tokens, is_target=is_target), dtype=np.int64)
    if len(expected) != len(tokens):
        return len(tokens)
    for position in tokens.masked:
        expected[position] = model.tokenizer.mask_token_id
    return int((expected != tokens.ids).sum())


def _cells_apart(ours: np.ndarray | None, theirs: Tensor | None) -> float:
    """Number of cells that only one of two masks allows; None allows all."""
    left = np.ones((1, 1, 1), dtype=bool) if ours is None else ours
    right = np.ones((1, 1, 1), dtype=bool) if theirs is None else theirs.numpy()
    return float((left != right).sum())


def _bias_apart(ours: np.ndarray | None, theirs: Tensor | None) -> Distance:
    """The largest difference of two biases; None counts as 0."""
    left = np.zeros((1, 1, 1), dtype=np.float32) if ours is None else ours
    right = np.zeros((1, 1, 1), dtype=np.float32) if theirs is None else theirs.numpy()
    left, right = np.broadcast_arrays(left, right)
    return Distance(left, right)


def _apart(ours: Float[np.ndarray, "*axes"], theirs: Float[np.ndarray, "*axes"]) -> float:
    """The largest difference of two arrays; NaN if any is."""
    difference = np.subtract(ours, theirs)
    return max(float(difference.max()), -float(difference.min()))  # NaN if any is, since then both are
