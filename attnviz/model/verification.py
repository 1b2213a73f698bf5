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
from attnviz.model.reference import ReferenceCall, ReferencePass, in_float64
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
_GIVEN_IDS = "The ids were given, so they are not compared with the tokenizer's."


@typed
def verify(model: "Model", trace: "Trace", progress: Progress | None = None) -> VerificationReport:
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

    Raises:
        VerificationError: the layers, heads or tokens of the reference differ from the trace's; or the trace has an intervention,
            which the model's own attention does not.
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
    report = _compare(model, trace, {})
    drifted = {check.name for check in report.failed} & {*ROLE_NAMES.values(), "last hidden state"}
    return _compare(model, trace, _exact_vectors(model, trace)) if drifted else report


def reference_weights(
    model: "Model", trace: "Trace", layer: int, kind: Kind | None = None
) -> Float[np.ndarray, "head query key"]:
    """The model's own attention weights of one layer.

    Raises:
        SelectionError: no such layer or kind.
    """
    place = (trace.attention(layer, kind).kind, layer)
    weights: list[np.ndarray] = []

    def keep(call: ReferenceCall) -> None:
        if (call.kind, call.layer) == place:
            weights.append(call.weights.numpy())

    ReferencePass(model.reference, keep).run(**model.inputs(trace.tokens, trace.target_tokens))
    return weights[0]


_Vectors = Mapping[tuple[Kind, int, str] | None, np.ndarray]
"""Queries, keys and values [head, token, d] by kind, layer and name, and the last hidden state at None."""


def _exact_vectors(model: "Model", trace: "Trace") -> _Vectors:
    """Vectors of the reference in float64."""
    vectors: dict[tuple[Kind, int, str] | None, np.ndarray] = {}

    def keep(call: ReferenceCall) -> None:
        for role in ROLE_NAMES:
            vectors[call.kind, call.layer, role] = getattr(call, role).numpy()

    reference = in_float64(model.reference)
    hidden = ReferencePass(reference, keep).run(**model.inputs(trace.tokens, trace.target_tokens))
    vectors[None] = hidden[None].numpy()
    return vectors


def _compare(model: "Model", trace: "Trace", exact: _Vectors) -> VerificationReport:
    comparison = _Comparison(model, trace, exact)
    reference = ReferencePass(model.reference, comparison.attention, comparison.output)
    hidden = reference.run(**model.inputs(trace.tokens, trace.target_tokens))
    return comparison.report(hidden.numpy())


class _Comparison:
    """The checks of one trace, made while the reference runs."""

    def __init__(self, model: "Model", trace: "Trace", exact: _Vectors) -> None:
        self._model, self._trace, self._exact = model, trace, exact
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
        allowed = 0.0 if call.scores is None else self._drift((kind, layer, "query"), call.query)
        self._add("score bias", kind, [float(bias.share.max())], [allowed])

        tolerances = Tolerances(
            **distances,
            bias=bias.capped(allowed),
            scale=call.scale,
            softcap=call.softcap,
            n_key=call.key.shape[1],
            dtype=self._dtype,
        )
        scores, patterns = zip(*(_shown(trace, layer, head, kind) for head in range(n_head)), strict=True)
        if call.scores is not None:
            self._scores(call, [given for given in scores if given is not None], tolerances)
        weights, at_once = call.weights.numpy(), trace.layer_weights(layer, kind)
        differences = np.array(
            [
                np.maximum(_apart(patterns[head], weights[head]), _apart(at_once[head], weights[head]))
                for head in range(n_head)  # NaN if either is
            ]
        )
        self._add(WEIGHTS, kind, differences, tolerances.weights)

        outputs = trace.outputs(layer, kind)
        heads, largest = Distance(outputs, call.output.numpy()), distances["value"].largest
        self._add("head outputs", kind, heads.difference / largest, tolerances.outputs)
        self._heads = outputs, heads.capped(tolerances.outputs * largest / heads.largest)
        if kind in self._model.output_maps:
            self._norms(call, patterns, distances["value"], tolerances)

    def _scores(self, call: ReferenceCall, ours: Sequence[np.ndarray], tolerances: Tolerances) -> None:
        """Compares the scores of keys that a query may see with what the family's softmax got."""
        assert call.scores is not None
        theirs = call.scores.numpy()
        seen = np.ones(theirs.shape, dtype=bool) & (True if call.allowed is None else call.allowed.numpy())
        largest = np.abs(np.where(seen, theirs, 0.0)).max(axis=(1, 2))
        largest = np.maximum(largest, np.finfo(np.float32).tiny)
        scores = [
            _apart(np.where(seen[head], ours[head], 0.0), np.where(seen[head], theirs[head], 0.0))
            for head in range(len(theirs))
        ]
        self._add("scores", call.kind, np.array(scores) / largest, tolerances.scores / largest)

    def _norms(
        self, call: ReferenceCall, patterns: Sequence[np.ndarray], value: Distance, tolerances: Tolerances
    ) -> None:
        """Compares norm-based weights with the lengths of the vectors that the reference's W_O makes."""
        kind, layer = call.kind, call.layer
        weight = torch.tensor(self._model.output_maps[kind][layer].weight)
        values = expand_heads(call.value, len(weight))
        lengths = torch.stack(  # a head at a time, which fits into the processor's cache
            [torch.matmul(value, maps).norm(dim=-1) for value, maps in zip(values, weight, strict=True)]
        ).numpy()  # [head, key]
        longest = np.maximum(lengths.max(axis=1), np.finfo(np.float32).tiny)
        ours = self._trace.value_lengths(layer, kind)
        norms = [
            _apart(
                attribution.head_norms(patterns[head], ours[head]), call.weights[head].numpy() * lengths[head]
            )
            for head in range(len(weight))
        ]
        allowed = tolerances.norms(weight.norm(dim=(1, 2)).numpy() / longest, *weight.shape[1:])
        self._add(NORMS, kind, np.array(norms) / longest, allowed)

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


def _shown(trace: "Trace", layer: int, head: int, kind: Kind) -> tuple[np.ndarray | None, np.ndarray]:
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
