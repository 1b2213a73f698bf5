"""What happens on the server: each event is written to the log and counted for Prometheus.

`ui.runtime.metrics` serves what is counted here; docs/operating.md shows a line of each and explains its values.
"""

import logging
import threading
import time
from typing import Any, Literal

from prometheus_client import CollectorRegistry, Counter, Histogram

from ui.runtime import log
from ui.runtime.process import WorkerLostError

Ended = Literal["done", "cancelled", "failed"]
"""How a job ended."""
REGISTRY = CollectorRegistry()
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""Bucket bounds of the histograms."""
_RUNS = Counter(
    "attnviz_runs",
    "Runs of pages, and of blocks of a page that redraw themselves.",
    ["kind", "outcome"],
    registry=REGISTRY,
)
_RUN_SECONDS = Histogram(
    "attnviz_run_seconds",
    "Seconds of a page's run, once it has its turn.",
    ["page"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
_WAIT_SECONDS = Histogram(
    "attnviz_wait_seconds", "Seconds that a page's run was in line.", buckets=_SECONDS, registry=REGISTRY
)
_VISITORS = Counter("attnviz_visitors", "Pages that were opened.", registry=REGISTRY)
_REFUSED = Counter("attnviz_refused", "What was refused to visitors.", ["reason"], registry=REGISTRY)
_JOBS = Counter("attnviz_jobs_ended", "Jobs that have ended.", ["outcome"], registry=REGISTRY)
_JOB_SECONDS = Histogram(
    "attnviz_job_seconds", "Seconds of jobs that were finished.", ["job"], buckets=_SECONDS, registry=REGISTRY
)
_DOWNLOADS = Counter("attnviz_downloads", "Downloads that have ended.", ["outcome"], registry=REGISTRY)


_run = threading.local()


def draws_selection() -> None:
    """Notes that this thread's run draws what is selected, and so counts as a page's run even if the rest of the page stays."""
    _run.draws_selection = True


def drew_selection() -> bool:
    """Whether this thread's run, which has ended, drew what is selected."""
    did = getattr(_run, "draws_selection", False)
    _run.draws_selection = False
    return did


class Progress:
    """Progress in the log: a line at every tenth, and at most one a second."""

    def __init__(self, name: str, **values: Any) -> None:
        self._name = name
        self._values = values
        self._begun = self._told = time.monotonic()
        self._tenth = 0

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._begun

    def is_at(self, share: float) -> None:
        """Reports the progress, 0 to 1."""
        now, tenth = time.monotonic(), int(share * 10)
        if self._tenth < tenth < 10 and now - self._told >= 1:
            self._tenth, self._told = tenth, now
            log.event(self._name, **self._values, percent=10 * tenth, seconds=self.seconds)


def started(**values: Any) -> None:
    """The server has started."""
    log.event("start", **values)


def ready(seconds: float) -> None:
    """The default model is loaded, and the worker processes have theirs."""
    log.event("ready", seconds=seconds)


def stopped(seconds: float) -> None:
    """The server ends."""
    log.event("stop", seconds=seconds)


def visitor_came(visitor: str, n_open: int) -> None:
    """A page was opened; each of its runs names the same visitor."""
    _VISITORS.inc()
    log.event("visitor_came", visitor=visitor, open=n_open)


def visitor_left(visitor: str, n_open: int, seconds: float) -> None:
    """A page was closed."""
    log.event("visitor_left", visitor=visitor, open=n_open, seconds=seconds)


def idle(n_bytes: int) -> None:
    """The last visitor has left, and memory was given back; ``n_bytes`` are still in use."""
    log.event("idle", megabytes=n_bytes // 10**6)


def refused(reason: str, **values: Any) -> None:
    """A visitor was refused, and told why."""
    _REFUSED.labels(reason).inc()
    log.event("refused", reason=reason, **values)


def ran(
    visitor: str | None,
    page: str,
    outcome: Literal["done", "replaced", "stopped", "failed"],
    *,
    waited: float,
    seconds: float,
    is_block: bool,
) -> None:
    """A page or one of its blocks was drawn; blocks get no line, since those that show a job's progress run twice a second.

    Args:
        outcome: `replaced` by a newer request of the visitor, or `stopped`, mostly because the visitor left.
        waited: seconds in line.
        seconds: of the run itself, after its wait.
    """
    _RUNS.labels("block" if is_block else "page", outcome).inc()
    if is_block:
        return
    _WAIT_SECONDS.observe(waited)
    _RUN_SECONDS.labels(page).observe(seconds)
    log.event("run", visitor=visitor, page=page, outcome=outcome, waited=waited, seconds=seconds)


def read(model: str, n_token: int, seconds: float, text: str, second: str) -> None:
    """A model has read a text that was not cached."""
    log.event("read", model=model, tokens=n_token, seconds=seconds, **log.texts(text=text, second=second))


def model_loaded(model: str, n_bytes: int, seconds: float) -> None:
    """The server or a worker process has loaded a model into memory."""
    log.event("model_loaded", model=model, megabytes=n_bytes // 10**6, seconds=seconds)


def job_begun(job: str, n_call: int) -> None:
    """A worker process has started a job's first call, or its first since the job was cancelled or failed."""
    log.event("job_begun", job=job, calls=n_call)


def job_ended(job: str, outcome: Ended, seconds: float, error: Exception | None = None) -> None:
    """All results are there, or the last visitor has left, or a call has raised an error."""
    _JOBS.labels(outcome).inc()
    if outcome == "done":
        _JOB_SECONDS.labels(job).observe(seconds)
    level = logging.WARNING if outcome == "failed" else logging.INFO
    because = str(error) if isinstance(error, WorkerLostError) else None  # no visitor's words
    log.event(f"job_{outcome}", level=level, job=job, seconds=seconds, because=because, error=error)


def download_begun(model: str) -> None:
    """A visitor has started a download."""
    log.event("download_begun", model=model)


def download_ended(model: str, seconds: float, n_bytes: int, error: Exception | None = None) -> None:
    """A model is on disk, or the reason why not, in attnviz's own words."""
    outcome = "failed" if error else "done"
    _DOWNLOADS.labels(outcome).inc()
    level = logging.WARNING if error else logging.INFO
    log.event(
        f"download_{outcome}",
        level=level,
        model=model,
        megabytes=n_bytes // 10**6,
        seconds=seconds,
        because=None if error is None else str(error),
    )
