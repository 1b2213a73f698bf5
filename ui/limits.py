"""What the operator of a server allows, from environment variables; README has them as a table, which a test compares.

One concept: a Limit. Each is read once, when attnviz starts, which ends with one sentence where a value is not understood.
"""

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limit:
    """One environment variable."""

    variable: str
    usual: str
    what: str
    """What it limits, in the words of README."""


LIMITS: list[Limit] = []
"""All of them, in the order of README's table."""


def _whole(variable: str, usual: int, what: str, *, lowest: int = 1) -> int:
    """A whole number; SystemExit, which ends the start with its sentence, for anything else."""
    LIMITS.append(Limit(variable, str(usual), what))
    written = os.environ.get(variable, str(usual))
    if not written.isascii() or not written.isdigit() or int(written) < lowest:
        raise SystemExit(
            f"{variable} is “{written}”; it takes a whole number from {lowest}. Change it and start attnviz again."
        )
    return int(written)


def _word(variable: str, usual: str, others: tuple[str, ...], what: str) -> str:
    LIMITS.append(Limit(variable, usual, what))
    written = os.environ.get(variable, usual)
    if written not in (usual, *others):
        raise SystemExit(
            f"{variable} is “{written}”; it takes {', '.join((usual, *others))}. Change it and start attnviz again."
        )
    return written


def _any(variable: str, usual: str, what: str) -> str:
    LIMITS.append(Limit(variable, usual, what))
    return os.environ.get(variable, usual)


PEOPLE = _whole(
    "ATTNVIZ_PEOPLE", 200, "pages open at once; whoever comes then is asked to try again in a minute"
)
RUNS = _whole("ATTNVIZ_RUNS", 2, "pages that a server computes at once; the others wait in line")
WORKERS = _whole("ATTNVIZ_WORKERS", 2, "processes for maps, verdicts and other work that takes long")
JOBS = _whole("ATTNVIZ_JOBS", 200, "finished jobs whose results are kept")
CHARACTERS = _whole("ATTNVIZ_CHARACTERS", 100_000, "characters of a text")
TOKENS = _whole("ATTNVIZ_TOKENS", 1024, "tokens of a text, where the model reads as many", lowest=8)
CACHE_MB = _whole("ATTNVIZ_CACHE_MB", 1000, "MB of what was computed from texts, for all visitors together")
JOBS_MB = _whole("ATTNVIZ_JOBS_MB", 300, "MB of results of jobs")
MODELS_MB = _whole("ATTNVIZ_MODELS_MB", 4000, "MB of loaded models in a server; a larger model is refused")
DOWNLOADS = _word(
    "ATTNVIZ_DOWNLOADS",
    "local",
    ("yes", "no"),
    "who may start a download: `local`, only a browser on the server's own machine; `yes`, every browser; `no`, none",
)
WARM = _word(
    "ATTNVIZ_WARM",
    "yes",
    ("no",),
    "whether the default model is loaded, and the processes are started, before the first visitor comes",
)
LOG_TEXTS = _word(
    "ATTNVIZ_LOG_TEXTS",
    "no",
    ("yes",),
    "whether what visitors write, and the words of errors, stand in the log",
)
METRICS_PORT = _whole(
    "ATTNVIZ_METRICS_PORT", 0, "the port of `/metrics` for Prometheus; 0 for none", lowest=0
)
METRICS_ADDRESS = _any("ATTNVIZ_METRICS_ADDRESS", "127.0.0.1", "the address that `/metrics` listens at")
