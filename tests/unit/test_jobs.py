import os
import signal
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence

import pytest

from attnviz.errors import ProjectionError, TextTooLongError
from tests import calls
from tests.waiting import LONG, done, wait_until
from ui.runtime import jobs, watchers, workers
from ui.runtime.jobs import Call, Job
from ui.runtime.process import WorkerLostError
from ui.runtime.turns import Line


class TestResults:
    def test_come_in_the_order_of_the_calls(self):
        job = done(Job([(calls.double, (number,), {}) for number in range(37)]))
        assert job.results == [2 * number for number in range(37)]
        assert job.finished
        assert job.share == 1.0
        assert job.n_done == 37
        assert job.error is None

    def test_are_told_in_parts_while_a_call_is_under_way(self, tmp_path):
        file = tmp_path / "go on"
        job = Job([(calls.tell, ([3, 1, 4], file), {**jobs.TELLS_PROGRESS})])
        assert job.told() == ()
        job.watch()
        wait_until(lambda: len(job.told()) == 3)
        assert job.told() == (3, 1, 4) and job.told(1) == ()
        file.touch()
        assert done(job).results == ["done"]
        assert job.told() == ()

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
        wait_until(lambda: not jobs.state().processes)
        assert done(Job([(calls.double, (number,), {}) for number in range(5)])).finished

    def test_of_what_cannot_be_sent_back(self):
        assert "mappingproxy" in str(done(Job([(calls.unsendable, (), {})])).error)
        assert done(Job([(calls.double, (3,), {})])).finished

    def test_of_what_cannot_be_sent(self):
        job = done(Job([(lambda: None, (), {})]))
        assert "pickle" in str(job.error).lower()
        assert done(Job([(calls.double, (3,), {})])).finished


class TestLongTexts:
    def test_have_a_process_of_their_own_and_come_one_after_the_other(self, tmp_path):
        file = tmp_path / "go on"
        first, second = (
            Job([(calls.tell, ([number], file), {**jobs.TELLS_PROGRESS})], is_long=True) for number in (1, 2)
        )
        first.watch()
        second.watch()
        wait_until(lambda: first.told() == (1,))
        assert (first.n_ahead, second.n_ahead) == (0, 1)
        short = done(Job([(calls.process_id, (), {})] * 8))  # all others are free for it
        assert short.finished
        assert not set(short.results) & set(jobs._long.ids)
        assert second.told() == ()
        file.touch()
        assert done(first).results == done(second).results == ["done"]

    def test_their_process_ends_when_it_has_been_idle(self, monkeypatch):
        monkeypatch.setattr(jobs, "_long", workers.Workers(1, 0.01))
        [process] = done(Job([(calls.process_id, (), {})], is_long=True)).results
        wait_until(lambda: jobs._long.ids == ())
        assert done(Job([(calls.process_id, (), {})], is_long=True)).results != [process]


class TestSettling:
    def test_ends_when_its_time_is_over_and_the_work_goes_on(self, tmp_path):
        job = Job([(calls.until_untold, (tmp_path / "there",), {})])
        began = time.monotonic()
        assert job.settle(0.5) is None
        assert 0.5 <= time.monotonic() - began < LONG
        assert job.running and not job.finished  # whoever waited is still there
        (tmp_path / "there").touch()
        assert done(job).results == ["done"]
        assert (tmp_path / "there.begun").read_text() == "."  # it was not begun again


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
            value.n_bytes for value in made
        )  # the limit is applied when the next is asked for
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
