"""Work that takes a while, on the screen: how far it is with a way to stop it, and a way to go on."""

from collections.abc import Callable
from typing import NoReturn

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ui.choice import state
from ui.page import errors
from ui.work.jobs import Job

PULSE = 0.5
"""Seconds between two looks at a job."""


def looking(look: Callable[[], None], every: float | None) -> None:
    """Draws what a function draws, and draws it anew every so many seconds; once where that is None.

    In a block of its own: Streamlit 1.67 may drop what a fragment has drawn and send what stands after it on the
    page, when the fragment is drawn anew before the page has reached the browser. What stands after it then has no
    place, and the page ends. The block is sent with the page.
    """
    with st.container():
        st.fragment(look, run_every=every)()


def whole_page() -> NoReturn:
    """Draws the whole page, from a block that was drawn by itself.

    The browser asked for the block with the link it had; a click since then counts for more.
    """
    state.hold()
    st.rerun()


def watched(work: Job, draw: Callable[[], None], *, pulse: float = PULSE) -> None:
    """Draws what there is of a job, anew while there is more to come, and then the whole page."""
    was_awaited = work.is_awaited

    def look() -> None:
        if work.is_awaited:
            work.watch()
        if work.is_awaited != was_awaited:
            whole_page()
        draw()

    looking(look, pulse if was_awaited else None)


def progress(work: Job, said: str, cancelled: str, label: str = "Go on", *, key: str) -> None:
    """How far a job is with a way to stop it, or why it does not go on with a way to go on; nothing once it is done.

    Args:
        said: while it goes on; what it says where this session has cancelled it is ``cancelled``.
        label: of the button that goes on after that.
        key: of the button, whatever it says; with one of its own each would push the one before it aside for a moment,
            from under a pointer that is about to click it.
    """
    if work.error is not None:
        errors.failed(work.error, work.go_on, key=key)
    elif work.was_left and not work.finished:
        stopped(cancelled, label, work.go_on, key=key)
    elif not work.finished:
        under_way(work.share, said, work.leave, key=key)


def under_way(share: float, said: str, cancel: Callable[[], None], *, key: str) -> DeltaGenerator:
    """How far it is, 0 to 1 and in words, and a button that stops it; the bar, for those that tell more."""
    with st.container(horizontal=True, vertical_alignment="center"):
        bar = st.progress(share, text=said)
        st.button(
            "Cancel",
            icon=":material/stop:",
            on_click=_held,
            args=(cancel,),
            key=key,
            help="Stops here; what is on screen stays.",
        )
    return bar


def stopped(said: str, label: str, go_on: Callable[[], None], *, key: str) -> None:
    """Where it was stopped, in words, and a button that goes on."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(said, width="content")
        st.button(
            label,
            icon=":material/play_arrow:",
            on_click=_held,
            args=(go_on,),
            key=key,
            help="Makes what is missing.",
        )


def _held(act: Callable[[], None]) -> None:
    state.hold()
    act()
