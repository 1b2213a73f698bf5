"""One row of the table, and how times are taken."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """A number with its budget."""

    what: str
    value: float
    budget: float
    detail: str = ""

    @property
    def within(self) -> bool:
        """Whether the budget holds."""
        return self.value <= self.budget


def medians(runs: int, **calls: Callable[[], object]) -> dict[str, float]:
    """Median seconds of each call, measured in turns, so that the machine's load affects all alike."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(runs):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(taken) for name, taken in times.items()}
