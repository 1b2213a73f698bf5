"""Attributions from gradients: the derivative of one number, times what a row of the input is.

One concept: from a differentiable function of some vectors to one number for each vector. torch only.

captum 0.9.0 has the same integral: on the bundled model and on tiny models of BERT, Llama and BART its numbers and these
differ by at most 6e-8, in equal time. It is not used, since its import brings matplotlib.pyplot, 0.4 s and 384 modules,
and it would replace 15 lines.
"""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

Differentiable = Callable[[Tensor], Tensor]
"""A number of each variant of some vectors, [variant, token, d] -> [variant]; no variant depends on another."""

MOST_VECTORS = 256
"""Vectors of all variants at a time: autograd keeps 35 KB for each in a layer of bert-base's sizes, 110 MB for these in 12
layers. More are no faster on one core."""


def gradient_times_input(
    function: Differentiable, inputs: Float[Tensor, "token d"]
) -> Float[np.ndarray, " token"]:
    """For each vector its dot product with the gradient of the function, in the function's unit.

    It is the change to first order when the vector becomes zero, with the sign reversed.

    Source: Shrikumar et al. 2016, "Not Just a Black Box" (arXiv:1605.01713), section 3.
    """
    gradient = _gradients(function, inputs[None])[0]
    return _summed(gradient * inputs)


def integrated_gradients(
    function: Differentiable,
    inputs: Float[Tensor, "token d"],
    baseline: Float[Tensor, "token d"],
    *,
    steps: int = 64,
    progress: Callable[[float], None] | None = None,
) -> Float[np.ndarray, " token"]:
    """For each vector the gradient, averaged on the straight line from the baseline, times its way; in the function's unit.

    Their sum is f(inputs) - f(baseline) up to the error of the integral: see `completeness_gap`.

    Args:
        steps: points of Gauss and Legendre's quadrature, exact for gradients that are polynomials of degree
            2 steps - 1.
        progress: called with the share that is done, 0 to 1.

    Source: Sundararajan et al. 2017, "Axiomatic Attribution for Deep Networks" (arXiv:1703.01365), equation 1, whose
    integral is summed there at equal steps (equation 3).
    """
    places, weights = np.polynomial.legendre.leggauss(steps)  # on [-1, 1]
    way = inputs - baseline
    mean = torch.zeros_like(inputs, dtype=torch.float64)
    n_at_once = max(1, MOST_VECTORS // len(inputs))
    for start in range(0, steps, n_at_once):
        share = torch.tensor((places[start : start + n_at_once] + 1) / 2).to(inputs)
        gradients = _gradients(function, baseline + share[:, None, None] * way)
        weight = torch.tensor(weights[start : start + n_at_once] / 2, device=inputs.device)
        mean += (weight[:, None, None] * gradients.double()).sum(dim=0)
        if progress is not None:
            progress(min(1.0, (start + n_at_once) / steps))
    return _summed(mean * way)


def completeness_gap(
    attributions: Float[np.ndarray, " token"],
    function: Differentiable,
    inputs: Float[Tensor, "token d"],
    baseline: Float[Tensor, "token d"],
) -> float:
    """Sum of the attributions - (f(inputs) - f(baseline)): 0 where the integral was exact.

    Source: Sundararajan et al. 2017 (arXiv:1703.01365), section 3, proposition 1 (completeness).
    """
    with torch.inference_mode():
        ends = function(torch.stack([inputs, baseline])).double()
    return float(attributions.sum(dtype=np.float64) - float(ends[0] - ends[1]))


def _gradients(
    function: Differentiable, variants: Float[Tensor, "variant token d"]
) -> Float[Tensor, "variant token d"]:
    with torch.enable_grad():
        asked = variants.detach().requires_grad_()
        (gradients,) = torch.autograd.grad(function(asked).sum(), asked)
    return gradients


def _summed(products: Float[Tensor, "token d"]) -> Float[np.ndarray, " token"]:
    numbers: np.ndarray = products.double().sum(dim=-1).float().cpu().numpy()
    return numbers
