"""Every number of a report, worked out a second time: by formulas in float64 numpy, head by head."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch

import attnviz
from attnviz.model.model import Model
from attnviz.model.trace import Trace
from attnviz.records import LayerAttention, VerificationReport
from tests import numpy_attention, tiny

U = 2.0**-24  # unit roundoff of float32
FAMILIES = (
    "gpt2",  # a causal mask, and W_O with a bias
    "gemma2",  # scores are capped, heads share keys, and two layers see few of them
    "t5",  # biases of distance, cross-attention, and another d_model
    "deberta",  # its own attention class adds terms of contents and positions
)


def moved(vectors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Vectors that are a little off in the first head, about as far as rounding explains, and far off in the others."""
    far = np.where(np.arange(len(vectors)) == 0, 4e-6, 0.05)[:, None, None]
    return np.float32(vectors * (1 + far * rng.standard_normal(vectors.shape)))


def changed(call: LayerAttention, rng: np.random.Generator) -> LayerAttention:
    bias, allowed = call.bias, call.allowed
    if bias is not None:
        bias = moved(bias, rng)
    if allowed is not None:
        allowed = allowed.copy()
        allowed[:, 2, 1] = False  # else seen, at least in layer 0
    return replace(
        call,
        query=moved(call.query, rng),
        key=moved(call.key, rng),
        value=moved(call.value, rng),
        scale=call.scale * 1.25,
        bias=bias,
        allowed=allowed,
        output_bias=None if call.output_bias is None else call.output_bias + np.float32(0.01),
    )


def wrong(trace: Trace) -> Trace:
    rng = np.random.default_rng(0)
    layers = {kind: tuple(changed(call, rng) for call in calls) for kind, calls in trace.layers.items()}
    return replace(
        trace, layers=layers, last_hidden_state=trace.last_hidden_state + np.float32(1e-3) * rng.random()
    )


class Apart:
    """Vectors [token, d] of one head beside those of the model."""

    def __init__(self, ours: np.ndarray, theirs: np.ndarray, most: float | None = None) -> None:
        apart = ours.astype(np.float64) - theirs
        self.largest = np.abs(theirs).max()
        self.longest = np.sqrt((theirs.astype(np.float64) ** 2).sum(axis=-1)).max()
        self.share = np.abs(apart).max() / self.largest
        self.moved = np.sqrt((apart**2).sum(axis=-1)).max()
        if most is not None:  # an error widens no other tolerance
            self.moved = min(self.moved, most * self.largest * theirs.shape[-1] ** 0.5)
        self.explained = self.share if most is None else min(self.share, most)


def sums(n_term: int) -> float:
    """Higham's bound of a sum in float32, and one rounding of the sum."""
    return n_term * U / (1 - n_term * U) + U


def drifts(trace: Trace, n_call: int) -> float:
    n_key = max(call.key.shape[1] for calls in trace.layers.values() for call in calls)
    d_model = trace.last_hidden_state.shape[1]
    return 8 * U * ((n_call * (12 * d_model + n_key)) ** 0.5 + (12 * n_call) ** 0.5)


