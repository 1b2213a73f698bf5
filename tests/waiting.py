"""Waiting for jobs and for what other processes do, and beginning anew with them."""

import time
from collections.abc import Callable

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
    """Ends the processes, as the server's end does; the next job has others, which have loaded nothing for a job before."""
    jobs.end()
    jobs._workers = Workers()
