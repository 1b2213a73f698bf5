"""Work that takes seconds, done in worker processes so that no screen waits for another.

Everybody who looks at the same thing shares one job; it goes on while anybody watches, and stops when the last visitor
has cancelled it or gone. Whoever cancelled is asked before it goes on for them. `ui.runtime.workers` decides which
process makes which call when.
"""

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from attnviz.errors import AttnvizError
from ui.limits import JOBS, JOBS_MB
from ui.runtime import events
from ui.runtime.memory import n_bytes
from ui.runtime.turns import POLL_SECONDS, line
from ui.runtime.watchers import Watchers
from ui.runtime.workers import Workers, lock
from ui.streamlit_fixes.runs_in_turn import newer_message_check

Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
"""A function of attnviz with its arguments."""

Received = Callable[[Any, float], None]
"""Takes a result to where it is kept, with the seconds since its job began."""

TELLS_PROGRESS: Final[dict[str, Any]] = {"progress": None}
"""Added to the named arguments of a call that reports progress. The worker process replaces None by a function that takes
the share done, 0 to 1, and perhaps a part of the result, and ends the call when its last visitor has left."""

IDLE_SECONDS = 180.0
"""How long the process for long texts stays with nothing to do."""
_workers: Workers["Job"] = Workers()
_long: Workers["Job"] = Workers(1, IDLE_SECONDS)
"""One process beside the others, so that a long text takes no other job's place, and is computed after those before it."""
_kept: OrderedDict[tuple[str, Hashable], "Job"] = OrderedDict()  # most recently asked for at the end
_changed = threading.Condition(lock)  # a call has come back


class Job:
    """Calls, their results and their progress. Several jobs take turns."""

    def __init__(
        self,
        calls: Sequence[Call],
        name: str = "",
        *,
        is_long: bool = False,
        received: Received | None = None,
    ) -> None:
        self.name = name
        """What the log calls it."""
        self._is_long = is_long
        self._received = received
        self.results: list[Any] = [None] * len(calls)
        """The results so far; None for those still missing."""
        self._parts: dict[int, list[Any]] = {}  # call under way -> parts of its result so far
        self.error: Exception | None = None
        """The error that a call raised; the job then stops until `go_on`."""
        self.n_bytes = 0
        """Bytes of the results."""
        self._calls = calls
        self._waiting = deque(range(len(calls)))
        self._under_way: dict[int, float] = {}  # call -> share of it that is done
        self._watchers = Watchers()
        self._progress: events.Progress | None = None  # while it is under way

    @property
    def n_done(self) -> int:
        """Calls that have come back."""
        with lock:
            return len(self.results) - len(self._waiting) - len(self._under_way)

    @property
    def share(self) -> float:
        """Share of the work that is done, 0 to 1; calls under way count with the share that they reported."""
        with lock:
            return self._share()

    def told(self, number: int = 0) -> tuple[Any, ...]:
        """The parts of its result that a call has reported while under way; none before and after."""
        with lock:
            return tuple(self._parts.get(number, ()))

    @property
    def finished(self) -> bool:
        """Whether every call has come back."""
        return self.n_done == len(self.results)

    @property
    def running(self) -> bool:
        """Whether more results will come without a request."""
        with lock:
            return self._is_running

    def watch(self) -> None:
        """Notes that this session watches, which starts the work and keeps it going."""
        with lock:
            self._watchers.subscribe()
        (_long if self._is_long else _workers).work_on(self)

    @property
    def n_ahead(self) -> int:
        """Jobs that are under way or come first while no process has begun this one."""
        with lock:
            jobs = (_long if self._is_long else _workers).jobs
            if self._under_way or self not in jobs:
                return 0
            begun = sum(other.n_begun > 0 for other in jobs)
            return begun + sum(not other.n_begun and other.n_ready > 0 for other in jobs[: jobs.index(self)])

    def prefer(self, number: int) -> None:
        """Moves a call ahead of the others that wait."""
        with lock:
            if number in self._waiting:
                self._waiting.remove(number)
                self._waiting.appendleft(number)

    def leave(self) -> None:
        """Cancels for this session."""
        with lock:
            self._watchers.leave()

    @property
    def was_left(self) -> bool:
        """Whether this session has cancelled the job and not resumed it."""
        with lock:
            return self._watchers.lost_me

    @property
    def is_awaited(self) -> bool:
        """Whether more results will come for this session."""
        return not (self.finished or self.error or self.was_left)

    def go_on(self) -> None:
        """Clears the error and this session's cancellation; what is missing is computed when a visitor watches."""
        with lock:
            self.error = None
            self._watchers.come_back()

    def wait(self) -> list[Any]:
        """Waits as `settle` does; returns the results, or raises whatever a call raised."""
        if (error := self.settle()) is not None:
            raise error
        return self.results

    def settle(self, seconds: float = float("inf")) -> Exception | None:
        """Waits until a call has failed or all results are there; returns the error or None. Other pages run meanwhile.

        Args:
            seconds: how long to wait at most; after that this session still watches, and the work goes on.
        """
        yield_point = newer_message_check()
        end, goes_on = time.monotonic() + seconds, False
        try:
            with line.stepped_aside(yield_point):
                while True:
                    self.watch()
                    with _changed:
                        if self.error is None and (self._waiting or self._under_way):
                            _changed.wait(POLL_SECONDS)
                        if self.error is not None or not (self._waiting or self._under_way):
                            return self.error
                    if goes_on := time.monotonic() > end:
                        return None
                    yield_point()
        finally:  # if this visitor has gone, or asked for something newer, no other may be waiting
            if not goes_on:
                with lock:
                    self._watchers.unsubscribe()

    @property
    def _is_running(self) -> bool:
        return bool(self._watchers) and self.error is None and bool(self._waiting or self._under_way)

    def _share(self) -> float:
        left = len(self._waiting) + len(self._under_way) - sum(self._under_way.values())
        return 1.0 - left / max(1, len(self.results))

    # The rest implements `ui.runtime.workers.Work`, called while the lock is held.

    @property
    def n_ready(self) -> int:
        """Calls that may begin."""
        return len(self._waiting) if self._watchers and self.error is None else 0

    @property
    def n_begun(self) -> int:
        """Calls that processes are working on."""
        return len(self._under_way)

    @property
    def is_watched(self) -> bool:
        """Whether anybody watches."""
        return bool(self._watchers)

    def begin(self) -> int:
        """Begins the next call; returns its number."""
        number = self._waiting.popleft()
        self._under_way[number] = 0.0
        self._parts[number] = []
        self.note()
        return number

    def call(self, number: int) -> Call:
        """A call; asked for once and without the lock, since creating it may take a while."""
        return self._calls[number]

    def set_share(self, number: int, share: float, part: Any) -> None:
        """Records a call's progress, 0 to 1, and a part of its result; None for none."""
        self._under_way[number] = min(1.0, max(0.0, share))
        if part is not None:
            self._parts[number].append(part)
        self.note()

    def take_back(self, number: int, what: str, value: Any) -> None:
        """Records how a call ended: with a `result`, an `error`, or nothing where it was `stopped`."""
        if what == "result" and self._received is not None:
            try:
                self._received(value, 0.0 if self._progress is None else self._progress.seconds)
                value = None
            except AttnvizError as error:
                what, value = "error", error.with_traceback(None)  # which holds the result
        del self._under_way[number], self._parts[number]
        if what == "result":
            self.results[number] = value
            self.n_bytes += n_bytes(value)
            if not self._waiting and not self._under_way:
                self._calls = ()  # they may hold much memory
            _make_room(self)
        else:
            self._waiting.appendleft(number)
        if what == "error":
            self.error = value
        self.note()
        _changed.notify_all()

    def note(self) -> None:
        """Logs the job's start, progress and end."""
        if self._progress is None:
            if self._under_way:
                self._progress = events.Progress("job_progress", job=self.name)
                events.job_begun(self.name, len(self._waiting) + len(self._under_way))
        elif self._under_way or self.n_ready:
            self._progress.is_at(self._share())
        else:
            left: events.Ended = "cancelled" if self._waiting else "done"
            events.job_ended(self.name, "failed" if self.error else left, self._progress.seconds, self.error)
            self._progress = None


