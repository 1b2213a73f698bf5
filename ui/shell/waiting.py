"""Work that takes a while, on the screen: how far it is with a way to stop it, and a way to go on."""

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import streamlit as st

from attnviz.errors import (
    CorpusError,
    EmptyTextError,
    InvalidTextError,
    ModelFailedError,
    SelectionError,
    ShapeError,
    TextTooLongError,
    UnsupportedArchitectureError,
)
from ui.choice import state
from ui.runtime.jobs import Job
from ui.session import of_session
from ui.shell import errors
from ui.streamlit_fixes.redrawn_block import redrawn_block

QUICK = 20_000
"""Tokens of all variants up to which a page waits for its numbers, which takes about a second on the bundled model, instead of
showing how far they are."""
LONGEST_WAIT = 1.0
"""Seconds that a page waits at most: a larger model takes longer for as many tokens."""
REFUSALS = (
    CorpusError,
    EmptyTextError,
    InvalidTextError,
    ModelFailedError,
    SelectionError,
    ShapeError,
    TextTooLongError,
    UnsupportedArchitectureError,
)
"""What is said of a text, a choice or a model that a job cannot be made of; trying again would not help."""
PULSE = 0.5
"""Seconds between two looks at a job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a large job, or several in turn, wait for."""

    label: str
    """Of the button."""
    key: Hashable
    """Of what is asked for."""


@dataclass(slots=True)
class Requested:
    """What a visitor has asked for."""

    keys: set[Hashable] = field(default_factory=set)


def whole_page() -> NoReturn:
    """Draws the whole page, from a block that was drawn by itself.

    The browser asked for the block with the link it had; a click since then counts for more.
    """
    state.hold()
    st.rerun()


def is_there(
    work: Job,
    n_tokens: int | None,
    sentence: str,
    *,
    key: str,
    stopped: str = "",
    resume: str = "Go on",
    request: Request | None = None,
    result: Callable[[], None] | None = None,
) -> bool:
    """Whether a job has finished: a small one is waited for, and how far a large one is is shown.

    Args:
        n_tokens: tokens of all variants, of the bundled model; None for what a page never waits for.
        said: what is being done, for the line beside the bar.
        stopped: what is shown after this visitor has cancelled; empty for the words of `said`.
        resume: label of the button that goes on after that.
        request: what a large job waits for; None for one that begins by itself.
        result: draws what has come so far, while it has not finished.

    Raises:
        AttnvizError: one of `REFUSALS`.
    """
    is_small = n_tokens is not None and n_tokens <= QUICK
    if request and not is_small and not work.finished and request.key not in of_session(Requested).keys:
        st.button(
            request.label,
            icon=":material/play_arrow:",
            on_click=_ask,
            args=(request,),
            key=key,
            help="Takes a while: progress is shown, and it can be cancelled.",
        )
        return False
    if is_small and work.is_awaited:
        with st.spinner(f"{sentence} …", show_time=True):
            work.settle(LONGEST_WAIT)
    if isinstance(work.error, REFUSALS):
        raise work.error
    if work.finished:
        return True
    stopped = stopped or f"Cancelled: {sentence.lower()}."
    chosen = state.chosen()

    def so_far() -> None:
        if state.chosen() != chosen:  # a click on what has come
            whole_page()
        if result is not None:
            result()

    show_jobs(
        [work],
        lambda: f"{sentence} …",
        lambda: stopped,
        resume=resume,
        key=key,
        result=so_far,
        is_page_without=True,
    )
    return False


def _ask(request: Request) -> None:
    of_session(Requested).keys.add(request.key)
    state.hold()


def show_jobs(
    jobs: Sequence[Job],
    wording: Callable[[], str],
    stopped: Callable[[], str],
    *,
    key: str,
    resume: str = "Go on",
    result: Callable[[], None] | None = None,
    is_page_without: bool = False,
    pulse: float = PULSE,
) -> None:
    """How far jobs are and what has come of them, redrawn until they are done; then draws the whole page.

    Args:
        said: what is shown beside the bar, before how long it will take.
        stopped: what is shown after this visitor has cancelled.
        key: of the button, whatever it says; with one of its own each would push the one before it aside for a moment,
            from under a pointer that is about to click it.
        resume: label of the button that goes on after that.
        result: draws what has come so far.
        is_page_without: whether the page around it found some of them unfinished and goes without their results; otherwise
            `result` draws all that comes of them. They may have ended since it asked.
    """
    was_awaited = _is_awaited(jobs)
    began, done_before = time.monotonic(), _share(jobs)

    def yield_point() -> None:
        for job in jobs:
            if job.is_awaited:
                job.watch()
        if _is_awaited(jobs) != was_awaited or (is_page_without and all(job.finished for job in jobs)):
            whole_page()
        left = time_left(time.monotonic() - began, _share(jobs) - done_before, 1 - _share(jobs))
        _show_progress(jobs, lambda: f"{wording()} {left}", stopped, resume, key)
        if result is not None:
            result()

    redrawn_block(yield_point, pulse if was_awaited else None)


def _share(jobs: Sequence[Job]) -> float:
    """How far all of them are together, 0 to 1."""
    return sum(job.share for job in jobs) / len(jobs)


def time_left(seconds: float, done: float, left: float) -> str:
    """How long the rest takes at the pace so far, in words, once a twentieth of the work was done in these seconds."""
    if done < 0.05:
        return "Starting takes a few seconds." if done == 0 else ""
    rest = seconds * left / done
    return f"About {max(1, round(rest))} s left." if rest < 90 else f"About {round(rest / 60)} minutes left."


def _is_awaited(jobs: Sequence[Job]) -> bool:
    """Whether more is to come; after an error nothing is until it is tried again."""
    return not any(job.error for job in jobs) and any(job.is_awaited for job in jobs)


def _show_progress(
    jobs: Sequence[Job], wording: Callable[[], str], stopped: Callable[[], str], resume: str, key: str
) -> None:
    """A bar with a way to stop, or why they do not go on with a way to go on; nothing once they are done."""

    def go_on() -> None:
        for job in jobs:
            job.go_on()

    def leave() -> None:
        for job in jobs:
            job.leave()

    unfinished = [job for job in jobs if not job.finished]
    if error := next((job.error for job in jobs if job.error is not None), None):
        errors.failed(error, go_on, key=key)
    elif any(job.was_left for job in unfinished):
        interrupted(stopped(), resume, go_on, key=key)
    elif unfinished:
        under_way(_share(jobs), wording(), leave, key=key)


def under_way(share: float, sentence: str, cancel: Callable[[], None], *, key: str) -> None:
    """How far it is, 0 to 1 and in words, and a button that stops it."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(share, text=sentence)
        st.button(
            "Cancel",
            icon=":material/stop:",
            on_click=_held,
            args=(cancel,),
            key=key,
            help="Stops here; what is on screen stays.",
        )


def interrupted(sentence: str, resume: str, go_on: Callable[[], None], *, key: str) -> None:
    """Where it was stopped, in words, and a button that goes on."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(sentence, width="content")
        st.button(
            resume,
            icon=":material/play_arrow:",
            on_click=_held,
            args=(go_on,),
            key=key,
            help="Continues where it stopped.",
        )


def _held(act: Callable[[], None]) -> None:
    state.hold()
    act()
