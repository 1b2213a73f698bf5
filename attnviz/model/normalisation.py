"""The normalisation of vectors: LayerNorm or RMSNorm, whatever the family calls its module."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float
from torch import Tensor, nn

from attnviz.records import Record

NormalisationMethod = Literal["layer", "rms"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Normalisation(Record):
    """A normalisation, with its input and output vectors.

    Source: ``layer`` is Ba et al. 2016 (arXiv:1607.06450), section 3, ``weight * (x - mean) / sqrt(variance + eps) +
    bias``; ``rms`` is Zhang and Sennrich 2019 (arXiv:1910.07467), equation 4, ``weight * x / sqrt(mean(x^2) + eps)``.
    Means and variance are over the dimensions of each vector.
    """

    method: NormalisationMethod
    weight: Float[np.ndarray, " d_model"]
    """Factor of each dimension; Gemma and Nemotron store it minus 1."""
    bias: Float[np.ndarray, " d_model"] | None
    eps: float
    made: Float[np.ndarray, "token d_model"]
    """Output of the model's own module."""

    def of(self, vectors: Float[np.ndarray, "token d_model"]) -> Float[np.ndarray, "token d_model"]:
        """The vectors normalised by the formula, in float64."""
        centred = vectors.astype(np.float64)
        if self.method == "layer":
            centred = centred - centred.mean(axis=1, keepdims=True)
        normalised: np.ndarray = (
            centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + self.eps) * self.weight
        )
        return normalised if self.bias is None else normalised + self.bias


def is_norm(module: nn.Module) -> bool:
    """Whether a module may be a normalisation: its weight is a factor of each dimension."""
    weight = getattr(module, "weight", None)
    return isinstance(weight, Tensor) and weight.ndim == 1


def normalisation_of(
    module: nn.Module, given: Float[np.ndarray, "token d_model"], made: Float[np.ndarray, "token d_model"]
) -> Normalisation | None:
    """The normalisation that a module computes, identified by its output; None where no formula gives that output."""
    weight = module.get_parameter("weight").detach().float().cpu().numpy()
    bias = getattr(module, "bias", None)
    eps = getattr(module, "eps", getattr(module, "variance_epsilon", None))
    methods: tuple[NormalisationMethod, ...] = ("layer", "rms")
    for method, gain in ((method, gain) for method in methods for gain in (weight, weight + 1)):
        if eps is None or weight.shape != given.shape[1:]:
            continue
        normalisation = Normalisation(
            method=method,
            weight=gain,
            bias=None if bias is None else bias.detach().float().cpu().numpy(),
            eps=float(eps),
            made=made,
        )
        if are_equal(normalisation.of(given), made):
            return normalisation
    return None


def are_equal(array: np.ndarray, expected: np.ndarray) -> bool:
    """Whether two matrices differ by no more than float32 rounding."""
    if array.shape != expected.shape:
        return False
    return bool(np.allclose(array, expected, rtol=0, atol=1e-4 * float(np.abs(expected).max())))
