"""Everything that is kept for longer than a page's run, each with a limit; README has it as a table, which a test compares.

One concept: the list of what is kept. `ui.work.metrics` tells how much of each there is.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ui.limits import CACHE_MB, JOBS_MB, MODELS_MB
from ui.work import jobs
from ui.work.remembered import MODELS, NUMBERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One store."""

    name: str
    holds: str
    """What is in it, in the words of README."""
    variable: str
    """The environment variable of its limit."""
    megabytes: int
    n_bytes: Callable[[], float]
    n_entries: Callable[[], int]


KEPT = (
    Kept(
        name="results",
        holds="what was computed from texts: traces, matrices, maps, verdicts",
        variable="ATTNVIZ_CACHE_MB",
        megabytes=CACHE_MB,
        n_bytes=lambda: NUMBERS.n_bytes,
        n_entries=lambda: NUMBERS.n_entries,
    ),
    Kept(
        name="models",
        holds="loaded models, in the server and once more in each worker process",
        variable="ATTNVIZ_MODELS_MB",
        megabytes=MODELS_MB,
        n_bytes=lambda: MODELS.n_bytes,
        n_entries=lambda: MODELS.n_entries,
    ),
    Kept(
        name="jobs",
        holds="results of jobs that nobody waits for any more",
        variable="ATTNVIZ_JOBS_MB",
        megabytes=JOBS_MB,
        n_bytes=lambda: jobs.state().kept_bytes,
        n_entries=lambda: jobs.state().n_kept,
    ),
)
