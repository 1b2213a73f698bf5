"""The server's start and end: loads the default model, starts the worker processes, and ends them.

Loading happens here so that the first visitor does not wait for it.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import streamlit as st

from attnviz import __version__
from attnviz.errors import AttnvizError
from attnviz.model.catalogue import default_model, offer
from ui.limits import PEOPLE, RUNS, WARM, WORKERS
from ui.runtime import cache, events, gate, jobs, log, memory, profiles
from ui.runtime.gate import VISITOR
from ui.runtime.turns import line
from ui.runtime.with_model import warm
from ui.streamlit_fixes.log_lines import format_logs
from ui.streamlit_fixes.runs_in_turn import Run, take_turns
from ui.streamlit_fixes.sessions import end_left_sessions

_EVERY = 5.0
"""Seconds between checks of who is there."""


async def give_back_memory() -> None:
    """Gives memory back to the system each time the last visitor has left, as long as the server runs.

    Visitors' data is freed as they come and go, but Python's garbage and the C library's free blocks stay with the process:
    a hundred MB after twelve visitors with 150 tokens each. Collecting them takes half a second in which no page runs.
    """
    was_used = True
    while True:
        await asyncio.sleep(_EVERY)
        is_used = end_left_sessions() > 0 or gate.n_open() > 0 or jobs.state().n_under_way > 0
        if was_used and not is_used:
            memory.collect_all()
            memory.give_back()
            events.idle(memory.resident())
        was_used = is_used


@asynccontextmanager
async def serving(_: Any) -> AsyncIterator[None]:
    """Runs from the server's start, before the first visitor, to its end."""
    since = time.monotonic()
    memory.use_few_heaps()
    format_logs(log.begin())
    take_turns(line.enter, line.leave, _ended)
    events.started(version=__version__, people=PEOPLE, runs=RUNS, workers=WORKERS)
    if WARM == "yes":
        threading.Thread(target=_make_ready, daemon=True, name="make ready").start()
    giving_back = asyncio.create_task(give_back_memory())
    yield
    giving_back.cancel()
    jobs.end()
    events.stopped(time.monotonic() - since)


def _ended(run: Run) -> None:
    is_block = not events.drew_selection() and run.is_block
    if run.outcome == "done" and not is_block:
        jobs.unsubscribe_unseen(time.monotonic() - run.seconds)
    events.ran(
        st.context.headers.get(VISITOR),
        run.page,
        run.outcome,
        waited=run.waited,
        seconds=run.seconds,
        is_block=is_block,
    )


def _make_ready() -> None:
    name, since = default_model(), time.monotonic()
    try:
        profiles.naming_profile(cache.model(name).weights_sha256)
        jobs.Job([(warm, (offer(name).name,), {})] * WORKERS, "warm").wait()
    except AttnvizError as error:  # the first visitor sees it, too
        log.event("not_ready", because=str(error))
    else:
        memory.collect_only_what_comes()
        events.ready(time.monotonic() - since)