def head_terms(call: LayerAttention, head: int) -> dict[str, object]:
    """What the scores of one head are made of."""
    own = {name: getattr(call, name) for name in ("allowed", "bias")}
    return {
        "query": call.query[head],
        "key": call.key[head * len(call.key) // len(call.query)],
        "scale": call.scale,
        "softcap": call.softcap,
        **{
            name: None if matrix is None else matrix[head * len(matrix) // len(call.query)]
            for name, matrix in own.items()
        },
    }


def scores_of(query, key, scale, softcap, allowed, bias) -> np.ndarray:
    scores = scale * query.astype(np.float64) @ key.T.astype(np.float64)
    if softcap is not None:
        scores = softcap * np.tanh(scores / softcap)
    return scores + (0.0 if bias is None else bias)


def hidden_states(model: Model, trace: Trace, dtype: torch.dtype) -> np.ndarray:
    """The last ones, as transformers alone computes them."""
    network = deepcopy(model.network)
    network.set_attn_implementation("eager")
    with torch.inference_mode():
        made = network.to(dtype)(**model.inputs(trace.tokens, trace.target_tokens))
    return made.last_hidden_state[0].double().numpy()


def expected(
    model: Model, trace: Trace, shown: Trace
) -> dict[tuple[str, str, int, int], tuple[float, float]]:
    """Difference and tolerance by check, kind, layer and head."""
    numbers: dict[tuple[str, str, int, int], tuple[float, float]] = {}
    order = [(trace.kinds[0], layer) for layer in range(trace.n_layers())]
    if trace.target_tokens is not None:  # a layer of the decoder attends to its own text, then to the other
        order += [
            (kind, layer) for layer in range(trace.n_layers("decoder")) for kind in ("decoder", "cross")
        ]
    has_bias = any(call.bias is not None for calls in trace.layers.values() for call in calls)
    for number, (kind, layer) in enumerate(order):
        theirs, ours = trace.attention(layer, kind), shown.attention(layer, kind)
        far = drifts(trace, number + 1)
        n_head, n_key = len(theirs.query), theirs.key.shape[1]
        numbers["scale", kind, layer, 0] = 0.25, 0.0
        cells = 0 if theirs.allowed is None else (theirs.allowed != ours.allowed).sum()
        numbers["attention mask", kind, layer, 0] = float(cells), 0.0
        is_own = trace.provenance.model == "deberta"
        if has_bias:
            numbers["score bias", kind, layer, 0] = 0.0, 0.0
        if theirs.bias is not None:
            share = (
                np.abs(ours.bias - theirs.bias).max(axis=(1, 2)) / np.abs(theirs.bias).max(axis=(1, 2))
            ).max()
            numbers["score bias", kind, layer, 0] = share, far if is_own else 0.0
        joined = []
        for head in range(n_head):
            place = kind, layer, head
            group = head * len(theirs.key) // n_head
            mine, true = head_terms(ours, head), head_terms(theirs, head)
            query, key = (Apart(mine[role], true[role], far) for role in ("query", "key"))
            value = Apart(ours.value[group], theirs.value[group], far)
            for name, apart in (("queries", query), ("keys", key), ("values", value)):
                numbers[name, *place] = apart.share, far
            largest_bias, bias_moved = 0.0, 0.0
            if theirs.bias is not None:
                largest_bias = np.abs(theirs.bias).max()
                largest = np.abs(true["bias"]).max()
                allowed = far if is_own else 0.0
                bias_moved = min(np.abs(mine["bias"] - true["bias"]).max(), allowed * largest)
            scale = theirs.scale
            explained = scale * (
                query.moved * key.longest + query.longest * key.moved + query.moved * key.moved
            )
            n_rounding = 4 if theirs.softcap is None else 12
            largest_score = scale * query.longest * key.longest + largest_bias
            of_scores = explained + bias_moved
            of_scores += largest_score * (sums(2 * true["query"].shape[-1] + 4) + n_rounding * U)
            if theirs.softcap is not None or is_own:
                seen = np.ones((theirs.query.shape[1], n_key), dtype=bool)
                seen = seen if true["allowed"] is None else seen & true["allowed"]
                right = np.where(seen, scores_of(**true), 0.0)
                left = scores_of(**mine)
                left = np.where(
                    seen, left if mine["allowed"] is None else np.where(mine["allowed"], left, -np.inf), 0.0
                )
                apart = np.abs(left - right).max() / np.abs(right).max()
                numbers["scores", *place] = apart, of_scores / np.abs(right).max()
            exponentials = 2 * sums(n_key + 8)
            of_weights = of_scores / 2 + exponentials
            weights, right = numpy_attention.weights(**mine), numpy_attention.weights(**true)
            numbers["attention weights", *place] = np.abs(weights - right).max(), of_weights
            of_outputs = 2 * of_scores + 2 * exponentials + value.explained
            vectors = ours.value[group].astype(np.float64), theirs.value[group].astype(np.float64)
            outputs = weights @ vectors[0], right @ vectors[1]
            numbers["head outputs", *place] = (
                np.abs(outputs[0] - outputs[1]).max() / value.largest,
                of_outputs,
            )
            if theirs.output_weight is None:
                continue
            w_o = theirs.output_weight[head].astype(np.float64)
            lengths = [np.sqrt(((of @ w_o) ** 2).sum(axis=1)) for of in vectors]
            norms = np.abs(weights * lengths[0] - right * lengths[1]).max() / lengths[1].max()
            stretched = np.sqrt((w_o**2).sum()) / lengths[1].max()
            of_norms = of_weights + 2 * sums(w_o.shape[1])
            of_norms += stretched * (value.moved + 2 * sums(w_o.shape[0]) * value.longest)
            numbers["norm-based weights", *place] = norms, of_norms
            most = of_outputs * value.largest / np.abs(outputs[1]).max()
            joined.append((outputs, w_o, Apart(*outputs, most)))
        if not joined:
            continue
        added = [0.0 if call.output_bias is None else call.output_bias for call in (ours, theirs)]
        left, right = (
            sum(outputs[side] @ w_o for outputs, w_o, _ in joined) + added[side] for side in (0, 1)
        )
        columns = sum((w_o**2).sum(axis=0) for _, w_o, _ in joined)
        all_moved = sum(apart.moved**2 for *_, apart in joined) ** 0.5
        all_longest = sum(apart.longest**2 for *_, apart in joined) ** 0.5
        n_term = n_head * joined[0][1].shape[0] + 1
        allowed = columns.max() ** 0.5 * (all_moved + 2 * sums(n_term) * all_longest)
        largest = np.abs(right).max()
        numbers["output after W_O", kind, layer, 0] = np.abs(left - right).max() / largest, allowed / largest
    last = Apart(shown.last_hidden_state, trace.last_hidden_state)
    far = drifts(trace, len(order) + 1)
    if not is_own:
        rough, exact = (hidden_states(model, trace, dtype) for dtype in (torch.float32, torch.float64))
        far = max(far, 8 * Apart(rough, exact).share)  # of float32 itself, which is farther in Gemma 2
    numbers["last hidden state", trace.kinds[0], 0, 0] = last.share, far
    for name in ("weights of the file", "tokens", "labels"):
        numbers[name, trace.kinds[0], 0, 0] = 0.0, 0.0
    return numbers


def reported(report: VerificationReport) -> dict[tuple[str, str, int, int], tuple[float, float]]:
    return {
        (check.name, kind, *place): (float(difference), float(check.tolerances[kind][place]))
        for check in report.checks
        for kind, differences in check.differences.items()
        for place, difference in np.ndenumerate(differences)
        if check.compared(kind)[place]
    }


@pytest.mark.parametrize("family", FAMILIES)
def test_a_report_has_these_numbers(family, tiny_model):
    model = tiny_model(family)
    trace = tiny.trace_of(model, tiny.TEXT_FAMILIES[family])
    shown = wrong(trace)
    report = attnviz.verify(model, shown)
    numbers, wanted = reported(report), expected(model, trace, shown)
    assert numbers.keys() == wanted.keys()
    for place, (difference, tolerance) in wanted.items():
        # the trace itself is as far from the reference as rounding explains
        assert numbers[place][0] == pytest.approx(difference, rel=0.01, abs=2e-6), place
        assert numbers[place][1] == pytest.approx(tolerance, rel=0.05), place