def job(
    name: str,
    key: Hashable,
    calls: Callable[[], Sequence[Call]],
    *,
    is_long: bool = False,
    received: Received | None = None,
) -> Job:
    """The job with this name and key, created from the calls if there is none yet.

    Args:
        calls: returns the calls. A lazy sequence uses less memory: each item is asked for once, by the thread that
            sends it, where no Streamlit function can be called.
        is_long: whether it is about a long text, and so runs in the process for those.
        received: is given each result as soon as it is there, instead of the job, which keeps None for it; called while the lock
            of all jobs is held. An AttnvizError that it raises is the job's.
    """
    with lock:
        if kept := _kept.get((name, key)):
            _kept.move_to_end((name, key))
            return kept
    made = Job(calls(), name, is_long=is_long, received=received)
    with lock:
        kept = _kept.setdefault((name, key), made)
        _make_room(kept)
    return kept


def forget(name: str, key: Hashable) -> None:
    """Drops a job whose results are kept elsewhere."""
    with lock:
        _kept.pop((name, key), None)


def _make_room(newest: Job) -> None:
    """Drops jobs without watchers, least recently asked for first, until the others fit."""
    unwatched = [key for key, job in _kept.items() if job is not newest and not job.is_watched]
    for key in unwatched:
        if len(_kept) <= JOBS and sum(job.n_bytes for job in _kept.values()) <= JOBS_MB * 1e6:
            break
        del _kept[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The jobs and processes at one moment."""

    n_kept: int
    kept_bytes: int
    n_running: int
    """Jobs whose results will come without a request."""
    n_under_way: int
    """Jobs that a process is working on, including those about to be stopped."""
    n_waiting: int
    """Jobs with watchers that no process has begun."""
    processes: tuple[int, ...]
    """Their ids."""


def state() -> State:
    """The jobs and processes now, for the metrics."""
    with lock:
        jobs = (*_workers.jobs, *_long.jobs)
        return State(
            n_kept=len(_kept),
            kept_bytes=sum(job.n_bytes for job in _kept.values()),
            n_running=sum(job._is_running for job in jobs),
            n_under_way=sum(job.n_begun > 0 for job in jobs),
            n_waiting=sum(job.n_ready > 0 and not job.n_begun for job in jobs),
            processes=(*_workers.ids, *_long.ids),
        )


def elsewhere(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """The result of a call made by a worker process.

    Raises whatever the call raises, and `ui.runtime.process.WorkerLostError` if the process ends first.
    """
    return Job([(function, args, named)], function.__name__).wait()[0]


def end() -> None:
    """Ends the processes; unfinished work is lost."""
    _workers.end()
    _long.end()


def unsubscribe_unseen(since: float) -> None:
    """Unsubscribes this session from jobs that its page, redrawn since ``since``, did not ask for."""
    with lock:
        for job in (*_workers.jobs, *_long.jobs, *_kept.values()):
            job._watchers.unsubscribe_unseen(since)
