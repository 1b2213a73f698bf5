import time

import pytest

from tests import calls
from tests.waiting import done, wait_until
from ui.runtime import jobs, watchers, workers
from ui.runtime.jobs import Job
from ui.runtime.process import Process


class TestLooking:
    def test_starts_the_work(self):
        job = Job([(calls.double, (3,), {})])
        assert not job.running
        assert job.share == 0.0
        assert done(job).finished

    def test_says_how_far_it_is(self, endless):
        job, end = endless
        job.watch()
        wait_until(lambda: job.share == 0.5)  # of every call under way
        assert job.running
        assert job.n_done == 0
        end.touch()
        assert done(job).results == ["done"] * workers.WORKERS

    def test_no_longer_ends_the_calls_under_way(self, endless):
        job, end = endless
        job.watch()
        wait_until(lambda: job.share == 0.5)
        job.leave()
        assert not job.running
        other = done(Job([(calls.double, (3,), {})]))  # there is a process for it
        assert other.results == [6]
        wait_until(lambda: job.share == 0.0)
        job.watch()  # from where it was
        end.touch()
        assert done(job).finished

    def test_of_somebody_who_is_gone_counts_for_a_while_only(self, endless, monkeypatch):
        job, _ = endless
        job.watch()
        wait_until(lambda: job.share == 0.5)
        monkeypatch.setattr(watchers, "PATIENCE", 0.0)
        wait_until(lambda: job.share == 0.0)
        assert not job.running

    def test_no_longer_ends_the_process_of_a_call_that_tells_nothing(self, tmp_path, monkeypatch):
        monkeypatch.setattr(workers, "LAST_SHARE", 0.0)
        end = tmp_path / "end"
        job = Job([(calls.until_untold, (end,), {})])
        job.watch()
        wait_until(end.with_suffix(".begun").exists)
        alive = set(jobs.state().processes)
        job.leave()
        wait_until(lambda: not jobs.state().n_under_way)
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
        wait_until(end.with_suffix(".begun").exists)
        sessions("one")
        job.leave()
        sessions("other")
        listened.clear()

        def is_listened_to() -> bool:
            job.watch()
            return len(listened) > 3

        wait_until(is_listened_to)
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

        monkeypatch.setattr(jobs, "newer_message_check", lambda: gone)
        with pytest.raises(InterruptedError):
            job.wait()
        assert not job.running
        wait_until(lambda: job.share == 0.0)

    def test_of_somebody_whose_page_is_open_counts_for_longer(self, endless, sessions, monkeypatch):
        """They may wait in line, or look at another window."""
        job, _ = endless
        monkeypatch.setattr(watchers, "PATIENCE", 0.0)
        monkeypatch.setattr(watchers, "is_open", lambda session: session == "open")
        sessions("open")
        job.watch()
        wait_until(lambda: job.share == 0.5)
        assert job.running
        monkeypatch.setattr(watchers, "LONG_PATIENCE", 0.0)
        wait_until(lambda: job.share == 0.0)

    def test_ends_when_a_page_was_drawn_that_does_not(self, endless, sessions, monkeypatch):
        job, _ = endless
        monkeypatch.setattr(watchers, "is_open", lambda session: True)
        sessions("one")
        before = time.monotonic()
        job.watch()
        jobs.unsubscribe_unseen(before)  # drawn anew, with the job
        wait_until(lambda: job.share == 0.5)
        sessions("other")
        jobs.unsubscribe_unseen(time.monotonic())
        assert job.running
        sessions("one")
        jobs.unsubscribe_unseen(time.monotonic())
        assert not job.running
        wait_until(lambda: job.share == 0.0)

    def test_of_others_keeps_it_going(self, endless, sessions):
        job, end = endless
        for name in ("one", "other"):
            sessions(name)
            job.watch()
        job.leave()
        assert job.running
        wait_until(lambda: job.share == 0.5)
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

        job = jobs.job("same", ("a", 1), made)
        assert jobs.job("same", ("a", 1), made) is job
        assert jobs.job("same", ("a", 2), made) is not job
        assert jobs.job("other", ("a", 1), made) is not job
