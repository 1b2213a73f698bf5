"""What all tests of pages have in common."""

import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from queue import Queue, SimpleQueue
from typing import Any

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.testing.v1 import AppTest, app_test, local_script_runner
from streamlit.testing.v1.local_script_runner import LocalScriptRunner

from attnviz.model.catalogue import EMBEDDED, SMOLLM2, Offer, offer
from tests.app.screen import WORKER, open_page
from tests.waiting import begin_with_new_processes
from ui.runtime import cache, head_cache, jobs, process, with_model, worker
from ui.runtime.jobs import Job
from ui.runtime.source import Source
from ui.runtime.workers import Workers
from ui.shell import downloads, errors, frame, waiting
from ui.shell.export import take


@pytest.fixture(autouse=True)
def _made_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a page waits for is made in this process, where a test can plant a fault; tests/unit/test_jobs.py and the tests in
    Chromium have the processes."""
    for module in (cache, head_cache):
        monkeypatch.setattr(module, "elsewhere", lambda function, *args, **named: function(*args, **named))
    monkeypatch.setattr(with_model, "own", lambda name: cache.model(name))


@pytest.fixture(autouse=True)
def _a_small_job_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """AppTest redraws no block by itself, so that a page waits for a small job, a process's start included."""
    monkeypatch.setattr(waiting, "LONGEST_WAIT", 30.0)


class _Ended(BaseException):
    """Ends a thread that makes calls, in the middle of one too."""


class Here:
    """A thread of this process in place of a process of its own, with the models that are loaded here: a worker that starts imports
    torch and loads its model, which takes longer than most tests. What is sent and answered is pickled all the same."""

    def __init__(self, start: object) -> None:
        self.is_alive = True
        self._stop = threading.Event()
        self._calls: SimpleQueue[bytes | None] = SimpleQueue()
        self._answers: Queue[tuple[str, Any]] = Queue()
        threading.Thread(target=self._serve, daemon=True, name=WORKER).start()

    def _serve(self) -> None:
        with suppress(_Ended):
            worker.serve(self._next_call, self._answer, self._stop)

    def _next_call(self) -> bytes:
        if (call := self._calls.get()) is None:
            raise _Ended
        return call

    def _answer(self, what: str, value: Any) -> None:
        if not self.is_alive:
            raise _Ended
        self._answers.put(pickle.loads(pickle.dumps((what, value))))

    def send(self, message: bytes | None) -> None:
        if message is None:
            self._stop.set()
        else:
            self._stop.clear()
            self._calls.put(message)

    def receive(self, seconds: float) -> tuple[str, Any]:
        return self._answers.get(timeout=seconds)

    @property
    def id(self) -> int:
        return id(self)

    def end(self) -> int:
        self.is_alive = False
        self._stop.set()
        self._calls.put(None)
        return 0


WORKERS: list[Workers[Job]] = []
"""Those of the tests of pages while another test runs, which has processes of its own."""


@pytest.fixture(autouse=True)
def _jobs_are_made_here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(process, "Process", Here)
    monkeypatch.setattr(jobs, "_workers", WORKERS.pop() if WORKERS else Workers())
    yield
    WORKERS.append(jobs._workers)


@pytest.fixture(autouse=True)
def _on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """AppTest of Streamlit 1.67 has no address of its visitor."""
    monkeypatch.setattr(downloads, "_address", lambda: "127.0.0.1")


BUNDLED = {EMBEDDED, SMOLLM2}
FOLDERS: dict[str, Path | None] = {}
"""Of the models that pages were opened with, by name."""


def forget() -> None:
    """All that is kept by the name of a model; of the bundled ones, which stay where they are, nothing but what processes know."""
    begin_with_new_processes()
    jobs._kept.clear()
    for store in (cache.MODELS, cache.NUMBERS):
        with store._lock:
            for key in [key for key in store._entries if not is_of_bundled(key)]:
                del store._entries[key]


def is_of_bundled(key: Any) -> bool:
    """Whether an entry of a store is of a bundled model and of no other."""
    values = list(flat(key))
    models = {value.model for value in values if isinstance(value, Source)}
    return models <= BUNDLED and not BUNDLED.isdisjoint(
        [*models, *(value for value in values if isinstance(value, str))]
    )


def flat(value: Any) -> Iterator[Any]:
    """The values of nested tuples."""
    for one in value if isinstance(value, tuple) else ():
        yield from flat(one)
    yield value


@pytest.fixture(autouse=True)
def _nothing_is_met_of_another_model_of_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests offer models of one name from folders of their own, which no server does."""

    def offered(name: str) -> Offer:
        found = offer(name)
        if FOLDERS.setdefault(name, found.folder) != found.folder:
            forget()
            for store in (cache.MODELS, cache.NUMBERS):
                store.clear()  # it may be a bundled model's name
            FOLDERS[name] = found.folder
        return found

    monkeypatch.setattr(frame, "offer", offered)


@pytest.fixture
def first_screen() -> AppTest:
    """The first screen as a visitor sees it who follows no link."""
    return open_page()


@pytest.fixture
def ends_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """What no page catches is shown as app.py has it; in other tests it fails them."""
    begin = LocalScriptRunner.__init__

    def begun(runner: LocalScriptRunner, *args: Any, **named: Any) -> None:
        begin(runner, *args, **named)
        runner._on_script_error = errors.uncaught

    monkeypatch.setattr(LocalScriptRunner, "__init__", begun)


@pytest.fixture
def offer_to_workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], None]]:
    """Offers the model in a folder, to the processes that compute too: the next ones know of it, and those after the test do not."""

    def give(folder: Path) -> None:
        monkeypatch.setenv("ATTNVIZ_MODELS", str(folder))
        forget()

    yield give
    forget()


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[str, Callable[[], bytes], str]]:
    """What the two download buttons of a page give, called as a click would."""
    made: dict[str, tuple[str, Callable[[], bytes], str]] = {}
    real = take.st.download_button

    def noting(label: str, data: Callable[[], bytes], **rest: Any) -> Any:
        made[rest["key"]] = (label, data, rest["file_name"])
        return real(label, data, **rest)

    monkeypatch.setattr(take.st, "download_button", noting)
    return made


@pytest.fixture(autouse=True, scope="session")
def _packages_scanned_once() -> Iterator[None]:
    """Streamlit 1.67 looks through all installed packages for components once a server; AppTest is a server a run."""
    found = manifest_scanner.scan_component_manifests()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", lambda: found)
        yield


@pytest.fixture(autouse=True, scope="session")
def _scripts_compiled_once() -> Iterator[None]:
    """Streamlit 1.67 compiles a script once a server; AppTest is a server a run."""
    compiled = ScriptCache()
    with pytest.MonkeyPatch.context() as patch:
        for module in (app_test, local_script_runner):
            patch.setattr(module, "ScriptCache", lambda: compiled)
        yield


@pytest.fixture(autouse=True, scope="session")
def _runs_waited_for_without_work() -> Iterator[None]:
    """AppTest of Streamlit 1.67 goes through all events of a run a thousand times a second to see whether it has ended."""
    has_ended = LocalScriptRunner.script_stopped

    def waited(runner: LocalScriptRunner) -> bool:
        assert runner._script_thread is not None  # AppTest starts it before it asks
        runner._script_thread.join(timeout=1)
        return has_ended(runner)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalScriptRunner, "script_stopped", waited)
        yield
