"""Waiting for jobs and for what other processes do, and beginning anew with them."""

import os
import signal
import time
from collections.abc import Callable
from multiprocessing.forkserver import _forkserver

from ui.runtime import jobs
from ui.runtime.jobs import Job
from ui.runtime.workers import Workers

LONG = 120.0
"""Seconds; nothing that is waited for takes that long."""


def wait_until(until: Callable[[], object]) -> None:
    end = time.monotonic() + LONG
    while not until():
        assert time.monotonic() < end
        time.sleep(0.005)


def done(job: Job) -> Job:
    """The job when nothing more comes of it by itself."""

    def watched() -> bool:
        job.watch()
        return not job.running

    wait_until(watched)
    return job


def begin_with_new_processes() -> None:
    """Ends the processes, as the server's end does, and the one that they are copies of; the next job has others, which have
    loaded nothing for a job before."""
    jobs.end()
    if copied := _forkserver._forkserver_pid:
        os.kill(copied, signal.SIGKILL)
        os.waitid(
            os.P_PID, copied, os.WEXITED | os.WNOWAIT
        )  # its end is still to be noticed by the next start
    jobs._workers, jobs._long = Workers(), Workers(1, jobs.IDLE_SECONDS)
