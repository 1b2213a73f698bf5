"""The cost of attention, measured: seconds and bytes of attnviz's own functions, for texts of doubling length."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import torch
from torch import Tensor
from torch.autograd.profiler import profile

from attnviz.cost.counting import TILE
from attnviz.cost.streaming import streaming_attention
from attnviz.maths.attention import attention_output
from attnviz.maths.blocks import attention_output_in_blocks
from attnviz.model.memory import free_bytes
from attnviz.records import Progress

Method = Literal["whole", "rows", "streaming"]
"""The whole matrix at once; some rows at a time, as the models run here; some keys at a time."""
METHODS: dict[Method, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "whole": lambda query, key, value: attention_output(query, key, value, query.shape[-1] ** -0.5),
    "rows": lambda query, key, value: attention_output_in_blocks(query, key, value, query.shape[-1] ** -0.5),
    "streaming": lambda query, key, value: streaming_attention(
        query, key, value, query.shape[-1] ** -0.5, tile=TILE
    ),
}

SECONDS = 20.0
"""Time limit of a series: short enough to wait for, long enough for 16,000 tokens on a laptop."""
SHARE_OF_MEMORY = 0.25
"""Share of the free memory: other people's texts need the rest."""
MOST_BYTES = 1_000_000_000
FEWEST_TOKENS = 64
_REPEATS = 3
_Pair = tuple[float | int, float | int]
_LONG = 1.0  # seconds of runs after which no further run starts


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Time and memory of one method for one head at one number of tokens."""

    method: Method
    n_token: int
    seconds: float
    """The shortest of three runs, or of fewer if together they take longer than a second."""
    n_bytes: int
    """Peak memory, without the queries, keys and values: see `peak_bytes`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Why a method was not measured any further."""

    method: Method
    n_token: int
    """The first number of tokens that was not measured."""
    reason: Literal["memory", "time"]
    expected: float | int
    """Bytes or seconds that the next run was expected to take."""
    granted: float | int
    """Bytes or seconds that were available."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Measurements of all methods, each from `FEWEST_TOKENS` up to where it stopped."""

    measurements: tuple[Measurement, ...]
    stops: tuple[Stop, ...]
    differences: dict[int, float]
    """Largest difference of any two methods' outputs, by number of tokens; only where two methods were measured."""


def measure(
    d_head: int,
    d_value: int,
    *,
    seconds: float = SECONDS,
    n_bytes: int | None = None,
    progress: Progress | None = None,
) -> Series:
    """Time and memory of one head's attention in three ways, for 64 tokens, 128 and so on.

    Queries, keys and values are random with unit variance and the same every time, since no text is that long. A
    method ends before a run that would take more memory than is granted, or more time than is left; twice the tokens
    are expected to take four times the time, and four times the memory for the whole matrix, twice for the others.

    Args:
        seconds: time limit of the whole series.
        n_bytes: memory limit of a run; None for `granted_bytes`.
        progress: called with the share of the time that is used.
    """
    granted = granted_bytes() if n_bytes is None else n_bytes
    began = time.perf_counter()
    last: dict[Method, tuple[Measurement, float]] = {}  # with the seconds that measuring it took
    measurements: list[Measurement] = []
    stops: list[Stop] = []
    differences: dict[int, float] = {}
    n_token = FEWEST_TOKENS
    while len(stops) < len(METHODS):
        vectors = None
        outputs: list[Tensor] = []
        for method in METHODS:
            if any(stop.method == method for stop in stops):
                continue
            if method in last:
                left = began + seconds - time.perf_counter()
                before, took = last[method]
                memory = before.n_bytes * (4 if method == "whole" else 2)
                if stop := _stop(method, n_token, memory=(memory, granted), time=(4 * took, left)):
                    stops.append(stop)
                    continue
            vectors = vectors or _vectors(n_token, d_head, d_value)
            start = time.perf_counter()
            output, measured = _measured(method, vectors)
            last[method] = (measured, time.perf_counter() - start)
            measurements.append(measured)
            outputs.append(output)
            if progress is not None:
                progress(min(1.0, (time.perf_counter() - began) / max(seconds, 1e-9)))
        if len(outputs) > 1:
            differences[n_token] = max(
                float((first - second).abs().max()) for first, second in combinations(outputs, 2)
            )
        n_token *= 2
    return Series(measurements=tuple(measurements), stops=tuple(stops), differences=differences)


def peak_bytes(call: Callable[[], object]) -> int:
    """Peak memory that torch held for tensors made during a call.

    Counted from torch's own record of allocations and frees, so that it is exact and the same every time:
    tracemalloc does not see torch's memory, and the peak of the process includes whatever ran before. Memory that a
    library allocates outside torch, as BLAS does for packing blocks, is not counted.

    Source: torch 2.13, ``torch.autograd.profiler.profile(profile_memory=True)``.
    """
    with profile(profile_memory=True) as profiler:
        result = call()
    del result  # kept until here, or it would count as freed
    held = peak = 0
    assert profiler.kineto_results is not None
    for event in profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            peak = max(peak, held)
    return peak


def granted_bytes() -> int:
    """Bytes that a run may take: `SHARE_OF_MEMORY` of what is free now, at most `MOST_BYTES`.

    Free memory is what the system reports and, in a container, what its limit leaves. Where the system reports none
    (Windows), a quarter of `MOST_BYTES`.
    """
    free = free_bytes()
    return min(MOST_BYTES, int(SHARE_OF_MEMORY * (MOST_BYTES if free is None else free)))


def _stop(method: Method, n_token: int, *, memory: _Pair, time: _Pair) -> Stop | None:
    """Why a method must not be measured for this many tokens; None where it may. Pairs are (expected, granted)."""
    reasons: dict[Literal["memory", "time"], _Pair] = {"memory": memory, "time": time}
    for reason, (expected, granted) in reasons.items():
        if expected > granted:
            return Stop(method=method, n_token=n_token, reason=reason, expected=expected, granted=granted)
    return None


def _vectors(n_token: int, d_head: int, d_value: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    query, key, value = (
        torch.randn(n_token, size, generator=generator) for size in (d_head, d_head, d_value)
    )
    return query, key, value


def _measured(method: Method, vectors: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Measurement]:
    """The output of a method with its memory and its time; memory is measured first, as a warm-up."""
    run = METHODS[method]
    with torch.inference_mode():
        n_bytes = peak_bytes(lambda: run(*vectors))
        durations: list[float] = []
        while len(durations) < _REPEATS and sum(durations) < _LONG:
            start = time.perf_counter()
            output = run(*vectors)
            durations.append(time.perf_counter() - start)
    return output, Measurement(
        method=method, n_token=len(vectors[0]), seconds=min(durations), n_bytes=n_bytes
    )
