import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from attnviz.errors import ProjectionError, TextTooLongError
from tests import calls
from ui.work import jobs, watchers, workers
from ui.work.jobs import TELLS_PROGRESS, Call, Job
from ui.work.process import Process, WorkerLostError
from ui.work.turns import Line

ROOT = Path(__file__).parents[2]
LONG = 120.0  # seconds; nothing here takes that long


def wait(until: Callable[[], object]) -> None:
    end = time.monotonic() + LONG
    while not until():
        assert time.monotonic() < end
        time.sleep(0.005)


def done(job: Job) -> Job:
    """The job when nothing more comes of it by itself."""

    def watched() -> bool:
        job.watch()
        return not job.running

    wait(watched)
    return job


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.fixture
def sessions(monkeypatch):
    """Says who looks."""

    def look_as(name: str) -> None:
        monkeypatch.setattr(watchers, "session", lambda: name)

    return look_as


@pytest.fixture
def endless(tmp_path):
    """As many calls as there are processes, each of which goes on until the file is there."""
    end = tmp_path / "end"
    yield Job([(calls.until, (end,), TELLS_PROGRESS)] * workers.WORKERS), end
    end.touch()


class TestResults:
    def test_come_in_the_order_of_the_calls(self):
        job = done(Job([(calls.double, (number,), {}) for number in range(37)]))
        assert job.results == [2 * number for number in range(37)]
        assert job.finished
        assert job.share == 1.0
        assert job.n_done == 37
        assert job.error is None

    def test_of_no_calls_are_there_at_once(self):
        job = done(Job([]))
        assert job.finished
        assert job.share == 1.0

    def test_come_from_processes_that_stay(self):
        first, second = (set(done(Job([(calls.process_id, (), {})] * 8)).results) for _ in range(2))
        assert os.getpid() not in first | second
        assert len(first | second) <= workers.WORKERS

    def test_are_not_mixed_with_what_a_library_prints(self):
        assert done(Job([(calls.chatter, (), {})] * 3)).results == ["done"] * 3

    def test_a_call_is_made_when_it_is_sent_and_not_kept(self):
        class Calls(Sequence[Call]):
            def __init__(self) -> None:
                self.asked: list[int] = []

            def __len__(self) -> int:
                return 3

            def __getitem__(self, number):
                self.asked.append(number)
                return calls.double, (number,), {}

        made = Calls()
        job = Job(made)
        assert made.asked == []
        done(job)
        assert sorted(made.asked) == [0, 1, 2]
        assert made not in vars(job).values()


