"""What all tests of pages have in common."""

import pickle
import threading
from collections import OrderedDict
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

from attnviz.model import storage
from attnviz.model.catalogue import EMBEDDED, SMOLLM2, Offer, offer
from tests.app.screen import WORKER, open_page
from tests.waiting import begin_with_new_processes
from ui.limits import CACHE_MB
from ui.runtime import cache, head_cache, jobs, process, with_model, worker
from ui.runtime.jobs import Job
from ui.runtime.memory import n_bytes
from ui.runtime.remembered import Store
from ui.runtime.source import Source
from ui.runtime.workers import Workers
from ui.shell import downloads, errors, frame, gap, waiting
from ui.shell.export import take

FEW_CANDIDATES = 12


@pytest.fixture(autouse=True)
def _made_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a page waits for is computed in this process, where a test can plant a fault; tests/unit/test_jobs.py and the tests
    in Chromium have the real processes."""
    for module in (cache, head_cache):
        monkeypatch.setattr(module, "elsewhere", lambda function, *args, **named: function(*args, **named))
    monkeypatch.setattr(with_model, "own", lambda name, progress=None: cache.model(name))


@pytest.fixture(autouse=True)
def _few_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gap is filled with few candidates, which takes a tenth of a second; tests/unit/test_infilling.py has them all."""
    monkeypatch.setattr(gap, "MOST", FEW_CANDIDATES)
    monkeypatch.setattr(gap, "_FEWEST", FEW_CANDIDATES)


@pytest.fixture(autouse=True)
def _a_small_job_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """AppTest redraws no block by itself, so pages wait for small jobs here, the start of a process included."""
    monkeypatch.setattr(waiting, "LONGEST_WAIT", 30.0)


class _Ended(BaseException):
    """Ends a thread that answers calls, even in the middle of a call."""


class Here:
    """A thread of this process that stands for a worker process and uses the models loaded here: a real worker imports torch
    and loads its model, which takes longer than most tests. What is sent and answered is pickled all the same."""

    def __init__(self) -> None:
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
        self._answers.put(pickle.loads(storage.dumps((what, value))))

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
"""The workers of page tests, kept from one to the next; tests in between have their own."""


@pytest.fixture(autouse=True)
def _jobs_are_made_here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(process, "Process", Here)
    monkeypatch.setattr(jobs, "_workers", WORKERS.pop() if WORKERS else Workers())
    monkeypatch.setattr(jobs, "_long", Workers(1))
    monkeypatch.setattr(jobs, "_kept", OrderedDict())  # or a page would find done what another test asked for
    yield
    WORKERS.append(jobs._workers)


@pytest.fixture
def own_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that change what a text gives, such as which texts are long: nothing remembered here is another test's."""
    monkeypatch.setattr(cache.NUMBERS, "_entries", Store(CACHE_MB, n_bytes)._entries)


@pytest.fixture(autouse=True)
def _on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """AppTest of Streamlit 1.67 does not know its visitor's address."""
    monkeypatch.setattr(downloads, "_address", lambda: "127.0.0.1")


BUNDLED = {EMBEDDED, SMOLLM2}
FOLDERS: dict[str, Path | None] = {}
"""The folder of each model that a page was opened with, by name."""


def forget() -> None:
    """Drops everything that is kept by a model's name; of the bundled models, which never move, only what worker processes
    know."""
    begin_with_new_processes()
    jobs._kept.clear()
    for store in (cache.MODELS, cache.NUMBERS):
        with store._lock:
            for key in [key for key in store._entries if not is_of_bundled(key)]:
                del store._entries[key]


def is_of_bundled(key: Any) -> bool:
    """Whether an entry of a store belongs to bundled models and to no other."""
    values = list(flat(key))
    models = {value.model for value in values if isinstance(value, Source)}
    return models <= BUNDLED and not BUNDLED.isdisjoint(
        [*models, *(value for value in values if isinstance(value, str))]
    )


def flat(value: Any) -> Iterator[Any]:
    """The values in nested tuples, each tuple after its parts."""
    for part in value if isinstance(value, tuple) else ():
        yield from flat(part)
    yield value


@pytest.fixture(autouse=True)
def _nothing_is_met_of_another_model_of_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests offer different models by the same name, which no server does."""

    def offered(name: str) -> Offer:
        model_offer = offer(name)
        if FOLDERS.setdefault(name, model_offer.folder) != model_offer.folder:
            forget()
            for store in (cache.MODELS, cache.NUMBERS):
                store.clear()  # the name may be a bundled model's
            FOLDERS[name] = model_offer.folder
        return model_offer

    monkeypatch.setattr(frame, "offer", offered)


@pytest.fixture
def first_screen() -> AppTest:
    """The first screen of a visitor who follows no link."""
    return open_page()


@pytest.fixture
def ends_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """What no page catches is shown as app.py shows it; in other tests it fails them."""
    begin = LocalScriptRunner.__init__

    def begun(runner: LocalScriptRunner, *args: Any, **named: Any) -> None:
        begin(runner, *args, **named)
        runner._on_script_error = errors.uncaught

    monkeypatch.setattr(LocalScriptRunner, "__init__", begun)


@pytest.fixture
def offer_to_workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], None]]:
    """Offers the model in a folder to worker processes too: those that start next know it, and those after the test do not."""

    def give(folder: Path) -> None:
        monkeypatch.setenv("ATTNVIZ_MODELS", str(folder))
        forget()

    yield give
    forget()


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[str, Callable[[], bytes], str]]:
    """By key, what each download button of a page gives: its label, the function that makes the data, and the name of the file."""
    made: dict[str, tuple[str, Callable[[], bytes], str]] = {}
    real = take.st.download_button

    def noting(label: str, data: Callable[[], bytes], **rest: Any) -> Any:
        made[rest["key"]] = (label, data, rest["file_name"])
        return real(label, data, **rest)

    monkeypatch.setattr(take.st, "download_button", noting)
    return made


@pytest.fixture(autouse=True, scope="session")
def _packages_scanned_once() -> Iterator[None]:
    """Streamlit 1.67 scans all installed packages for components once per server; AppTest starts a server for each run."""
    manifests = manifest_scanner.scan_component_manifests()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", lambda: manifests)
        yield


@pytest.fixture(autouse=True, scope="session")
def _scripts_compiled_once() -> Iterator[None]:
    """Streamlit 1.67 compiles a script once per server; AppTest starts a server for each run."""
    compiled = ScriptCache()
    with pytest.MonkeyPatch.context() as patch:
        for module in (app_test, local_script_runner):
            patch.setattr(module, "ScriptCache", lambda: compiled)
        yield


@pytest.fixture(autouse=True, scope="session")
def _runs_waited_for_without_work() -> Iterator[None]:
    """AppTest of Streamlit 1.67 polls all events of a run a thousand times a second to see whether it has ended."""
    has_ended = LocalScriptRunner.script_stopped

    def waited(runner: LocalScriptRunner) -> bool:
        assert runner._script_thread is not None  # AppTest starts it before it asks
        runner._script_thread.join(timeout=1)
        return has_ended(runner)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalScriptRunner, "script_stopped", waited)
        yield
