"""The parts of one layer's attention: its input vectors, its weight matrices, and its output.

Queries, keys, values and weights are in `attnviz.model.trace`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from attnviz.model.capture import forward, recorded, share_parameters
from attnviz.model.model import Model
from attnviz.model.normalisation import Normalisation, are_equal, is_norm, normalisation_of
from attnviz.model.structure import (
    Ingredient,
    Linear,
    ingredient_of,
    linear_parameters,
    looked_up_by,
)
from attnviz.model.trace import Trace
from attnviz.records import Kind, Record, Role


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearMap(Record):
    """A linear map of one layer, cut into its heads: ``vectors = hidden @ weight[head] + bias[head]``."""

    weight: Float[np.ndarray, "head d_in d_head"]
    bias: Float[np.ndarray, "head d_head"] | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayerAnatomy(Record):
    """The inputs of a layer's attention, its weight matrices, and the output of W_O."""

    kind: Kind
    layer: int
    ingredients: Mapping[Ingredient, Float[np.ndarray, "token d_embedding"]]
    """Rows of the family's embedding tables whose sum is the model's first vector of each token, before
    normalisation; for the text that the queries come from."""
    norm: Normalisation | None
    """Normalisation of that sum; None where there is none, or attnviz does not know it."""
    leads_to_first_layer: Literal["as it is", "by a matrix"] | None
    """How the first layer's input comes from that sum, normalised where ``norm`` is known; None where attnviz does not
    know."""
    hidden: Float[np.ndarray, "query d_model"] | None
    """Vectors that the layer's queries are made from; None where the family changes queries after a linear map, as
    rotary positions do, or computes them in a way that attnviz does not know."""
    sources: Float[np.ndarray, "key d_source"] | None
    """Vectors that the layer's keys and values are made from: in self-attention the same as ``hidden``."""
    projections: Mapping[Role, LinearMap]
    """W_Q, W_K and W_V with their biases; a part is missing where no linear map gives its vectors."""
    output: Float[np.ndarray, "query d_model"] | None
    """Output of the model's own W_O for the heads' outputs, with its bias; None where W_O has any other input."""
    output_weight: Float[np.ndarray, "head d_value d_model"] | None
    output_bias: Float[np.ndarray, " d_model"] | None

    def __post_init__(self) -> None:
        Record.__post_init__(self)
        for name in ("ingredients", "projections"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))


Ran = tuple[Linear, Tensor, Tensor]
"""A linear map with its input and output."""


