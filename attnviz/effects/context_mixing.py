"""How much of each token a layer mixes into each: ALTI and value zeroing, a matrix for each layer, and both through all layers.

Attention weights say where a head reads. These say what comes of it, for all heads of a layer together, with values, W_O, the
residual connection and norms; value zeroing with the rest of the layer too. Rows are shares of 1, and rollout multiplies them without
half of a residual connection, which they hold already.

Source: ALTI: Ferrando et al. 2022, "Measuring the Mixing of Contextual Information in the Transformer" (arXiv:2203.04212); for
norms before the attention Ferrando et al. 2023, "Explaining How Transformers Use Context to Build Predictions" (arXiv:2305.12535).
Value zeroing: Mohebbi et al. 2023, "Quantifying Context Mixing in Transformers" (arXiv:2301.12971), section 3.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64

from attnviz.arguments import typed
from attnviz.errors import enough_memory, failures_of
from attnviz.maths.attribution import rollout
from attnviz.maths.context_mixing import as_shares, closeness, mixed_vectors
from attnviz.maths.directions import cosine_changes
from attnviz.model.capture import recorded, share_parameters
from attnviz.model.changes import Changes
from attnviz.model.direct_path import LayerPath, check_parts, layer_paths
from attnviz.model.interventions import Intervention, ReplacedVectors
from attnviz.model.model import Model
from attnviz.model.stream import Stream, layer_runs, record_whole_stream
from attnviz.model.structure import LayerRun, OutputMap
from attnviz.model.trace import Trace
from attnviz.model.variants import most_rows
from attnviz.records import (
    AttentionPattern,
    Axis,
    Kind,
    LayerAttention,
    Mixing,
    Progress,
    Provenance,
    Result,
    Tokens,
    check_index,
)
from attnviz.records.table import Table, entry_names

if TYPE_CHECKING:
    from transformers import PreTrainedModel

TOLERANCE = 1e-5
"""Largest gap of a layer, as a share of the length of the vector: float32 passes round each vector by about 1e-6 of its length."""

_MOST_NUMBERS = 2**24
"""Most numbers of parts that are held at a time, 128 MB in float64."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ContextMixing(Result):
    """How much of each token of a text each layer mixes into each token; rows sum to 1."""

    method: Mixing
    kind: Kind
    tokens: Tokens
    matrices: Float[np.ndarray, "layer query key"]
    allowed: Bool[np.ndarray, "layer query key"]
    """True where a head of the layer lets the query see the key."""
    gap: float
    """Largest distance of what was computed from the model's own vector, as a share of that vector's length, over all layers and
    tokens: for ALTI of the sum of the parts from the stream after the attention, for value zeroing of a layer that ran alone, with
    all values, from what it left in the model's own run."""
    provenance: Provenance

    @property
    def passed(self) -> bool:
        """Whether the gap is rounding alone, at most `TOLERANCE`; False for NaN."""
        return self.gap <= TOLERANCE

    @property
    def rollout(self) -> Float[np.ndarray, "query key"]:
        """How much of each token of the text each token holds after all layers."""
        return rollout(self.matrices, residual=0.0)

    def pattern(self, layer: int | None = None) -> AttentionPattern:
        """The matrix of a layer with its axes.

        Args:
            layer: None for all layers together, `rollout`.

        Raises:
            SelectionError: no such layer.
        """
        n_layer, n_token, _ = self.matrices.shape
        axis = Axis.of(self.tokens)
        if layer is None:
            numbers = self.rollout
            allowed = (numbers > 0) | self.allowed.any(axis=0)
        else:
            check_index("layer", layer, n_layer, self.provenance.model)
            numbers, allowed = self.matrices[layer], self.allowed[layer]
        return AttentionPattern(
            kind=self.kind,
            layer=n_layer - 1 if layer is None else layer,
            head=None,
            measure=self.method,
            scores=None,
            weights=numbers,
            allowed=allowed,
            queries=axis,
            keys=axis,
            hidden_weight=np.zeros(n_token, dtype=np.float32),
            provenance=self.provenance,
        )

    def _table(self) -> Table:
        """A row for each cell of each layer."""
        names = entry_names(Axis.of(self.tokens))
        rows = [
            [layer, names[query], names[key], self.matrices[layer, query, key]]
            for layer, query, key in np.ndindex(self.matrices.shape)
        ]
        return ["layer", "query", "key", self.method], rows