class TestProcesses:
    def test_run_no_page_and_load_no_heavy_library(self):
        """Under Streamlit the main module is a page, which multiprocessing would run once more."""

        def page():
            import streamlit as st

            from tests import calls
            from ui.work import jobs

            job = jobs.job("modules", "any", lambda: [(calls.loaded_modules, (), {})])
            job.watch()
            while job.running:
                job.watch()
            st.session_state.loaded = job.results[0]

        jobs.end()  # processes that are there may have loaded more for others
        at = AppTest.from_function(page, default_timeout=LONG).run()
        assert not at.exception
        loaded = at.session_state.loaded
        assert "runs ui.work.worker" in loaded
        assert not {"streamlit", "torch", "transformers", "app"} & set(loaded)

    def test_take_turns_between_jobs(self, tmp_path):
        """A short job does not wait for the end of a long one that came first."""
        gates, log = (tmp_path / "first", tmp_path / "rest"), tmp_path / "log"
        first, rest = ([(calls.until, (gate,), TELLS_PROGRESS)] for gate in gates)
        long = Job([*first * workers.WORKERS, *rest * 20])
        short = Job([(calls.note, (log, "short"), {})])
        long.watch()
        wait(lambda: long.share == pytest.approx(0.5 * workers.WORKERS / 22))  # every process is at work
        short.watch()
        gates[0].touch()

        def short_is_done() -> bool:
            for job in (long, short):
                job.watch()
            return short.finished

        wait(short_is_done)  # while nothing more of the long one can end
        gates[1].touch()
        done(long)
        assert log.read_text().split() == ["short"]

    @pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
    def test_end_with_the_server(self, how):
        """Even in the middle of a call."""
        server = """if True:
            import signal, sys, time
            from pathlib import Path
            from tests import calls
            from ui.work import jobs, workers

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
            process = int(running.stdout.readline())
            assert running.stdout.readline() == "under way\n"
            assert is_alive(process)
            running.send_signal(how)
            running.stdout.close()
        wait(lambda: not is_alive(process))


class TestLooking:
    def test_starts_the_work(self):
        job = Job([(calls.double, (3,), {})])
        assert not job.running
        assert job.share == 0.0
        assert done(job).finished

    def test_says_how_far_it_is(self, endless):
        job, end = endless
        job.watch()
        wait(lambda: job.share == 0.5)  # of every call under way
        assert job.running
        assert job.n_done == 0
        end.touch()
        assert done(job).results == ["done"] * workers.WORKERS

    def test_no_longer_ends_the_calls_under_way(self, endless):
        job, end = endless
        job.watch()
        wait(lambda: job.share == 0.5)
        job.leave()
        assert not job.running
        other = done(Job([(calls.double, (3,), {})]))  # there is a process for it
        assert other.results == [6]
        wait(lambda: job.share == 0.0)
        job.watch()  # from where it was
        end.touch()
        assert done(job).finished

    def test_of_somebody_who_is_gone_counts_for_a_while_only(self, endless, monkeypatch):
        job, _ = endless
        job.watch()
        wait(lambda: job.share == 0.5)
        monkeypatch.setattr(watchers, "PATIENCE", 0.0)
        wait(lambda: job.share == 0.0)
        assert not job.running

    def test_no_longer_ends_the_process_of_a_call_that_tells_nothing(self, tmp_path, monkeypatch):
        monkeypatch.setattr(workers, "LAST_SHARE", 0.0)
        end = tmp_path / "end"
        job = Job([(calls.until_untold, (end,), {})])
        job.watch()
        wait(end.with_suffix(".begun").exists)
        alive = set(jobs.state().processes)
        job.leave()
        wait(lambda: not jobs.state().n_under_way)
        assert job.error is None
        assert len(alive - set(jobs.state().processes)) == 1
        end.touch()
        job.go_on()
        assert done(job).results == ["done"]

    def test_of_one_of_two_lets_a_call_that_tells_nothing_go_on(self, tmp_path, monkeypatch, sessions):
        monkeypatch.setattr(workers, "LAST_SHARE", 0.0)
        listened = []
        receive = Process.receive
        monkeypatch.setattr(
            Process, "receive", lambda self, seconds: (listened.append(seconds), receive(self, seconds))[1]
        )
        end = tmp_path / "end"
        job = Job([(calls.until_untold, (end,), {})])
        for name in ("one", "other"):
            sessions(name)
            job.watch()
        wait(end.with_suffix(".begun").exists)
        sessions("one")
        job.leave()
        sessions("other")
        listened.clear()

        def is_listened_to() -> bool:
            job.watch()
            return len(listened) > 3

        wait(is_listened_to)
        assert jobs.state().n_under_way
        end.touch()
        assert done(job).results == ["done"]
        assert len(end.with_suffix(".begun").read_text()) == 1  # it was not begun anew

    def test_ends_with_waiting(self, endless, monkeypatch):
        """Of a visitor who clicked something else, or closed the page."""
        job, _ = endless

        def gone() -> None:
            if job.share:
                raise InterruptedError

        monkeypatch.setattr(jobs, "get_run_yield_check", lambda: gone)
        with pytest.raises(InterruptedError):
            job.wait()
        assert not job.running
        wait(lambda: job.share == 0.0)

    def test_of_somebody_whose_page_is_open_counts_for_longer(self, endless, sessions, monkeypatch):
        """They may wait in line, or look at another window."""
        job, _ = endless
        monkeypatch.setattr(watchers, "PATIENCE", 0.0)
        monkeypatch.setattr(watchers, "_is_open", lambda session: session == "open")
        sessions("open")
        job.watch()
        wait(lambda: job.share == 0.5)
        assert job.running
        monkeypatch.setattr(watchers, "LONG_PATIENCE", 0.0)
        wait(lambda: job.share == 0.0)

    def test_ends_when_a_page_was_drawn_that_does_not(self, endless, sessions, monkeypatch):
        job, _ = endless
        monkeypatch.setattr(watchers, "_is_open", lambda session: True)
        sessions("one")
        before = time.monotonic()
        job.watch()
        jobs.looked_away(before)  # drawn anew, with the job
        wait(lambda: job.share == 0.5)
        sessions("other")
        jobs.looked_away(time.monotonic())
        assert job.running
        sessions("one")
        jobs.looked_away(time.monotonic())
        assert not job.running
        wait(lambda: job.share == 0.0)

    def test_of_others_keeps_it_going(self, endless, sessions):
        job, end = endless
        for name in ("one", "other"):
            sessions(name)
            job.watch()
        job.leave()
        assert job.running
        wait(lambda: job.share == 0.5)
        assert job.running
        sessions("one")
        job.leave()
        assert not job.running
        end.touch()

    def test_is_awaited_by_those_who_have_not_left(self, endless, sessions):
        job, end = endless
        sessions("other")
        job.watch()
        sessions("one")
        job.leave()
        assert job.was_left
        assert not job.is_awaited
        assert job.running  # for the other
        sessions("other")
        assert job.is_awaited
        assert not job.was_left
        sessions("one")
        job.go_on()
        assert job.is_awaited
        end.touch()
        assert not done(job).is_awaited

    def test_at_the_same_thing_is_looking_at_the_same_job(self):
        def made():
            return [(calls.double, (3,), {})]

        one = jobs.job("same", ("a", 1), made)
        assert jobs.job("same", ("a", 1), made) is one
        assert jobs.job("same", ("a", 2), made) is not one
        assert jobs.job("other", ("a", 1), made) is not one


class TestErrors:
    def test_of_a_call_stop_the_job_and_are_kept_as_they_are(self):
        job = done(Job([(calls.refuse, (5,), {})]))
        assert isinstance(job.error, ProjectionError)
        assert str(job.error) == "Method 5 was asked for."
        assert "in refuse" in job.error.__notes__[0]
        assert not job.finished
        job.watch()
        assert not job.running

    def test_keep_what_they_carry(self):
        error = done(Job([(calls.refuse_long, (), {})])).error
        assert isinstance(error, TextTooLongError)
        assert (error.length, error.limit, error.unit, str(error)) == (7, 5, "tokens", "Too long.")

    def test_can_be_tried_again(self, tmp_path):
        job = done(Job([(calls.fail_unless, (tmp_path / "there",), {}), (calls.double, (3,), {})]))
        assert isinstance(job.error, ValueError)
        job.go_on()
        assert done(job).results == ["done", 6]
        assert job.error is None

    def test_of_a_process_that_ends_are_said_and_the_next_job_works(self):
        job = done(Job([(calls.die, (), {})] * 3))
        assert isinstance(job.error, WorkerLostError)
        assert "has ended (exit code 7)" in str(job.error)
        assert done(Job([(calls.double, (number,), {}) for number in range(5)])).finished

    def test_of_an_idle_process_that_has_ended_are_none(self):
        done(Job([(calls.double, (number,), {}) for number in range(5)]))
        for process in jobs.state().processes:
            os.kill(process, signal.SIGKILL)
        wait(lambda: not jobs.state().processes)
        assert done(Job([(calls.double, (number,), {}) for number in range(5)])).finished

    def test_of_what_cannot_be_sent_back(self):
        assert "mappingproxy" in str(done(Job([(calls.unsendable, (), {})])).error)
        assert done(Job([(calls.double, (3,), {})])).finished

    def test_of_what_cannot_be_sent(self):
        job = done(Job([(lambda: None, (), {})]))
        assert "pickle" in str(job.error).lower()
        assert done(Job([(calls.double, (3,), {})])).finished


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
    wait(lambda: not is_served())
    state = jobs.state()
    assert (state.n_running, state.n_under_way, state.n_waiting) == (0, 0, 0)
    let_go = weakref.ref(job)
    del job
    gc.collect()
    assert let_go() is None


class TestElsewhere:
    """A call that a page waits for."""

    def test_gives_what_another_process_makes(self):
        assert jobs.elsewhere(os.getpid) != os.getpid()

    def test_raises_what_the_call_raises(self):
        with pytest.raises(ZeroDivisionError):
            jobs.elsewhere(divmod, 1, 0)

    def test_others_have_the_turn_meanwhile(self, monkeypatch):
        line = Line(1)
        monkeypatch.setattr(jobs, "line", line)
        line.enter(lambda ahead, seconds: None)
        during = []
        other = threading.Thread(
            target=lambda: (
                line.enter(lambda ahead, seconds: None),
                during.append(line.n_under_way),
                line.leave(),
            )
        )
        other.start()
        jobs.elsewhere(time.sleep, 0.3)
        assert during == [1]
        assert line.n_under_way == 1  # and then it is back
        line.leave()
        other.join(LONG)


class TestKept:
    """Finished jobs stay while there is room for their results."""

    def test_by_bytes(self, monkeypatch, sessions):
        monkeypatch.setattr(jobs, "_kept", OrderedDict())
        monkeypatch.setattr(jobs, "JOBS_MB", 0.0025)
        monkeypatch.setattr(watchers, "PATIENCE", 0.0)
        made = []
        for name in "abc":
            sessions(name)
            work = jobs.job(name, 0, lambda: [(bytes, (1000,), {})])
            monkeypatch.setattr(watchers, "PATIENCE", LONG)
            done(work)
            monkeypatch.setattr(watchers, "PATIENCE", 0.0)
            made.append(work)
        assert jobs.state().kept_bytes == sum(
            one.n_bytes for one in made
        )  # one more is looked at when the next is asked for
        jobs.job("d", 0, list)
        assert [name for name, _ in jobs._kept] == ["b", "c", "d"]

    def test_those_that_are_watched_stay(self, monkeypatch, sessions):
        monkeypatch.setattr(jobs, "_kept", OrderedDict())
        monkeypatch.setattr(jobs, "JOBS", 1)
        sessions("one")
        work = jobs.job("watched", 0, list)
        work.watch()
        jobs.job("other", 0, list)
        assert jobs.job("watched", 0, list) is work