def anatomy(model: Model, trace: Trace, layer: int, kind: Kind | None = None) -> LayerAnatomy:
    """The parts of the attention of one layer, while the model reads the text of a trace.

    Matrices share the memory of the model's parameters. The forward pass is the model's own, without the trace's
    interventions.

    Raises:
        SelectionError: no such layer or kind.
    """
    call = trace.attention(layer, kind)
    network = share_parameters(model.network)
    joining = model.output_maps[call.kind][layer] if call.kind in model.output_maps else None
    place, first = (call.kind, layer), trace.attention(0, "decoder" if call.kind == "cross" else call.kind)
    ingredients: dict[Ingredient, np.ndarray] = {}
    norms: list[Normalisation] = []
    looked_up: list[int] = []  # number of attention calls before the tokens were looked up
    tokens = trace.query_tokens(kind)
    latest: list[Ran] = []  # since the last attention call
    before: dict[
        tuple[Kind, int] | None, list[Ran]
    ] = {}  # before the first layer's attention, and this one's
    after: list[Tensor] = []  # outputs of W_O

    def attended(_: int) -> None:
        if recording.order.last in ((first.kind, 0), place):
            before[recording.order.last] = list(latest)
        latest.clear()

    with recorded(network, after_call=attended) as recording:

        def listen(module: Linear, inputs: tuple[Any, ...], output: Tensor) -> None:
            if place not in before:
                latest.append((module, inputs[0], output))
            elif joining is not None and module is network.get_submodule(joining.name):
                after.append(output)

        def look_up(table: nn.Embedding, inputs: tuple[Any, ...], output: Tensor) -> None:
            rows = output.reshape(-1, output.shape[-1]).float().cpu().numpy()
            if "token" not in ingredients:
                if looked_up_by(inputs[0], tokens.ids):
                    ingredients["token"] = rows * _token_scale(network, table)
                    looked_up.append(recording.order.n_calls)
            elif rows.shape == ingredients["token"].shape and looked_up == [recording.order.n_calls]:
                # before this text's first attention, so neither T5's table of distances nor the other text's tokens
                ingredients.setdefault(ingredient_of(table, inputs[0], tokens, network), rows)

        def normalise(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
            parts = list(ingredients.values())
            if norms or not parts or not inputs:
                return
            given = _rows(inputs[0])
            if {part.shape for part in parts} == {given.shape} and are_equal(given, np.sum(parts, axis=0)):
                form = normalisation_of(module, given, _rows(output))
                norms.extend([form] if form is not None else [])

        for module in network.modules():
            if isinstance(module, Linear):
                module.register_forward_hook(listen)
            elif isinstance(module, nn.Embedding):
                module.register_forward_hook(look_up)
            elif is_norm(module):
                module.register_forward_hook(normalise)
        with torch.inference_mode():
            forward(network, **model.inputs(trace.tokens, trace.target_tokens))
    projections: dict[Role, LinearMap] = {}
    inputs: dict[Role, np.ndarray] = {}
    recorded_vectors: dict[Role, np.ndarray] = {"query": call.query, "key": call.key, "value": call.value}
    for role, vectors in recorded_vectors.items():
        if (projection := projection_of(vectors, before[place])) is not None:
            inputs[role], projections[role] = projection
    found_first = (
        projection_of(vectors, before[first.kind, 0]) for vectors in (first.query, first.key, first.value)
    )
    read = next((pair[0] for pair in found_first if pair is not None), None)
    start = norms[0].made if norms else None
    if start is None and len({ingredient.shape for ingredient in ingredients.values()}) == 1:
        start = np.sum(list(ingredients.values()), axis=0)
    joining = None if not after else joining
    return LayerAnatomy(
        kind=call.kind,
        layer=layer,
        ingredients=ingredients,
        norm=norms[0] if norms else None,
        leads_to_first_layer=_leads_to(read, start, before[first.kind, 0]),
        hidden=inputs.get("query"),
        sources=inputs.get("key", inputs.get("value")),
        projections=projections,
        output=None if joining is None else _rows(after[0]),
        output_weight=None if joining is None else joining.weight,
        output_bias=None if joining is None else joining.bias,
    )


def _token_scale(network: PreTrainedModel, table: nn.Embedding) -> float:
    """Factor by which a family multiplies the tokens' vectors after the lookup, as Marian does."""
    is_scaled_later = getattr(network.config, "scale_embedding", False) and not hasattr(table, "embed_scale")
    return float(table.embedding_dim**0.5) if is_scaled_later else 1.0


def projection_of(vectors: np.ndarray, maps: Sequence[Ran]) -> tuple[np.ndarray, LinearMap] | None:
    """The input and the linear map, or part of one, that gave these vectors [head, token, d_head]."""
    n_head, n_token, d_head = vectors.shape
    wanted = torch.tensor(vectors).transpose(0, 1).flatten(1)  # [token, head x d_head]
    for module, given, output in maps:
        made = output.reshape(-1, output.shape[-1]).float().cpu()
        if len(made) != n_token:
            continue
        for columns in _parts(made.shape[-1], n_head, d_head):
            if torch.equal(made[:, columns], wanted):
                weight, bias = linear_parameters(module)
                linear = LinearMap(
                    weight=weight[:, columns]
                    .reshape(-1, n_head, d_head)
                    .transpose(0, 1)
                    .float()
                    .cpu()
                    .numpy(),
                    bias=None
                    if bias is None
                    else bias[columns].reshape(n_head, d_head).float().cpu().numpy(),
                )
                return given.reshape(n_token, -1).float().cpu().numpy(), linear
    return None


def _parts(width: int, n_head: int, d_head: int) -> Iterator[Any]:
    """Candidates for the columns of all heads in a linear map: one block after another, or head by head."""
    own = n_head * d_head
    for start in range(0, width - own + 1, own):
        yield slice(start, start + own)
    if width == 3 * own:  # GPT-NeoX: query, key and value of a head side by side
        yield from torch.arange(width).reshape(n_head, 3, d_head).transpose(0, 1).flatten(1)


def _leads_to(
    read: np.ndarray | None, start: np.ndarray | None, maps: Sequence[Ran]
) -> Literal["as it is", "by a matrix"] | None:
    """How the vectors that a layer reads come from the first vectors: unchanged, by a linear map, or None."""
    if read is None or start is None:
        return None
    if are_equal(read, start):
        return "as it is"
    for _, given, made in maps:
        if are_equal(_rows(given), start) and are_equal(_rows(made), read):
            return "by a matrix"
    return None


def _rows(tensor: Tensor) -> np.ndarray:
    rows: np.ndarray = tensor.reshape(-1, tensor.shape[-1]).float().cpu().numpy()
    return rows
