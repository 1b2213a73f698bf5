"""Traces of long texts, and the verdicts on them: made by a process of their own, one text after the other, and kept on disk.

The server maps the files into memory, so that it holds only what it reads of them, and all visitors of a text share them.
"""

import atexit
import glob
import os
import platform
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from attnviz.errors import TextTooLongError, VerificationError
from attnviz.model import storage
from attnviz.model.trace import Trace
from attnviz.records import Kind, LayerAttention, Tokens, VerificationReport
from ui.limits import DISK_MB
from ui.runtime import events, jobs, with_model
from ui.runtime.jobs import TELLS_PROGRESS, Call, Job
from ui.runtime.memory import n_bytes
from ui.runtime.remembered import NUMBERS, OF_MODEL, Store
from ui.runtime.source import Source

_READ, _CHECKED = "read_long", "verify_long"

Read = tuple[Tokens, Tokens | None]
"""The tokens of a text, and those that a decoder reads."""


def on_disk(trace: Trace) -> int:
    """Bytes that the files of a trace take."""
    files = {map.filename for map in map(storage.file_of, _arrays(trace)) if map is not None}
    return sum(Path(str(file)).stat().st_size for file in files)


def _arrays(trace: Trace) -> list[np.ndarray]:
    layers = [layer for of_kind in trace.layers.values() for layer in of_kind]
    named = ("query", "key", "value", "allowed", "bias")
    arrays = [getattr(layer, name) for layer in layers for name in named] + [trace.last_hidden_state]
    return [array for array in arrays if array is not None]


def _size(entry: Any) -> int:
    """Bytes of a trace and its key, on disk and in memory, where a small one stays."""
    made, key = entry
    return on_disk(made) + n_bytes((made, key), without=OF_MODEL)


TRACES = Store(DISK_MB, size=_size)
"""Whole traces; the files of one that is dropped go with the last page that shows it."""


_PREFIX = f"attnviz-texts-{platform.node()}-"


@cache
def folder() -> Path:
    """Where the files are; it goes when the server ends, or, where that was killed, when the next one reads a long text."""
    remove_left()
    made = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def remove_left() -> None:
    """Removes the folders of servers of this machine that are gone; called before this one has its own."""
    for path in Path(tempfile.gettempdir()).glob(f"{glob.escape(_PREFIX)}*-*"):
        number = path.name.removeprefix(_PREFIX).partition("-")[0]
        if number.isdigit() and (int(number) == os.getpid() or not _is_running(int(number))):
            shutil.rmtree(path, ignore_errors=True)


def _is_running(process: int) -> bool:
    if os.name != "posix":  # elsewhere the signal 0 is not a question
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # another user's
        return True
    return True


def job(source: Source, read: Read) -> Job:
    """The job that reads a text; finished at once where its trace is there."""
    key = _whole(source)

    def calls() -> list[Call]:
        if TRACES.found(key) is not None:  # since the caller looked
            return []
        return [(with_model.read_long, (source.model, *read, str(folder()), DISK_MB), TELLS_PROGRESS)]

    return jobs.job(_READ, key, calls, is_long=True, received=partial(_keep, key))


def _keep(key: Source, made: Trace, seconds: float) -> None:
    """Keeps a trace that has been read, even if no page asks for it any more.

    Raises:
        TextTooLongError: it alone takes more than all traces may.
    """
    storage.delete_with(made)
    events.read(key.model, len(made.tokens.labels), seconds, key.text, key.second)
    TRACES.keep(key, made)
    if TRACES.found(key) is None:
        size = _size((made, key))
        raise TextTooLongError(
            f"The numbers of {len(made.tokens):,} tokens take {size / 1e6:,.0f} MB; this server keeps {TRACES.most_bytes / 1e6:,.0f} "
            "(ATTNVIZ_DISK_MB). Take a shorter text.",
            length=size,
            limit=int(TRACES.most_bytes),
            unit="bytes",
        )


def trace(source: Source, read: Read) -> Trace | None:
    """The trace of a text, or of as many of its layers as the source names; None while it is being read."""
    key = _whole(source)
    whole: Trace | None = TRACES.found(key)
    if whole is None:
        work = job(source, read)
        if not work.finished:
            return _of_layers(work.told(), read, source.layers)
        jobs.forget(_READ, key)
        whole = TRACES.found(key)
        if whole is None:  # dropped since, so that it is read again
            return None
    return _first_layers(whole, source.layers) if source.layers else whole


def _whole(source: Source) -> Source:
    return replace(source, layers=0)


def n_layers(source: Source, read: Read) -> int:
    """How many layers are there so far, of the kind that runs first; 0 for all of them."""
    return 0 if TRACES.found(_whole(source)) is not None else len(_first_kind(job(source, read).told()))


def _first_kind(told: tuple[tuple[LayerAttention, object], ...]) -> list[LayerAttention]:
    return [layer for layer, _ in told if layer.kind == told[0][0].kind]


def _of_layers(told: tuple[tuple[LayerAttention, object], ...], read: Read, n_layer: int) -> Trace | None:
    """The trace of the first layers, without last hidden states; None where they are not there."""
    layers = _first_kind(told)
    if not 0 < n_layer <= len(layers):
        return None
    tokens, target = read
    last = tokens if target is None else target
    return Trace(
        tokens=tokens,
        target_tokens=target,
        layers={layers[0].kind: tuple(layers[:n_layer])},
        last_hidden_state=np.zeros((len(last), 0), dtype=np.float32),
        provenance=told[0][1],  # type: ignore[arg-type]
    )


def _first_layers(whole: Trace, n_layer: int) -> Trace:
    kind: Kind = whole.kinds[0]
    return replace(
        whole,
        layers={kind: whole.layers[kind][:n_layer]},
        last_hidden_state=np.zeros((len(whole.last_tokens), 0), dtype=np.float32),
    )


def verdict_job(source: Source, weights: object) -> Job:
    """The job that compares every number of a long text with the model's own."""
    return jobs.job(_CHECKED, (source, weights), lambda: _Checks(source), is_long=True)


class _Checks(Sequence[Call]):
    """The call that compares a trace, which it holds only while it is sent."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def __len__(self) -> int:
        return 1

    def __getitem__(self, number: Any) -> Any:
        if (made := TRACES.found(_whole(self._source))) is None:
            raise VerificationError(
                "The numbers of this text were to be compared with the model's, and are no longer kept here. Open the text again."
            )
        return with_model.verify_long, (self._source.model, made), TELLS_PROGRESS


def verdict(source: Source, weights: object) -> tuple[VerificationReport, dict[str, str]] | None:
    """The verdict on a long text, with the weights that it was compared with; None while it is being compared."""
    key = (_CHECKED, source, weights)
    found: tuple[VerificationReport, dict[str, str]] | None = NUMBERS.found(key)
    if found is None:
        work = verdict_job(source, weights)
        if not work.finished:
            return None
        found = work.results[0]
        NUMBERS.keep(key, found)
        jobs.forget(_CHECKED, (source, weights))
    return found
