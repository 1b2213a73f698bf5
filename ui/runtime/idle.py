"""When the last visitor has left, memory goes back to the system.

Visitors' data is freed as they come and go, but Python's garbage and the C library's free blocks stay with the process:
a hundred MB after twelve visitors with 150 tokens each. Collecting them takes half a second in which no page runs, so
it is done while nobody is there.
"""

import asyncio

from ui.runtime import events, gate, jobs, memory
from ui.streamlit_fixes.sessions import end_left_sessions

EVERY = 5.0
"""Seconds between checks of who is there."""


async def give_back_memory() -> None:
    """Gives memory back each time the last visitor has left, as long as the server runs."""
    was_used = True
    while True:
        await asyncio.sleep(EVERY)
        is_used = end_left_sessions() > 0 or gate.n_open() > 0 or jobs.state().n_under_way > 0
        if was_used and not is_used:
            memory.give_back()
            events.idle(memory.resident())
        was_used = is_used
