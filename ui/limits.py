"""What the operator of a server allows, from environment variables; docs/limits.md has them as a table, which a test compares.

A Limit. Each is read once, when attnviz starts, which ends with one sentence where a value is not understood.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Limit:
    """One environment variable."""

    variable: str
    usual: str
    what: str
    """What it limits, in the words of docs/limits.md."""


LIMITS: list[Limit] = []
"""All of them, in the order of docs/limits.md."""


def _whole(variable: str, usual: int, what: str, *, lowest: int = 1, highest: int = 1_000_000_000) -> int:
    """A whole number; SystemExit, which ends the start with its sentence, for anything else."""
    LIMITS.append(Limit(variable, str(usual), what))
    written = os.environ.get(variable, str(usual))
    is_number = written.isascii() and written.isdigit() and len(written) < 12
    if not is_number or not lowest <= int(written) <= highest:
        to = f" to {highest}" if highest < 1_000_000_000 else ""
        raise SystemExit(
            f"{variable} is “{written}”; it takes a whole number from {lowest}{to}. Change it and start attnviz again."
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


_any(
    "ATTNVIZ_MODELS",
    "none",
    "models that are offered beside the two of attnviz: Hub ids and folders, separated by commas",
)  # read by attnviz.model.catalogue, for scripts and the command line too
_any(
    "ATTNVIZ_PROFILES",
    "none",
    "profiles and indices of many texts that are offered beside those of the bundled sentences, for the models that they were made "
    "with: their folders, or folders of them, separated by commas",
)  # read by `folders_with`


def folders_with(file: str) -> list[Path]:
    """The folders that ``ATTNVIZ_PROFILES`` names, or that are in one of those, and that hold a file of this name."""
    folders: list[Path] = []
    for listed in filter(None, map(str.strip, os.environ.get("ATTNVIZ_PROFILES", "").split(","))):
        path = Path(listed)
        with suppress(OSError):  # of a folder that may not be read
            folders += (
                [path] if (path / file).exists() else sorted(inner.parent for inner in path.glob(f"*/{file}"))
            )
    return folders


PEOPLE = _whole(
    "ATTNVIZ_PEOPLE", 200, "pages open at once; whoever comes then is asked to try again in a minute"
)
RUNS = _whole("ATTNVIZ_RUNS", 2, "pages that a server computes at once; the others wait in line")
WORKERS = _whole("ATTNVIZ_WORKERS", 2, "processes for maps, verdicts and other work that takes long")
JOBS = _whole("ATTNVIZ_JOBS", 200, "finished jobs whose results are kept")
CHARACTERS = _whole("ATTNVIZ_CHARACTERS", 100_000, "characters of a text that is not to be cut")
TOKENS = _whole("ATTNVIZ_TOKENS", 8192, "tokens of a text, where the model reads as many", lowest=8)
DISK_MB = _whole(
    "ATTNVIZ_DISK_MB",
    8000,
    "MB on disk, in a folder for temporary files, of what was read of texts of over 1,024 tokens, for all visitors together",
)
"""8,192 tokens of SmolLM2 take 1,000."""
CACHE_MB = _whole("ATTNVIZ_CACHE_MB", 1000, "MB of what was computed from texts, for all visitors together")
JOBS_MB = _whole("ATTNVIZ_JOBS_MB", 300, "MB of results of jobs")
UPLOAD_MB = _whole("ATTNVIZ_UPLOAD_MB", 160, "MB of an uploaded bundle", highest=160)
TEXTS_MB = _whole(
    "ATTNVIZ_TEXTS_MB",
    5,
    "MB of an uploaded file of texts, and of the texts in it; `attnviz corpus profile` reads larger ones",
    highest=160,
)
UPLOADS_MB = _whole(
    "ATTNVIZ_UPLOADS_MB", 1000, "MB of uploaded files and opened bundles, of all visitors together"
)
MODELS_MB = _whole("ATTNVIZ_MODELS_MB", 4000, "MB of loaded models in a server; a larger model is refused")
THREADS = _whole(
    "ATTNVIZ_THREADS",
    1,
    "threads of a computation in the server; a process for maps and verdicts has one",
)
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
LESSONS = _any(
    "ATTNVIZ_LESSONS",
    "none",
    "a folder of lessons of your own, as .toml files; For teachers says how to write one",
)
