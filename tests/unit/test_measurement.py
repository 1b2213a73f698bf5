"""Measuring: the memory that torch holds against paper and the process's own peak, and where a series ends."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from attnviz.cost import measurement
from attnviz.cost.counting import TILE
from attnviz.cost.measurement import METHODS, granted_bytes, measure, peak_bytes

ROOT = Path(__file__).parents[2]
D_HEAD, D_VALUE = 5, 7
ENOUGH = 10**12


def vectors(n_token: int) -> list[torch.Tensor]:
    return [torch.randn(n_token, width) for width in (D_HEAD, D_HEAD, D_VALUE)]


def test_memory_is_counted_to_the_byte():
    kept = torch.ones(1009)  # there before, and so not counted
    assert peak_bytes(lambda: kept + kept) == 4 * 1009
    assert peak_bytes(lambda: (kept + kept).neg()) == 8 * 1009  # the sum is there until the product is
    assert peak_bytes(lambda: torch.empty(1009, dtype=torch.float64)) == 8 * 1009
    assert peak_bytes(lambda: None) == 0


def test_the_whole_matrix_is_held_once():
    n = 521
    peak = peak_bytes(lambda: METHODS["whole"](*vectors_of_521))
    # Beside it first the scaled queries, then each row's sum and the output, and a few bytes of scalars.
    assert 4 * n * (n + D_VALUE) <= peak <= 4 * n * (n + D_VALUE + 3) + 64


vectors_of_521 = vectors(521)


@pytest.mark.parametrize("method", ["rows", "streaming"])
def test_other_ways_never_hold_the_matrix(method):
    small, large = (vectors(n) for n in (1024, 2048))
    peaks = [peak_bytes(lambda tensors=tensors: METHODS[method](*tensors)) for tensors in (small, large)]
    assert peaks[1] < 4 * 2048 * TILE * 8  # a few copies of the cells at hand
    assert peaks[1] / peaks[0] == pytest.approx(2, abs=0.05)


@pytest.mark.nightly
def test_the_process_itself_grows_as_much():
    """The peak of a separate process, as the system reports it."""
    code = """
import re, torch
from pathlib import Path
from attnviz.cost.measurement import METHODS, peak_bytes

def peak():  # of this program; getrusage's would be that of whoever started it
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024

small, large = ([torch.randn(n, 16) for _ in range(3)] for n in (64, 4096))
METHODS["whole"](*small)
before = peak()
METHODS["whole"](*large)
print(peak() - before, peak_bytes(lambda: METHODS["whole"](*large)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    grown, counted = map(int, done.stdout.split())
    assert grown == pytest.approx(counted, rel=0.1)  # of 67 MB; the rest is BLAS's


def test_a_series_ends_where_memory_does():
    """256 tokens hold 263 to 270 kB as a whole; 512 would take four times that."""
    series = measure(D_HEAD, D_VALUE, seconds=600.0, n_bytes=600_000)
    whole = [measurement.n_token for measurement in series.measurements if measurement.method == "whole"]
    assert whole == [64, 128, 256]
    assert [stop.method for stop in series.stops if stop.n_token == 512] == ["whole", "streaming"]
    [stop] = [stop for stop in series.stops if stop.method == "whole"]
    [last] = [
        measurement
        for measurement in series.measurements
        if measurement.method == "whole" and measurement.n_token == 256
    ]
    assert (stop.reason, stop.granted, stop.expected) == ("memory", 600_000, 4 * last.n_bytes)
    assert max(measurement.n_bytes for measurement in series.measurements) <= 600_000
    assert all(measurement.seconds > 0 for measurement in series.measurements)
    assert {stop.method for stop in series.stops} == METHODS.keys()
    assert all(
        0 <= difference < 1e-6 for difference in series.differences.values()
    )  # float32, means of numbers about 1
    assert [n_token for n_token in series.differences if n_token <= 256] == [64, 128, 256]


def test_a_series_ends_where_time_does():
    told = []
    series = measure(D_HEAD, D_VALUE, seconds=0.0, n_bytes=ENOUGH, progress=told.append)
    assert [(measurement.method, measurement.n_token) for measurement in series.measurements] == [
        (method, 64) for method in METHODS
    ]
    assert {(stop.n_token, stop.reason) for stop in series.stops} == {(128, "time")}
    assert len(told) == len(METHODS)
    assert all(0 <= share <= 1 for share in told)


@pytest.mark.parametrize(
    ("durations", "shortest"),
    [
        ((9.0, 0.25, 0.125, 0.5), 0.125),
        ((9.0, 0.75, 0.5), 0.5),  # the third would follow on more than a second
        ((9.0, 1.5), 1.5),
    ],
)
def test_a_time_is_the_shortest_of_three_runs(durations, shortest, monkeypatch):
    """After one for the memory, which does not count; of fewer runs where they take longer than a second."""
    now, left = 0.0, list(durations)

    def run(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        nonlocal now
        now += left.pop(0)
        return value

    monkeypatch.setattr(measurement, "METHODS", {"whole": run})
    monkeypatch.setattr(measurement, "time", SimpleNamespace(perf_counter=lambda: now))
    [measured] = measure(D_HEAD, D_VALUE, seconds=0.0, n_bytes=ENOUGH).measurements
    assert (measured.seconds, left) == (shortest, [])


def test_differences_are_of_the_outputs(monkeypatch):
    wrong = METHODS | {"streaming": lambda *vectors: METHODS["rows"](*vectors) + 0.25}
    monkeypatch.setattr(measurement, "METHODS", wrong)
    series = measure(D_HEAD, D_VALUE, seconds=0.0, n_bytes=ENOUGH)
    assert series.differences[64] == pytest.approx(0.25, abs=1e-6)


@pytest.mark.parametrize(
    ("free", "granted"), [(4_096_000, 1_024_000), (0, 0), (10**13, 1_000_000_000), (None, 250_000_000)]
)
def test_memory_that_may_be_taken(monkeypatch, free, granted):
    monkeypatch.setattr(measurement, "free_bytes", lambda: free)
    assert granted_bytes() == granted  # a quarter of what is free, and no more than a gigabyte
