"""Floating-point rounding: how far two computations of the same numbers may differ.

A unit roundoff u is the largest relative error of one rounding to nearest. Products of half-precision numbers are
summed in float32 and rounded once, as matrix products of torch are.

Source: Higham 2002, "Accuracy and Stability of Numerical Algorithms", 2nd edition, section 2.1 (u) and equation 3.5
(dot products); the precisions of IEEE 754-2019, table 3.5, and of bfloat16 (8 bits).
"""

import math

import torch

_PRECISION = {torch.float64: 53, torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}  # bits


def unit_roundoff(dtype: torch.dtype) -> float:
    """Unit roundoff of a floating-point type.

    >>> unit_roundoff(torch.float32) == 2**-24
    True
    """
    return float(2.0 ** -_PRECISION[dtype])


def is_exact_factor(factor: float, dtype: torch.dtype) -> bool:
    """Whether multiplying by this factor never rounds, except for results too small for the type: a power of two that it holds.

    >>> is_exact_factor(0.125, torch.float32), is_exact_factor(32**-0.5, torch.float32)
    (True, False)
    """
    mantissa, _ = math.frexp(abs(factor))
    held = torch.finfo(dtype)
    return mantissa == 0.5 and held.tiny <= abs(factor) <= held.max


def dot_bound(n_term: int, dtype: torch.dtype = torch.float32) -> float:
    """Largest error of a sum of products in any order, as a share of the sum of their absolute values.

    ``gamma_n = n u / (1 - n u)`` with the u of float32, in which sums are computed, plus one rounding to the type.

    >>> round(dot_bound(32) / 2**-24, 3)
    33.0
    """
    u = unit_roundoff(torch.float32)
    return n_term * u / (1 - n_term * u) + unit_roundoff(dtype)


def likely_bound(n_rounding: int, dtype: torch.dtype = torch.float32) -> float:
    """Largest relative error of n roundings together, exceeded in at most one case in 10^13.

    ``lambda sqrt(n) u`` holds with probability ``1 - 2 exp(-lambda^2 / 2)`` to first order, where roundings are
    independent of each other with mean 0; lambda is 8.

    Source: Higham and Mary 2019, "A New Approach to Probabilistic Rounding Error Analysis" (SIAM J. Sci. Comput.
    41:A2815-A2835), theorem 2.4.

    >>> likely_bound(100) == 80 * 2**-24
    True
    """
    return float(8 * n_rounding**0.5 * unit_roundoff(dtype))
