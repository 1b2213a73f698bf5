"""Workers as copies of one process, and as processes of their own where there are no copies."""

import os
import signal
import sys
import threading
from multiprocessing.forkserver import _forkserver

import pytest

from tests import calls
from tests.waiting import begin_with_new_processes, done, wait_until
from ui.runtime import jobs, process
from ui.runtime.jobs import Job

needs_copies = pytest.mark.skipif(not process.are_forked(), reason="workers are no copies here")


@pytest.fixture(autouse=True)
def new_processes():
    begin_with_new_processes()
    yield
    begin_with_new_processes()


def made(call) -> object:
    """The result of a call in a worker."""
    [result] = done(Job([(call, (), {})])).results
    return result


def parent(pid: int) -> int:
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])


@needs_copies
def test_workers_are_copies_of_one_process_that_is_no_worker():
    first = made(calls.process_id)
    [running] = jobs._workers._processes
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: not running.is_alive)
    second = made(calls.process_id)
    assert first != second
    assert parent(second) == _forkserver._forkserver_pid != os.getpid()


@needs_copies
def test_where_the_process_that_is_copied_has_ended_there_is_another():
    first, before = made(calls.process_id), _forkserver._forkserver_pid
    [running] = jobs._workers._processes
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: not running.is_alive)
    second = made(calls.process_id)
    assert second != first
    assert parent(second) == _forkserver._forkserver_pid != before


@pytest.mark.nightly
@needs_copies
def test_what_is_imported_is_there_for_every_copy(monkeypatch):
    monkeypatch.setattr(process, "IMPORTED", ("json.tool", "attnviz.maths.attention"))
    assert {"attnviz", "torch"} <= set(made(calls.loaded_modules))


@needs_copies
def test_what_is_imported_is_found_from_any_folder(monkeypatch, tmp_path):
    """A module that cannot be imported is passed over, and every worker would import it anew."""
    monkeypatch.setattr(process, "IMPORTED", ("ui.runtime.source",))
    monkeypatch.chdir(tmp_path)
    assert "ui.runtime.source" in made(calls.loaded_modules)


@pytest.mark.parametrize("are_forked", [pytest.param(True, marks=needs_copies), False])
def test_each_has_one_thread_for_libraries_and_lower_priority(are_forked, monkeypatch):
    monkeypatch.setattr(process, "are_forked", lambda: are_forked)
    threads, priority = made(calls.settings)
    assert threads == "1"
    if sys.platform != "win32":
        assert priority == os.getpriority(os.PRIO_PROCESS, 0) + 5


def test_elsewhere_each_is_started_anew(monkeypatch):
    monkeypatch.setattr(process, "are_forked", lambda: False)
    assert parent(made(calls.process_id)) == os.getpid()


@pytest.mark.parametrize(
    ("device", "has_gpu", "are_forked"),
    [
        ("", False, True),
        ("auto", True, False),
        ("", True, False),
        ("cpu", True, True),
        ("cuda:1", False, False),
    ],
)
def test_no_copy_is_to_use_a_gpu(device, has_gpu, are_forked, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_DEVICE", device)
    monkeypatch.setattr(process, "glob", lambda _: ["/dev/nvidia0"] * has_gpu)
    monkeypatch.setattr(process.sys, "platform", "linux")
    assert process.are_forked() == are_forked


@needs_copies
def test_the_end_does_not_wait_for_what_the_first_copy_waits_for():
    """The import of all that workers share takes seconds, and an operator's stop would take as long."""
    made(calls.process_id)
    [running] = jobs._workers._processes
    running.end()
    imports = _forkserver._forkserver_pid
    os.kill(imports, signal.SIGSTOP)
    try:
        ending, job = jobs._workers, Job([(calls.process_id, (), {})])
        job.watch()
        wait_until(lambda: ending._n_thread == job.n_begun == 1)
        last = threading.Thread(target=ending.end)
        last.start()
        last.join(20)
        assert not last.is_alive()
    finally:
        os.kill(imports, signal.SIGCONT)
    wait_until(lambda: ending._n_thread == 0)
    ending.end()
