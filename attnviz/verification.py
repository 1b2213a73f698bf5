"""attnviz's attention against the model's own: a ladder of three comparisons.

One concept: is what is shown what the model computes? The reference is the same model on
transformers' eager attention, sharing every parameter with the one that is traced.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnviz.capture import share_parameters
from attnviz.errors import VerificationError
from attnviz.records import Kind, LayerAttention, Rung, VerificationReport

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from attnviz.models import Model
    from attnviz.trace import Trace

# Tolerances for float32, whose unit roundoff is 2^-24 = 6.0e-8 (IEEE 754-2019, table 3.5).
WEIGHT_TOLERANCE = 1e-5
WEIGHT_REASON = (
    "In float32 a score of 64 is rounded by up to 4 × 10⁻⁶, and over several layers such roundings add up."
)
OUTPUT_TOLERANCE = 1e-5
OUTPUT_REASON = (
    "As a share of the head's largest value: a mean of 512 float32 values, summed in another order, differs "
    "by a few 10⁻⁷, and the weights differ too."
)
HIDDEN_TOLERANCE = 1e-4
HIDDEN_REASON = (
    "As a share of the largest hidden value: the float32 roundings of every layer, residual sum and "
    "normalisation add up."
)

_OUTPUT_NAMES: dict[Kind, str] = {
    "encoder": "encoder_attentions",
    "decoder": "decoder_attentions",
    "cross": "cross_attentions",
}


def make_reference(network: "PreTrainedModel") -> "PreTrainedModel":
    """The same model on transformers' eager attention; parameters and buffers are shared, not copied."""
    reference = share_parameters(network)
    reference.set_attn_implementation("eager")
    return reference


def verify(model: "Model", trace: "Trace") -> VerificationReport:
    """The ladder for one trace: weights, head outputs and the last hidden state, ours against theirs.

    1. Our weights, `Trace.weights`, against those that the reference returns.
    2. Our head outputs, `Trace.outputs`, against
       ``torch.nn.functional.scaled_dot_product_attention`` on the same queries, keys and values.
    3. The last hidden state of the model running on our attention against the reference's.

    Raises:
        VerificationError: the reference returns no weights, or other layers and heads than the trace; or the
            trace was made with an intervention, which the model's own attention knows nothing of.
    """
    if trace.interventions:
        raise VerificationError(
            f"This trace was made with {len(trace.interventions)} intervention(s), so the model has no numbers of "
            "its own to compare it with. Verify the trace of the same text without them."
        )
    theirs, their_hidden = _reference_forward(model, trace)
    weight_errors: dict[Kind, np.ndarray] = {}
    output_errors: dict[Kind, np.ndarray] = {}
    for kind in trace.kinds:
        n_layer, n_head = trace.n_layers(kind), trace.n_heads(kind)
        weight_errors[kind] = np.empty((n_layer, n_head), dtype=np.float32)
        output_errors[kind] = np.empty((n_layer, n_head), dtype=np.float32)
        for layer in range(n_layer):
            call = trace.attention(layer, kind)
            outputs, their_outputs = trace.outputs(layer, kind), _sdpa_outputs(call)
            largest_value = float(np.abs(call.value).max())
            for head in range(n_head):
                weights, their_weights = trace.weights(layer, head, kind), theirs[kind][layer][head].numpy()
                weight_errors[kind][layer, head] = _largest_difference(weights, their_weights)
                difference = _largest_difference(outputs[head], their_outputs[head])
                output_errors[kind][layer, head] = _as_share(difference, largest_value)
    hidden_difference = _largest_difference(trace.last_hidden_state, their_hidden)
    return VerificationReport(
        weight_errors=weight_errors,
        output_errors=output_errors,
        weight_rung=Rung(
            name="attention weights",
            difference=_largest(weight_errors.values()),
            tolerance=WEIGHT_TOLERANCE,
            reason=WEIGHT_REASON,
        ),
        output_rung=Rung(
            name="head output",
            difference=_largest(output_errors.values()),
            tolerance=OUTPUT_TOLERANCE,
            reason=OUTPUT_REASON,
        ),
        hidden_rung=Rung(
            name="last hidden state",
            difference=_as_share(hidden_difference, float(np.abs(their_hidden).max())),
            tolerance=HIDDEN_TOLERANCE,
            reason=HIDDEN_REASON,
        ),
        provenance=trace.provenance,
    )


def reference_weights(
    model: "Model", trace: "Trace", layer: int, kind: Kind | None = None
) -> Float[np.ndarray, "head query key"]:
    """The model's own attention weights of one layer, from transformers' eager attention.

    Raises:
        VerificationError: as for `verify`.
        SelectionError: no such layer or kind.
    """
    kind = trace.attention(layer, kind).kind
    theirs, _ = _reference_forward(model, trace)
    weights: np.ndarray = theirs[kind][layer].numpy()
    return weights


def _reference_forward(
    model: "Model", trace: "Trace"
) -> tuple[dict[Kind, tuple[Tensor, ...]], Float[np.ndarray, "token d_model"]]:
    """The reference's weights, [head, query, key] for each layer of each kind, and its last hidden state."""
    with torch.inference_mode():
        output = model.reference(**model.inputs(trace.tokens, trace.target_tokens), output_attentions=True)
    theirs: dict[Kind, tuple[Tensor, ...]] = {}
    for kind in trace.kinds:
        name = _OUTPUT_NAMES[kind] if model.reference.config.is_encoder_decoder else "attentions"
        layers = getattr(output, name, None) or ()
        theirs[kind] = tuple(one[0] for one in layers if one is not None)
        expected = (trace.n_layers(kind), *trace.attention(0, kind).query.shape[:2])
        found = (len(theirs[kind]), *theirs[kind][0].shape[:2]) if theirs[kind] else (0,)
        if found != expected:
            raise VerificationError(
                f"{trace.provenance.model} returns {kind} attention of layers x heads x queries "
                f"{' x '.join(map(str, found))}, attnviz recorded {' x '.join(map(str, expected))}; "
                "they cannot be compared. Report this model."
            )
    return theirs, output.last_hidden_state[0].float().numpy()


def _sdpa_outputs(call: LayerAttention) -> Float[np.ndarray, "head query d_value"]:
    """Head outputs by torch's own attention, on what went into ours."""
    mask = None if call.allowed is None else torch.tensor(call.allowed)
    if call.bias is not None:
        bias = torch.tensor(call.bias)
        mask = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
    output = torch.nn.functional.scaled_dot_product_attention(
        torch.tensor(call.query)[None],
        torch.tensor(call.key)[None],
        torch.tensor(call.value)[None],
        attn_mask=None if mask is None else mask[None],
        scale=call.scale,
        enable_gqa=call.query.shape[0] != call.key.shape[0],
    )
    return output[0].numpy()


def _largest_difference(ours: Float[np.ndarray, "*axes"], theirs: Float[np.ndarray, "*axes"]) -> float:
    difference = np.subtract(ours, theirs)
    return max(float(difference.max()), -float(difference.min()))  # NaN if any is: then both ends are


def _as_share(difference: float, largest: float) -> float:
    """A difference as a share of the largest number compared; the difference itself where that is 0."""
    return difference / largest if largest > 0.0 else difference


def _largest(errors: Iterable[np.ndarray]) -> float:
    """Largest entry of several arrays; NaN if any is, so that it cannot pass."""
    return float(np.max([one.max() for one in errors]))
