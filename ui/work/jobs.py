"""Work that takes seconds, done in processes of its own so that no screen waits for another.

One concept: a Job, a list of calls whose results are shown as they come. Everybody who looks at the same thing
shares one job; it goes on while anybody looks, and stops when the last one has left or gone. Who has left, by
cancelling it, is asked before it goes on for them.

The processes are `ui.work.worker`'s, started when first needed. They are not multiprocessing's: those run the main module
once more, which under Streamlit is a page.
"""

import atexit
import pickle
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from queue import Empty
from typing import Any, Final

from streamlit.runtime.scriptrunner_utils.script_run_context import get_run_yield_check

from ui.limits import JOBS, JOBS_MB, WORKERS
from ui.work import events
from ui.work.memory import n_bytes
from ui.work.process import ENDED, Process, Processes, as_raised, lost
from ui.work.turns import LOOK_SECONDS, line
from ui.work.watchers import Watchers

Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
"""A function of attnviz with its arguments."""

TELLS_PROGRESS: Final[dict[str, Any]] = {"progress": None}
"""Joins the named arguments of a call that says how far it is. Its process puts a function in the place of None that notes
the share that is done, 0 to 1, and that ends the call when its last visitor has left."""

LAST_SHARE = 5.0
"""Seconds for a call that nobody waits for to tell its next share, with which it ends; its process is ended after that, and
with it the model that it has loaded."""
LISTEN_SECONDS = 0.25
"""How often it is asked whether anybody still waits for a call that says nothing."""
_kept: OrderedDict[tuple[str, Hashable], "Job"] = OrderedDict()  # those asked for last at the end
_lock = threading.Lock()  # of all jobs and of who works on them
_changed = threading.Condition(_lock)  # a call has come back


class Job:
    """Calls, their results, and how far they are. Several jobs take turns."""

    def __init__(self, calls: Sequence[Call], name: str = "") -> None:
        self.name = name
        """What the log calls it."""
        self.results: list[Any] = [None] * len(calls)
        """What has come back so far; None for what has not."""
        self.error: Exception | None = None
        """What a call raised; nothing goes on until `go_on`."""
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
        with _lock:
            return len(self.results) - len(self._waiting) - len(self._under_way)

    @property
    def share(self) -> float:
        """Share of the work that is done, 0 to 1; of calls under way, what they have told."""
        with _lock:
            return self._share()

    @property
    def finished(self) -> bool:
        """Whether every call has come back."""
        return self.n_done == len(self.results)

    @property
    def running(self) -> bool:
        """Whether there is more to come without asking for it."""
        with _lock:
            return bool(self._watchers) and self.error is None and bool(self._waiting or self._under_way)

    def watch(self) -> None:
        """Says that this session looks, which starts the work and keeps it going."""
        with _lock:
            self._watchers.look()
        _workers.work_on(self)

    def prefer(self, number: int) -> None:
        """Puts a call before the others that wait."""
        with _lock:
            if number in self._waiting:
                self._waiting.remove(number)
                self._waiting.appendleft(number)

    def leave(self) -> None:
        """Says that this session no longer looks, and does not want to."""
        with _lock:
            self._watchers.leave()

    @property
    def was_left(self) -> bool:
        """Whether this session has left it, and not gone on since."""
        with _lock:
            return self._watchers.lost_me

    @property
    def is_awaited(self) -> bool:
        """Whether there is more to come for this session."""
        return not (self.finished or self.error or self.was_left)

    def go_on(self) -> None:
        """Forgets the error and that this session has left, so that what is missing is made when a visitor watches."""
        with _lock:
            self.error = None
            self._watchers.come_back()

    def wait(self) -> list[Any]:
        """The results, once all are there; other visitors' pages have the turn until then.

        Raises whatever a call raised.
        """
        look = get_run_yield_check() or (lambda: None)
        try:
            with line.stepped_aside(look):
                while True:
                    self.watch()
                    with _changed:
                        if self.error is None and (self._waiting or self._under_way):
                            _changed.wait(LOOK_SECONDS)
                        if self.error is not None:
                            raise self.error
                        if not self._waiting and not self._under_way:
                            return self.results
                    look()
        finally:  # where this visitor has gone, or asked for something newer, nobody may be left
            with _lock:
                self._watchers.look_away()

    def _share(self) -> float:
        left = len(self._waiting) + len(self._under_way) - sum(self._under_way.values())
        return 1.0 - left / max(1, len(self.results))

    def _note(self) -> None:
        """Tells the log of its beginning, of how far it is and of its end."""
        if self._progress is None:
            if self._under_way:
                self._progress = events.Progress("job_progress", job=self.name)
                events.job_begun(self.name, len(self._waiting) + len(self._under_way))
        elif self._under_way or self._can_go_on():
            self._progress.is_at(self._share())
        else:
            left: events.Outcome = "cancelled" if self._waiting else "done"
            events.job_ended(self.name, "failed" if self.error else left, self._progress.seconds, self.error)
            self._progress = None

    def _can_go_on(self) -> bool:
        return bool(self._waiting and self._watchers) and self.error is None


