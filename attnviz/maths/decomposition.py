"""Vectors as sums of parts, sent through the steps of a network so that they stay sums: maps, frozen norms, activations, biases.

Shapes: parts are [..., part, d], their sum over the axis of parts is the vector. torch only.

Source: Modarressi et al. 2023, "DecompX" (arXiv:2306.02873), section 3.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def shares_of_bias(products: Float[Tensor, "*vector part"]) -> Float[Tensor, "*vector part"]:
    """The share of a bias b that each part z_k gets: |b · z_k| / sum over all parts; the same for all where every product is 0.

    Args:
        products: b · z_k.
    """
    sizes = products.abs()
    total = sizes.sum(dim=-1, keepdim=True)
    equal = torch.full_like(sizes, 1 / sizes.shape[-1])
    return torch.where(total > 0, sizes / total.clamp(min=torch.finfo(sizes.dtype).tiny), equal)


def with_bias(
    parts: Float[Tensor, "*vector part d"], bias: Float[Tensor, "*#vector d"]
) -> Float[Tensor, "*vector part d"]:
    """The parts of the sum with a bias added, divided among them."""
    products = (parts @ bias[..., None])[..., 0]
    return parts + shares_of_bias(products)[..., None] * bias[..., None, :]


def through_map(
    parts: Float[Tensor, "*vector part d_in"],
    weight: Float[Tensor, "d_in d_out"],
    bias: Float[Tensor, " d_out"],
    rows: list[int] | None = None,
) -> Float[Tensor, "*vector part d_chosen"]:
    """The parts of a linear map's output.

    Args:
        rows: the dimensions of the output that are asked for; None for all.
    """
    shares = shares_of_bias(parts @ (weight @ bias))
    if rows is not None:
        weight, bias = weight[:, rows], bias[rows]
    return parts @ weight + shares[..., None] * bias


def through_norm(
    parts: Float[Tensor, "*vector part d"],
    gain: Float[Tensor, "*#vector d"],
    bias: Float[Tensor, " d"],
    *,
    is_centred: bool,
) -> Float[Tensor, "*vector part d"]:
    """The parts of a norm's output: gain (z_k - mean of z_k), with the scale of the whole vector within the gain, and the bias."""
    centred = parts - parts.mean(dim=-1, keepdim=True) if is_centred else parts
    return with_bias(centred * gain[..., None, :], bias)


def through_activation(
    parts: Float[Tensor, "*vector part d"], slopes: Float[Tensor, "*#vector d"]
) -> Float[Tensor, "*vector part d"]:
    """The parts of an activation's output: each dimension times f(z) / z of the whole vector."""
    return parts * slopes[..., None, :]


def through_attention(
    weights: Float[Tensor, "head query key"],
    parts: Float[Tensor, "key part d_model"],
    value_weight: Float[Tensor, "head d_model d_value"],
    output_weight: Float[Tensor, "head d_value d_model"],
) -> Float[Tensor, "query part d_model"]:
    """The parts of attention's output at the weights that it had, without biases: sum over heads of A z_k W_V W_O."""
    mixed = torch.zeros(weights.shape[1], *parts.shape[1:], dtype=parts.dtype)
    for of_head, into, back in zip(weights, value_weight, output_weight, strict=True):
        values = parts @ into  # [key, part, d_value]
        mixed += (of_head @ values.flatten(1)).reshape(mixed.shape[0], *values.shape[1:]) @ back
    return mixed
