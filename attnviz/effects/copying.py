"""Whether each head copies: the sign of the eigenvalues of its OV circuit, from the weights alone.

A head that attends to a token adds W_E W_V W_O W_U to the logits, a matrix from the vocabulary to the vocabulary,
directly; where its eigenvalues λ are positive, it raises the logits of the tokens that it attends to:

    score = Σ λ / Σ |λ|,  1 where all eigenvalues are positive, -1 where all are negative

The matrix has as many rows as the vocabulary and the rank of a head, d_value: the product in the other order, W_O W_U W_E
W_V, is d_value x d_value and has the same eigenvalues but for zeros. W_V and W_U include the gains of the norms on the way
and the mean that a norm subtracts. A norm divides by a positive number, on which the score does not depend.

Only the direct path from embedding to logits counts: what MLPs and other heads do in between is left out.

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", section "Detecting Copying Behavior"; equal
eigenvalues of both orders: Horn and Johnson 2013, "Matrix Analysis", 2nd edition, theorem 1.3.22.
"""

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from attnviz.arguments import typed
from attnviz.effects.score_sources import embedded
from attnviz.errors import UnsupportedArchitectureError, enough_memory
from attnviz.maths.quotients import quotients
from attnviz.model.anatomy import anatomy
from attnviz.model.answers import language_head, token_logits
from attnviz.model.direct_path import FrozenNorm, carried_back, final_steps, layer_paths
from attnviz.model.linear_forms import Wanted, linear_forms
from attnviz.model.model import Model
from attnviz.model.stream import Stream, record_stream
from attnviz.model.trace import Trace
from attnviz.records import Progress, head_table

_NEAR = 1e-3
"""Largest distance of a vector from a multiple of another, as a share of its length: float32 is off by 1e-6, a layer that is not
linear by as much as the vector itself."""
_SMALL = 1e-3
"""Factor on a last hidden state for which a softcap (Gemma 2) is linear."""
_ROWS = 8192
"""Rows of the embeddings that are multiplied at a time."""


@typed
def copying_scores(model: Model, *, progress: Progress = lambda _: None) -> Float[np.ndarray, "layer head"]:
    """The copying score of every head, -1 to 1; NaN where a layer has no such head, or a head that adds nothing.

    Logits with a softcap are taken before it.

    Raises:
        OutOfMemoryError: the embeddings are too large for the memory that is left.
        SelectionError: a model in another dtype than float32.
        UnsupportedArchitectureError: no language head, so that no head leads to tokens; one that is not linear (BERT's); or a family
            whose embedding, norms or values attnviz cannot follow.
    """
    language_head(model, "the copying score of each head")
    trace = model.probe(2)
    at = len(trace.tokens) - 1
    kind = trace.kinds[0]
    stream = record_stream(model, trace, at)
    paths, n_layer = layer_paths(stream), trace.n_layers(kind)
    norm = _norm_of_embedding(model, trace, stream, at)
    n_value = [len(trace.attention(layer, kind).value) for layer in range(n_layer)]
    forms = linear_forms(
        model,
        trace,
        kind,
        [
            Wanted(layer=layer, role="value", head=head, position=at)
            for layer in range(n_layer)
            for head in range(n_value[layer])
        ],
    )
    by_layer = np.split(np.stack([form.weight for form in forms]), np.cumsum(n_value)[:-1])
    through = _embedding_times_unembedding(model, trace, at, progress)
    if norm is not None:
        centred = through - through.mean(axis=0) if norm.is_centred else through
        through = norm.gain[:, None] * centred
    for step in final_steps(stream)[::-1]:
        through = step.before(through)
    scores: list[np.ndarray] = [np.zeros(0)] * n_layer
    for layer in reversed(range(n_layer)):
        output_map = model.output_maps[kind][layer]
        back = carried_back(paths[layer], output_map, through)
        through = back.entering
        output_weight = output_map.weight.astype(np.float64)  # [head, d_value, d_model]
        values = np.repeat(by_layer[layer], len(output_weight) // len(by_layer[layer]), axis=0)
        scores[layer] = _scores(values @ back.of_attention @ output_weight.swapaxes(1, 2))
    return head_table(scores)


def _scores(circuits: Float64[np.ndarray, "head d_value d_value"]) -> Float64[np.ndarray, " head"]:
    """The sum of the eigenvalues of each matrix over the sum of their absolute values."""
    values = np.linalg.eigvals(circuits)
    sizes = np.abs(values).sum(axis=1)
    return quotients(values.sum(axis=1).real, sizes)


def _embedding_times_unembedding(
    model: Model, trace: Trace, at: int, progress: Progress
) -> Float64[np.ndarray, "d_model d_last"]:
    """W_E^T W_U^T over the entries of the vocabulary that both have."""
    head = language_head(model, "the copying score of each head")
    last: nn.Module | None = head.get_output_embeddings()  # type: ignore[no-untyped-call]
    unembedding = getattr(last, "weight", None)
    vector = torch.tensor(trace.last_hidden_state[at]).to(model.network.device)
    is_linear = False
    if isinstance(unembedding, Tensor) and unembedding.ndim == 2 and unembedding.shape[1] == len(vector):
        with torch.inference_mode():
            made = token_logits(model, _SMALL * vector) - token_logits(model, torch.zeros_like(vector))
            expected = unembedding.detach() @ vector
        is_linear = len(made) >= len(expected) and _is_multiple(
            _array(made[: len(expected)]), _array(expected)
        )
    if not is_linear or unembedding is None:
        raise UnsupportedArchitectureError(
            f"The copying score of each head was asked for; the language head of {model.name} is not linear, so that no matrix leads "
            "from a head to tokens. Select a model with a linear head, such as gpt2."
        )
    embedding = _embedding(model)
    n_row = min(len(embedding), len(unembedding))
    summed = torch.zeros(embedding.shape[1], unembedding.shape[1], dtype=torch.float64)
    with enough_memory(), torch.inference_mode():
        for start in range(0, n_row, _ROWS):
            rows = slice(start, min(start + _ROWS, n_row))
            summed += (embedding[rows].mT @ unembedding[rows]).double().cpu()
            progress(rows.stop / n_row)
    return summed.numpy()


def _norm_of_embedding(model: Model, trace: Trace, stream: Stream, at: int) -> FrozenNorm | None:
    """The norm between the embedding of tokens and the first layer, frozen; None where there is none."""
    parts, norm = embedded(anatomy(model, trace, 0, stream.kind), stream.start, at)
    row = parts.get("token", stream.start)
    own = _array(_embedding(model)[int(trace.tokens.ids[at])])
    if own.shape != row.shape or not _is_multiple(row, own):
        raise UnsupportedArchitectureError(
            f"The copying score of each head was asked for; attnviz does not know how {model.name} makes what enters its first layer "
            "of its embeddings. Select a model of another family, such as GPT-2 or Llama."
        )
    return norm


def _embedding(model: Model) -> Tensor:
    table: nn.Module = model.network.get_input_embeddings()
    return table.get_parameter("weight").detach()


def _is_multiple(products: np.ndarray, of: np.ndarray) -> bool:
    """Whether a vector is a positive multiple of another; False for NaN."""
    products, of = products.astype(np.float64), of.astype(np.float64)
    square = float(of @ of)
    factor = float(products @ of) / square if square else 0.0
    return factor > 0 and bool(np.linalg.norm(products - factor * of) <= _NEAR * np.linalg.norm(products))


def _array(tensor: Tensor) -> np.ndarray:
    array: np.ndarray = tensor.float().cpu().numpy()
    return array