@typed
def alti(model: Model, trace: Trace, *, progress: Progress | None = None) -> ContextMixing:
    """ALTI: how close each token's part of the stream after a layer's attention is to the whole.

    With y = N(x + N'(a)), where a is the output of W_O and N and N' are norms that not all families have, kept at the scale that
    they had for the token, the part of token j in y_i is N(N'(sum over h of a_ij v_j W_O^h) + [i = j] x_i), without biases.

    Args:
        trace: of the text without interventions.
        progress: called with the share that is done, 0 to 1, after each layer.

    Raises:
        OutOfMemoryError: the text is too long for the memory that is left.
        SelectionError: a trace with interventions, or a model in another dtype than float32.
        UnsupportedArchitectureError: a model with an encoder and a decoder, or a family whose layers attnviz cannot take apart.
    """
    check_parts(model, trace, "The parts of the stream after each layer's attention were")
    return alti_of(model, trace, record_whole_stream(model, trace), progress=progress)


def alti_of(model: Model, trace: Trace, stream: Stream, *, progress: Progress | None = None) -> ContextMixing:
    """As `alti`, of a stream that was recorded at all tokens."""
    matrices, gaps, entered = [], [0.0], stream.start
    paths = layer_paths(stream)
    with enough_memory():
        for layer, path in enumerate(paths):
            output_map = model.output_maps[stream.kind][layer]
            rows = []
            for some, parts in _parts(trace, stream.kind, layer, path, output_map, entered):
                whole = path.middle[some].astype(np.float64)
                rows.append(closeness(parts, whole))
                off = whole - parts.sum(axis=1) - _biases(path, output_map, some)
                gaps.append(float((np.linalg.norm(off, axis=1) / np.linalg.norm(whole, axis=1)).max()))
            matrices.append(as_shares(np.concatenate(rows)))
            entered = stream.left[layer]
            if progress is not None:
                progress((layer + 1) / len(paths))
    return _mixing("alti", trace, stream.kind, matrices, float(np.max(gaps)))


