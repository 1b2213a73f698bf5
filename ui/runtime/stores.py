"""The stores that can fill up: what they hold, their limits, and how full they are."""

from collections.abc import Callable
from dataclasses import dataclass

from ui.limits import CACHE_MB, JOBS_MB, MODELS_MB, UPLOADS_MB
from ui.runtime import jobs, uploads
from ui.runtime.remembered import MODELS, NUMBERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One store."""

    name: str
    holds: str
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
        holds="results of jobs that no visitor waits for any more",
        variable="ATTNVIZ_JOBS_MB",
        megabytes=JOBS_MB,
        n_bytes=lambda: jobs.state().kept_bytes,
        n_entries=lambda: jobs.state().n_kept,
    ),
    Kept(
        name="uploads",
        holds="uploaded files until they are read, opened bundles, and texts of visitors' own files",
        variable="ATTNVIZ_UPLOADS_MB",
        megabytes=UPLOADS_MB,
        n_bytes=uploads.n_bytes,
        n_entries=uploads.n_entries,
    ),
)
