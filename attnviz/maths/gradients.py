"""Attributions from gradients: the derivative of one number, times a row of the input.

torch only.

captum 0.9.0 has gradient x input, and integrated gradients at points that are fixed beforehand. It is not used: where the function
rises within a hundredth of the path, fixed points miss it, and importing it loads matplotlib.pyplot, 0.4 s and 384 modules.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

Differentiable = Callable[[Tensor], Tensor]
"""One number for each variant of some vectors, [variant, token, d] -> [variant]; no variant depends on another."""

MOST_VECTORS = 256
"""Most vectors at a time, of all variants together: autograd keeps 35 KB for each in a layer of bert-base's size, 110 MB for
these in 12 layers. More are no faster on one core."""

NODES = 5
"""Points in a panel of the path. Odd, so that the function is known in the middle, where a panel is halved. Their number matters little:
on three paths of SmolLM2-135M-Instruct, interpolated from 330 points each, 4 to 8 of them need 290 to 520 points in all."""

FIRST_PANELS = 8
"""Panels of the whole path before any is halved: the error of a single panel might be small by chance and end the search."""

MOST_POINTS = 480
"""Most points on the whole path: SmolLM2-135M-Instruct needs 390 for the 14 tokens of "When Mary and John went to the store, John gave a
drink to", 46 s of processor time; the bundled sentence encoder 40."""

NARROWEST = 2**-16
"""Share of the path below which a panel is not halved: in float32 its points begin to coincide, and a function that still rises
that much jumps, as a mixture of experts does where a token changes expert."""

TOLERANCE = 0.01
"""Largest error of integrated gradients, as a share of the difference or of the largest value, whichever is larger. The error is all
that can be wrong in the sum, so a hundredth cannot be seen in a colour or in numbers of two digits; a share of the difference
alone would refuse values that cancel, such as 2 and -1.99. Sundararajan et al. 2017, section 5, call a sum within 5% enough."""

ROUNDING = 1e-6
"""Up to this an error counts as none: the rounding of float32."""


@contextmanager
def differentiable() -> Iterator[None]:
    """A context, or a decorator, in which tensors can be differentiated, whatever the caller has switched off.

    A tensor that was made under `torch.inference_mode` cannot be, so whatever makes the tensors is within it too.
    """
    with torch.inference_mode(False), torch.enable_grad():
        yield


@differentiable()
def gradient_times_input(
    function: Differentiable, inputs: Float[Tensor, "token d"]
) -> Float[np.ndarray, " token"]:
    """For each vector, its dot product with the gradient of the function, in the function's unit.

    It is the change to first order when the vector becomes zero, with the sign reversed.

    Source: Shrikumar et al. 2016, "Not Just a Black Box" (arXiv:1605.01713), section 3.
    """
    _, gradients = _differentiate(function, inputs[None])
    numbers: np.ndarray = _summed(gradients * inputs)[0].astype(np.float32)
    return numbers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PathIntegral:
    """Integrated gradients, and the error of their sum."""

    values: Float[np.ndarray, " token"]
    """One attribution for each vector, in the function's unit."""
    difference: float
    """f(inputs) - f(baseline), which the values sum to if the integral is exact."""
    error: float
    """Sum over all panels of how far each panel's sum is from the difference of f between its ends. The sum of the values is at most
    this far from `difference`, and closer where panels are off in both directions."""
    n_points: int
    """Points on the path at which the gradient was taken."""

    @property
    def converged(self) -> bool:
        """Whether the error is at most `TOLERANCE` of the difference, or of the largest value if that is larger."""
        return self.is_within(TOLERANCE)

    def is_within(self, share: float) -> bool:
        """Whether the error is at most this share of the difference or of the largest value, or is rounding."""
        largest = float(np.abs(self.values).max(initial=0.0))
        return self.error <= max(share * max(abs(self.difference), largest), ROUNDING)

    def joined(self, other: "PathIntegral") -> "PathIntegral":
        """The integral over this part of a path and another."""
        return PathIntegral(
            values=self.values + other.values,
            difference=self.difference,
            error=self.error + other.error,
            n_points=self.n_points + other.n_points,
        )


