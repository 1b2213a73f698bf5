import gc
import os
import signal
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests import calls
from tests.tiers import first_gates
from tests.waiting import LONG, begin_with_new_processes, done, wait_until
from ui.runtime import events, jobs, workers
from ui.runtime.jobs import TELLS_PROGRESS, Job

ROOT = Path(__file__).parents[2]


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


class TestProcesses:
    def test_run_no_page_and_load_no_heavy_library(self):
        """Under Streamlit the main module is a page, which multiprocessing would run once more."""

        def page():
            import streamlit as st

            from tests import calls
            from ui.runtime import jobs

            job = jobs.job("modules", "any", lambda: [(calls.loaded_modules, (), {})])
            job.watch()
            while job.running:
                job.watch()
            st.session_state.loaded = job.results[0]

        begin_with_new_processes()  # those that are there may have loaded more for others
        at = AppTest.from_function(page, default_timeout=LONG).run()
        assert not at.exception
        loaded = at.session_state.loaded
        assert not {"streamlit", "torch", "transformers", "app"} & set(loaded)

    def test_take_turns_between_jobs(self, tmp_path):
        """A short job does not wait for the end of a long one that came first."""
        gates, log = (tmp_path / "first", tmp_path / "rest"), tmp_path / "log"
        first, rest = ([(calls.until, (gate,), TELLS_PROGRESS)] for gate in gates)
        long = Job([*first * workers.WORKERS, *rest * 20])
        short = Job([(calls.note, (log, "short"), {})])
        long.watch()
        wait_until(
            lambda: long.share == pytest.approx(0.5 * workers.WORKERS / 22)
        )  # every process is at work
        short.watch()
        gates[0].touch()

        def short_is_done() -> bool:
            for job in (long, short):
                job.watch()
            return short.finished

        wait_until(short_is_done)  # while nothing more of the long one can end
        gates[1].touch()
        done(long)
        assert log.read_text().split() == ["short"]

    @pytest.mark.parametrize("how", first_gates(signal.SIGTERM, signal.SIGKILL))
    def test_end_with_the_server(self, how):
        """Even in the middle of a call."""
        server = """if True:
            import signal, sys, time
            from pathlib import Path
            from tests import calls
            from ui.runtime import events, jobs, process, workers

            process.IMPORTED = ()
            signal.signal(signal.SIGTERM, lambda *_: sys.exit())
            job = jobs.Job([(calls.process_id, (), {})])
            while not job.finished:
                job.watch()
            print(job.results[0], flush=True)
            job = jobs.Job([(calls.until, (Path("never"),), jobs.TELLS_PROGRESS)] * workers.WORKERS)
            while True:
                job.watch()
                if job.share:
                    print("under way", flush=True)
                time.sleep(0.01)
        """
        with subprocess.Popen(
            [sys.executable, "-c", server], cwd=ROOT, stdout=subprocess.PIPE, text=True
        ) as running:
            pid = int(running.stdout.readline())
            assert running.stdout.readline() == "under way\n"
            assert is_alive(pid)
            running.send_signal(how)
            running.stdout.close()
        wait_until(lambda: not is_alive(pid))


def test_what_is_idle_takes_no_thread_and_keeps_no_job(tmp_path):
    def is_served() -> bool:
        return any(thread.name == workers.THREADS for thread in threading.enumerate())

    end = tmp_path / "end"
    job = Job([(calls.until, (end,), TELLS_PROGRESS)])
    job.watch()
    assert is_served()
    assert jobs.state().n_running == 1
    end.touch()
    done(job)
    wait_until(lambda: not is_served())
    state = jobs.state()
    assert (state.n_running, state.n_under_way, state.n_waiting) == (0, 0, 0)
    let_go = weakref.ref(job)
    del job
    gc.collect()
    assert let_go() is None


def test_what_is_under_way_at_the_end_of_the_server_has_not_failed(monkeypatch, tmp_path):
    """And nothing begins after it, however long a page still asks: its own end is all that the log has to say."""
    told = []
    monkeypatch.setattr(events, "job_begun", lambda *_: told.append("begun"))
    monkeypatch.setattr(events, "job_ended", lambda _, how, *rest: told.append(how))
    monkeypatch.setattr(jobs, "_workers", ending := workers.Workers())
    job = Job([(calls.until, (tmp_path / "never",), TELLS_PROGRESS)] * 5 * workers.WORKERS)
    job.watch()
    wait_until(lambda: job.share == pytest.approx(0.5 / 5))  # every process is at work

    jobs.end()

    def served() -> int:
        job.watch()
        return ending._n_thread

    wait_until(lambda: served() == 0)
    assert (job.error, told, ending.ids) == (None, ["begun"], ())


def test_a_result_that_its_job_has_given_away_is_held_by_nothing_else(monkeypatch):
    """Whoever waits for it may drop it at once, however late the thread that received it goes on."""
    lock, going_on, received = workers.lock, threading.Event(), []

    class SlowToGoOn:
        def __enter__(self):
            lock.acquire()

        def __exit__(self, *_):
            lock.release()
            if received and threading.current_thread().name == workers.THREADS:
                going_on.wait(LONG)

    monkeypatch.setattr(workers, "lock", SlowToGoOn())
    given = [(np.ones, (3,), {})]
    work = Job(given, received=lambda value, _: received.append(weakref.ref(value)))
    try:
        assert work.wait() == [None]
        assert [result() is None for result in received] == [True]
    finally:
        going_on.set()