def _parts(
    trace: Trace, kind: Kind, layer: int, path: LayerPath, output_map: OutputMap, entered: np.ndarray
) -> Iterator[tuple[slice, Float64[np.ndarray, "query key d_model"]]]:
    """Each key's part of the stream after a layer's attention, without biases, some queries at a time."""
    value = trace.attention(layer, kind).value.astype(np.float64)
    n_token, d_model = entered.shape
    weight = output_map.weight.astype(np.float64)
    vectors = value[np.arange(len(weight)) // (len(weight) // len(value))] @ weight  # [head, key, d_model]
    n_at_once = max(1, _MOST_NUMBERS // (n_token * d_model))
    for start in range(0, n_token, n_at_once):
        rows = slice(start, min(start + n_at_once, n_token))
        weights = np.concatenate([made for _, made in trace.blocks(layer, kind, rows=rows)], axis=1)
        parts = mixed_vectors(weights, vectors)
        if path.of_attention is not None:
            parts = path.of_attention.linear(parts, rows)
        within = np.arange(rows.stop - rows.start)
        parts[within, within + start] += entered[rows]
        yield rows, parts if path.after_attention is None else path.after_attention.linear(parts, rows)


def _biases(path: LayerPath, output_map: OutputMap, rows: slice) -> Float[np.ndarray, "query d_model"]:
    """What the biases of W_O and of the norms add to the stream after a layer's attention."""
    added = np.zeros((rows.stop - rows.start, 1, path.middle.shape[-1]))
    if output_map.bias is not None:
        added += output_map.bias
    for norm in (path.of_attention, path.after_attention):
        if norm is not None:
            added = norm.linear(added, rows) + norm.bias
    return added[:, 0]


@typed
def value_zeroing(model: Model, trace: Trace, *, progress: Progress | None = None) -> ContextMixing:
    """Value zeroing: how much each token's vector after a layer turns when another token's values in it are 0, in all heads.

    Each layer runs alone, on what entered it in the model's own run, once for each token; the cell is 1 - cosine.

    Args:
        trace: of the text without interventions.
        progress: called with the share that is done, 0 to 1.

    Raises:
        CaptureError, ModelFailedError, OutOfMemoryError: as `attnviz.model.variants.states_of_variants`.
        SelectionError: a trace with interventions.
        UnsupportedArchitectureError: a model with an encoder and a decoder, which read two texts.
    """
    check_parts(model, trace, "The change of each token's state without another's value was")
    [kind] = trace.kinds
    network = share_parameters(model.network)
    runs = layer_runs(model, network, trace, kind)
    matrices, gaps = [], [0.0]
    for layer, run in enumerate(runs):
        d_value = trace.attention(layer, kind).value.shape[-1]
        nothing = np.zeros((1, d_value), dtype=np.float32)
        rows: list[list[Intervention]] = [
            [ReplacedVectors(kind=kind, role="value", vectors=nothing, positions=(token,))]
            for token in range(len(trace.tokens))
        ]
        numbers = np.zeros((len(rows), len(rows)))
        assert run.left is not None
        for start in range(0, len(rows), most_rows(trace)):
            some = rows[start : start + most_rows(trace)]
            states = _states(network, run, [[], *some])
            numbers[:, start : start + len(some)] = np.stack(
                [cosine_changes(states[0], changed) for changed in states[1:]], axis=1
            )
            off = np.linalg.norm(states[0] - run.left, axis=1) / np.linalg.norm(run.left, axis=1)
            gaps.append(float(off.max()))
            if progress is not None:
                progress((layer + (start + len(some)) / len(rows)) / len(runs))
        matrices.append(as_shares(numbers * _allowed(trace.attention(layer, kind))))
    return _mixing("value_zeroing", trace, kind, matrices, float(np.max(gaps)))


def _states(
    network: "PreTrainedModel", run: LayerRun, rows: Sequence[Sequence[Intervention]]
) -> Float[np.ndarray, "row token d_model"]:
    """What leaves a layer that runs alone, for each row of interventions."""
    assert run.state is not None and run.entered is not None
    entered = torch.tensor(run.entered).to(run.state).reshape(run.state.shape)
    with (
        failures_of("A layer could not run alone", "Select another model."),
        torch.inference_mode(),
        recorded(network, Changes(rows), keeps=False),
    ):
        left = run.again(entered.expand(len(rows), -1, -1))
    return np.asarray(left.float().cpu().numpy())


def _mixing(
    method: Mixing, trace: Trace, kind: Kind, matrices: list[np.ndarray], gap: float
) -> ContextMixing:
    return ContextMixing(
        method=method,
        kind=kind,
        tokens=trace.tokens,
        matrices=np.stack(matrices).astype(np.float32),
        allowed=np.stack([_allowed(call) for call in trace.layers[kind]]),
        gap=gap,
        provenance=trace.provenance,
    )


def _allowed(call: LayerAttention) -> Bool[np.ndarray, "query key"]:
    """True where a head of a layer lets the query see the key."""
    shape = call.query.shape[1], call.key.shape[1]
    allowed = np.ones((1, *shape), dtype=bool) if call.allowed is None else call.allowed
    return np.array(np.broadcast_to(allowed.any(axis=0), shape))
