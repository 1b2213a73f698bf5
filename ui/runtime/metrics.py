"""`/metrics` for Prometheus, on a port of its own: the counters of `ui.runtime.events` and the current gauges.

The port is off unless the operator names one, and bound to this machine unless they say otherwise, since usage is the
operator's own.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from ui.limits import CACHE_MB, DISK_MB, JOBS_MB, METRICS_ADDRESS, METRICS_PORT, MODELS_MB, UPLOADS_MB
from ui.runtime import gate, jobs, long_texts, uploads
from ui.runtime.events import REGISTRY
from ui.runtime.memory import resident
from ui.runtime.remembered import MODELS, NUMBERS
from ui.runtime.turns import line


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
        name="disk",
        holds="on disk, what was read of long texts",
        variable="ATTNVIZ_DISK_MB",
        megabytes=DISK_MB,
        n_bytes=lambda: long_texts.TRACES.n_bytes,
        n_entries=lambda: long_texts.TRACES.n_entries,
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


class Now(Collector):
    """The gauges, read when Prometheus asks."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Every gauge."""
        at = jobs.state()
        for name, value, says in (
            ("people", gate.n_open(), "Pages that are open."),
            ("runs_under_way", line.n_under_way, "Runs that have a turn."),
            ("runs_in_line", line.n_waiting, "Runs that wait for a turn."),
            ("jobs_under_way", at.n_under_way, "Jobs that a worker process is at."),
            ("jobs_waiting", at.n_waiting, "Jobs that wait for a worker process."),
            ("workers", len(at.processes), "Worker processes."),
            (
                "workers_resident_memory_bytes",
                sum(map(resident, at.processes)),
                "Memory of the worker processes.",
            ),
        ):
            yield GaugeMetricFamily(f"attnviz_{name}", says, value)
        kept = GaugeMetricFamily("attnviz_cache_bytes", "Bytes that are kept.", labels=["store"])
        most = GaugeMetricFamily(
            "attnviz_cache_limit_bytes", "Bytes that are kept at the most.", labels=["store"]
        )
        entries = GaugeMetricFamily("attnviz_cache_entries", "What is kept, in number.", labels=["store"])
        for store in KEPT:
            kept.add_metric([store.name], store.n_bytes())
            most.add_metric([store.name], store.megabytes * 1e6)
            entries.add_metric([store.name], store.n_entries())
        yield from (kept, most, entries)


def serve() -> None:
    """Serves the metrics as long as this process lives, if the operator wants them.

    Raises:
        SystemExit: the address cannot be bound; the start ends with this error's sentence.
    """
    if not METRICS_PORT:
        return
    registry = CollectorRegistry()
    for collector in (REGISTRY, Now(), ProcessCollector(registry=None)):
        registry.register(collector)
    try:
        start_http_server(METRICS_PORT, METRICS_ADDRESS, registry)
    except (OSError, OverflowError) as error:
        raise SystemExit(
            f"/metrics cannot listen at port {METRICS_PORT} of {METRICS_ADDRESS} ({error}). Change ATTNVIZ_METRICS_PORT or "
            "ATTNVIZ_METRICS_ADDRESS and start attnviz again."
        ) from None
