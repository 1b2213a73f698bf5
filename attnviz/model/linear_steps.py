"""The steps by which a network makes one vector of another, where each is linear or an activation: maps, norms, slopes.

They are found from what passed through the modules: each step's input is the step before's output. An activation may be a module or a
function; it is identified by its output. A gate, which multiplies two vectors, is no such step.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from transformers.activations import ACT2FN

from attnviz.model.direct_path import Affine, FrozenNorm, frozen_norm
from attnviz.model.normalisation import is_norm, normalisation_of
from attnviz.model.stream import Call
from attnviz.model.structure import Linear, linear_parameters
from attnviz.records import Record

_MOST_STEPS = 6
"""A language head of BERT has four: a map, an activation, a norm, a map."""

_PLAIN = (
    "gelu",
    "gelu_new",
    "gelu_10",
    "quick_gelu",
    "relu",
    "relu2",
    "relu6",
    "silu",
    "mish",
    "hardswish",
    "leaky_relu",
    "tanh",
)
"""Activations of transformers that are 0 at 0, so that f(z) is z times a slope."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Slopes(Record):
    """An activation at the vector that it had: f(z) / z in each dimension."""

    slopes: Float[np.ndarray, "*token d_model"]


Step: TypeAlias = Affine | FrozenNorm | Slopes


def steps_between(
    start: Float[np.ndarray, "*token d_start"], end: Float[np.ndarray, "*token d_end"], calls: Sequence[Call]
) -> tuple[Step, ...] | None:
    """The steps from one vector to another, or from each token's to its other; none where they are equal, None where no steps lead there."""
    return next(_ways(start, end, calls, _MOST_STEPS), None)


def _ways(start: np.ndarray, end: np.ndarray, calls: Sequence[Call], most: int) -> Iterator[tuple[Step, ...]]:
    if np.array_equal(start, end):
        yield ()
        return
    if not most:
        return
    for at, call in enumerate(calls):
        if np.array_equal(call.given, start) and not np.array_equal(call.made, start):
            step = _step(call)
            if step is not None:
                for others in _ways(call.made, end, calls[at + 1 :], most - 1):
                    yield (step, *others)
    reached = [call.given for call in calls if isinstance(call.module, Linear) or is_norm(call.module)]
    for given in [*reached, end]:
        slopes = _slopes(start, given)
        if slopes is not None:
            for others in _ways(given, end, calls, most - 1):
                yield (slopes, *others)


def _step(call: Call) -> Affine | FrozenNorm | None:
    if isinstance(call.module, Linear):
        weight, bias = linear_parameters(call.module)
        return Affine(
            weight=weight.float().cpu().numpy(),
            bias=np.zeros(weight.shape[1], dtype=np.float32) if bias is None else bias.float().cpu().numpy(),
        )
    if not is_norm(call.module):
        return None
    rows = [vectors.reshape(-1, vectors.shape[-1]) for vectors in (call.given, call.made)]
    norm = normalisation_of(call.module, *rows)
    return None if norm is None else frozen_norm(norm, call.given)


def _slopes(given: np.ndarray, made: np.ndarray) -> Slopes | None:
    """The slopes of the activation that gave these numbers; None where none did."""
    if given.shape != made.shape or np.array_equal(given, made):
        return None
    numbers, wanted = torch.tensor(given), torch.tensor(made)
    for function in _activations().values():
        if torch.allclose(function(numbers), wanted, rtol=1e-5, atol=1e-6):
            slopes = np.divide(made, given, out=np.zeros_like(made), where=given != 0)
            return Slopes(slopes=slopes)
    return None


@cache
def _activations() -> Mapping[str, Callable[[Tensor], Tensor]]:
    return {name: ACT2FN[name] for name in _PLAIN}