@differentiable()
def integrated_gradients(
    function: Differentiable,
    inputs: Float[Tensor, "token d"],
    baseline: Float[Tensor, "token d"],
    *,
    most_points: int = MOST_POINTS,
    part: tuple[int, int] = (0, 1),
    progress: Callable[[float], None] | None = None,
) -> PathIntegral:
    """For each vector, the gradient, averaged along the straight line from the baseline, times its difference from the baseline.

    The path is divided into panels, each with the `NODES` points of Gauss-Legendre quadrature. The error of a panel is known,
    not estimated: its values must sum to the difference of f between its ends. The panel with the largest error is halved until
    the integral has converged (`PathIntegral.converged`). It stops before that at `most_points`, or where that panel is too narrow
    to be halved: there the function jumps. Errors of single tokens that cancel within a panel go unnoticed.

    Args:
        most_points: most points on the whole path.
        part: number of the part of the path, from 0 at the baseline, and number of equal parts, each with its share of the points
            and of the error; see `PathIntegral.joined`.
        progress: called with the share of the points that is done, 0 to 1.

    Source: Sundararajan et al. 2017, "Axiomatic Attribution for Deep Networks" (arXiv:1703.01365), equation 1, whose integral is
    summed there at equal steps (equation 3), and proposition 1 (completeness), which holds on any part of the path; halving
    the worst panel: Piessens et al. 1983, QUADPACK, algorithm QAG, there by an estimated error.
    """
    number, n_part = part
    most_points = most_points // n_part

    def tell(n_points: int) -> None:
        if progress is not None:
            progress(min(1.0, n_points / most_points))

    path = _Path(function, inputs, baseline, tell)
    edges = np.linspace(number, number + 1, max(1, FIRST_PANELS // n_part) + 1) / n_part
    before, after, *met = path.outcomes([0.0, 1.0, *edges.tolist()])
    panels = path.panels(edges.tolist(), met)
    while True:
        integral = PathIntegral(
            values=np.sum([panel.values for panel in panels], axis=0),
            difference=after - before,
            error=sum(panel.error for panel in panels),
            n_points=path.n_points,
        )
        worst = max(panels, key=lambda estimate: estimate.error)
        if (
            integral.is_within(TOLERANCE / n_part)
            or path.n_points + 2 * NODES > most_points
            or worst.end - worst.start < NARROWEST
            or np.isnan(integral.error)
        ):
            return integral
        panels.remove(worst)
        panels += path.panels([worst.start, worst.middle, worst.end], worst.outcomes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Panel:
    """A part of the path between two shares of the way, with its part of the integral."""

    start: float
    middle: float
    end: float
    outcomes: tuple[float, float, float]
    """The function at these three."""
    values: Float[np.ndarray, " token"]

    @property
    def error(self) -> float:
        """How far the sum of the values is from that of the exact integral."""
        return abs(float(self.values.sum()) - (self.outcomes[2] - self.outcomes[0]))


class _Path:
    """A function on the straight line from the baseline, 0, to the inputs, 1.

    Args:
        tell: called with the number of points at which the gradient was taken, after each batch.
    """

    def __init__(
        self,
        function: Differentiable,
        inputs: Float[Tensor, "token d"],
        baseline: Float[Tensor, "token d"],
        tell: Callable[[int], None],
    ) -> None:
        self._function, self._baseline, self._way, self._tell = function, baseline, inputs - baseline, tell
        self.n_points = 0

    def outcomes(self, shares: Sequence[float]) -> list[float]:
        """The function at some shares of the way."""
        with torch.inference_mode():
            return [
                float(outcome)
                for some in self._batches(shares)
                for outcome in self._function(self._at(some)).double()
            ]

    def panels(self, edges: Sequence[float], outcomes: Sequence[float]) -> list[_Panel]:
        """The panels between edges at which the function is known."""
        places, weights = np.polynomial.legendre.leggauss(NODES)  # on [-1, 1]
        points = [
            (start + end) / 2 + (end - start) / 2 * place
            for start, end in pairwise(edges)
            for place in places
        ]
        met: list[float] = []
        slopes: list[np.ndarray] = []
        for some in self._batches(points):
            made, gradients = _differentiate(self._function, self._at(some))
            met += made.double().tolist()
            slopes += [*_summed(gradients * self._way)]
            self.n_points += len(some)
            self._tell(self.n_points)
        middle = NODES // 2
        return [
            _Panel(
                start=start,
                middle=points[first + middle],
                end=end,
                outcomes=(before, met[first + middle], after),
                values=(end - start) / 2 * (weights @ np.stack(slopes[first : first + NODES])),
            )
            for first, (start, end), (before, after) in zip(
                range(0, len(points), NODES), pairwise(edges), pairwise(outcomes), strict=True
            )
        ]

    def _at(self, shares: Sequence[float]) -> Float[Tensor, "point token d"]:
        return (
            self._baseline
            + torch.tensor(shares, dtype=torch.float64).to(self._way)[:, None, None] * self._way
        )

    def _batches(self, shares: Sequence[float]) -> list[Sequence[float]]:
        n_at_once = max(1, MOST_VECTORS // len(self._way))
        return [shares[first : first + n_at_once] for first in range(0, len(shares), n_at_once)]


def _differentiate(
    function: Differentiable, variants: Float[Tensor, "variant token d"]
) -> tuple[Float[Tensor, " variant"], Float[Tensor, "variant token d"]]:
    """The function of each variant, and its gradient."""
    asked = (
        variants.detach().clone().requires_grad_()
    )  # what was made under inference_mode is differentiable as a copy
    made = function(asked)
    (gradients,) = torch.autograd.grad(made.sum(), asked)
    return made.detach(), gradients


def _summed(products: Float[Tensor, "variant token d"]) -> Float[np.ndarray, "variant token"]:
    numbers: np.ndarray = products.double().sum(dim=-1).cpu().numpy()
    return numbers