def job(name: str, key: Hashable, calls: Callable[[], Sequence[Call]]) -> Job:
    """The job of this name and key, made from the calls if there is none yet.

    Args:
        calls: makes the calls. A sequence whose items are made when they are asked for holds less: each is asked
            for once, by the thread that sends it, where nothing of Streamlit can be called.
    """
    with _lock:
        if found := _kept.get((name, key)):
            _kept.move_to_end((name, key))
            return found
    made = Job(calls(), name)
    with _lock:
        found = _kept.setdefault((name, key), made)
        _make_room(found)
    return found


def _make_room(newest: Job) -> None:
    """Lets go of jobs that nobody looks at, those asked for longest ago first, until there is room for the others."""
    unwatched = [one for one, job in _kept.items() if job is not newest and not job._watchers]
    for one in unwatched:
        if len(_kept) <= JOBS and sum(job.n_bytes for job in _kept.values()) <= JOBS_MB * 1e6:
            break
        del _kept[one]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What there is at a moment."""

    n_kept: int
    kept_bytes: int
    n_under_way: int
    n_waiting: int
    """Jobs that somebody waits for and no process has begun."""
    processes: tuple[int, ...]
    """Their ids."""


def state() -> State:
    """What there is now, for the metrics."""
    with _lock:
        return State(
            n_kept=len(_kept),
            kept_bytes=sum(job.n_bytes for job in _kept.values()),
            n_under_way=sum(bool(job._under_way) for job in _workers._jobs),
            n_waiting=sum(job._can_go_on() and not job._under_way for job in _workers._jobs),
            processes=_workers.ids,
        )


def elsewhere(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """The result of a call that another process makes.

    Raises whatever the call raises, and `ui.work.process.WorkerLostError` where the process ended before.
    """
    return Job([(function, args, named)], function.__name__).wait()[0]


class _Workers(Processes):
    """Processes, and a thread for each of them while there is something to do."""

    def __init__(self) -> None:
        super().__init__()
        self._jobs: deque[Job] = deque()
        self._n_thread = 0
        atexit.register(self.end)

    def work_on(self, job: Job) -> None:
        """Sees to it that a process works on a job."""
        with _lock:
            if job._can_go_on() and job not in self._jobs:
                self._jobs.append(job)
            n_call = sum(len(one._waiting) for one in self._jobs if one._can_go_on())
            for _ in range(min(n_call, WORKERS - self._n_thread)):
                self._n_thread += 1
                threading.Thread(target=self._serve, daemon=True).start()

    def _next(self) -> tuple[Job, int] | None:
        """The next call of the job that has waited longest for its turn."""
        for job in self._jobs:
            job._note()
        for job in list(self._jobs):
            if job._can_go_on():
                self._jobs.remove(job)
                self._jobs.append(job)
                number = job._waiting.popleft()
                job._under_way[number] = 0.0
                job._note()
                return job, number
        self._jobs = deque(job for job in self._jobs if job._under_way)
        return None

    def _serve(self) -> None:
        process = None
        while True:
            with _lock:
                task = self._next()
                if task is None:
                    self._n_thread -= 1
                    if process is not None:
                        self.give_back(process)
                    return
                process = process or self.take()
            process = self._make(*task, process)

    def _make(self, job: Job, number: int, process: Process | None) -> Process | None:
        """Makes a call; the process that can be asked next, None where it has ended."""
        value: Any
        try:
            call = pickle.dumps(job._calls[number])
        except Exception as error:  # noqa: BLE001 - it goes to the page that asked
            what, value = "error", error
        else:
            try:
                process = process or self.start()
                process.send(call)
                what, value = self._listen(job, number, process)
            except Exception as error:  # noqa: BLE001 - the process cannot be started or spoken to
                what, value = ENDED, error
            if what == ENDED:
                what, value = "error", lost(process, value)
            if process is not None and not process.is_alive:
                self.forget(process)
                process = None
        if what == "error" and not isinstance(value, Exception):
            value = as_raised(*value)
        with _lock:
            del job._under_way[number]
            if what == "result":
                job.results[number] = value
                job.n_bytes += n_bytes(value)
                if not job._waiting and not job._under_way:
                    job._calls = ()  # they may hold much
                _make_room(job)
            else:
                job._waiting.appendleft(number)
            if what == "error":
                job.error = value
            job._note()
            _changed.notify_all()
        return process

    def _listen(self, job: Job, number: int, process: Process) -> tuple[str, Any]:
        """Notes how far a call is, until it ends; ends it where nobody waits for it."""
        unwatched_since = None
        while True:
            try:
                what, value = process.receive(LISTEN_SECONDS)
            except Empty:
                what, value = "", None
            if what not in ("share", ""):
                return what, value
            now = time.monotonic()
            with _lock:
                if what == "share":
                    job._under_way[number] = min(1.0, max(0.0, value))
                    job._note()
                is_watched = bool(job._watchers)
            if is_watched:
                unwatched_since = None
            elif unwatched_since is None:
                unwatched_since = now
                process.send(None)
            elif now - unwatched_since > LAST_SHARE:
                process.end()
                return "stopped", None


_workers = _Workers()


def end() -> None:
    """Ends the processes; what they were at is lost."""
    _workers.end()


def looked_away(since: float) -> None:
    """Says that this session's page was drawn anew since then: at what it did not ask for it no longer looks."""
    with _lock:
        for job in (*_workers._jobs, *_kept.values()):
            job._watchers.looked_away(since)
