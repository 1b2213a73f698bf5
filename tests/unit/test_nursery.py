"""Workers as copies of one process, and as processes of their own where there are no copies."""

import os
import signal
import threading

import pytest

from tests import calls
from tests.waiting import begin_with_new_processes, done, wait_until
from ui.runtime import jobs, nursery, process
from ui.runtime.jobs import Job

needs_copies = pytest.mark.skipif(not nursery.is_there(), reason="workers are no copies here")


@pytest.fixture(autouse=True)
def new_processes():
    begin_with_new_processes()
    yield
    begin_with_new_processes()


def worker() -> int:
    """The process that a call is made in."""
    [process] = done(Job([(calls.process_id, (), {})])).results
    return process


def parent(process: int) -> int:
    with open(f"/proc/{process}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])


@needs_copies
def test_workers_are_copies_of_one_process_that_is_no_worker():
    first = worker()
    [running] = jobs._workers._processes
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: not running.is_alive)
    second = worker()
    assert first != second
    assert parent(second) == jobs._workers._nursery._process.pid != os.getpid()


@needs_copies
def test_where_the_nursery_has_ended_its_workers_go_on_and_the_next_has_another():
    first = worker()
    before = jobs._workers._nursery
    before._process.kill()
    before._process.wait()
    assert worker() == first
    [running] = jobs._workers._processes
    running.end()
    second = worker()
    assert second != first
    assert jobs._workers._nursery is not before


@pytest.mark.nightly
@needs_copies
def test_what_is_imported_is_there_for_every_copy(monkeypatch):
    monkeypatch.setattr(nursery, "IMPORTED", ("json.tool", "attnviz.maths.attention"))
    [loaded] = done(Job([(calls.loaded_modules, (), {})])).results
    assert {"attnviz", "torch"} <= set(loaded)


def test_elsewhere_each_is_started_anew(monkeypatch):
    monkeypatch.setattr(nursery, "is_there", lambda: False)
    assert parent(worker()) == os.getpid()
    assert jobs._workers._nursery is None


@pytest.mark.parametrize(
    ("device", "has_gpu", "is_there"),
    [
        ("", False, True),
        ("auto", True, False),
        ("", True, False),
        ("cpu", True, True),
        ("cuda:1", False, False),
    ],
)
def test_no_copy_is_to_use_a_gpu(device, has_gpu, is_there, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_DEVICE", device)
    monkeypatch.setattr(nursery, "glob", lambda _: ["/dev/nvidia0"] * has_gpu)
    monkeypatch.setattr(nursery.sys, "platform", "linux")
    assert nursery.is_there() == is_there


def test_the_end_does_not_wait_for_what_the_first_copy_waits_for(monkeypatch):
    """The import of all that workers share takes seconds, and an operator's stop would take as long."""

    class Importing:
        is_alive = True

        def __init__(self, *_):
            self.begun, self.ended = threading.Event(), threading.Event()
            made.append(self)

        def copy(self, *_):
            self.begun.set()
            self.ended.wait(60)
            raise ConnectionError

        def end(self):
            self.ended.set()

    def start():
        with pytest.raises(ConnectionError):
            processes._started(0, 1)

    made: list[Importing] = []
    monkeypatch.setattr(process, "Nursery", Importing)
    monkeypatch.setattr(nursery, "is_there", lambda: True)
    processes = process.Processes()
    first = threading.Thread(target=start)
    first.start()
    wait_until(lambda: made and made[0].begun.is_set())
    last = threading.Thread(target=processes.end)
    last.start()
    last.join(20)
    assert made[0].ended.is_set()
    first.join()
