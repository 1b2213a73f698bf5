"""Long work on the screen: its progress with a button to cancel, and a button to resume."""

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
"""Most tokens, over all variants, for which a page waits for its numbers instead of showing progress: about a second on
the bundled model."""
LONGEST_WAIT = 1.0
"""Longest wait of a page in seconds, since a larger model takes longer for as many tokens."""
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
"""Errors about a text, a choice or a model for which a job is impossible; trying again would not help."""
PULSE = 0.5
"""Seconds between two checks of a job's progress."""
LONG_PULSE = 1.5
"""The same for a long text, which the browser sends along with every check: Streamlit sends all fields each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The click that starts a large job, or several in turn."""

    label: str
    """Label of the button."""
    key: Hashable
    """Identifies what is requested."""


@dataclass(slots=True)
class Requested:
    """What a visitor has requested."""

    keys: set[Hashable] = field(default_factory=set)


def whole_page() -> NoReturn:
    """Redraws the whole page, from a block that was drawn by itself.

    The browser requested the block with the link of that time; a later click takes precedence.
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
    """Whether a job has finished; waits for a small job, and shows the progress of a large one.

    Args:
        n_tokens: tokens of all variants in the bundled model; None for a job that a page never waits for.
        sentence: what is being done, for the line beside the bar.
        stopped: text after this visitor has cancelled; empty for one made from `sentence`.
        resume: label of the button that resumes after that.
        request: starts a large job; None for one that begins by itself.
        result: draws the results so far, until the job has finished.

    Raises:
        AttnvizError: one of `REFUSALS`.
    """
    is_small = n_tokens is not None and n_tokens <= QUICK
    if request and not is_small and not work.finished and not is_asked(request, key=key):
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
        if state.chosen() != chosen:  # a click on the results so far
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


def is_asked(request: Request, *, key: str) -> bool:
    """Whether this visitor has requested something; draws the button that does until then."""
    if request.key in of_session(Requested).keys:
        return True
    st.button(
        request.label,
        icon=":material/play_arrow:",
        on_click=_ask,
        args=(request,),
        key=key,
        help="Takes a while: progress is shown, and it can be cancelled.",
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
    """Shows the progress and results of jobs, redrawn until they are done; then redraws the whole page.

    Args:
        wording: text beside the bar, before the time left.
        stopped: text after this visitor has cancelled.
        key: of the button, whatever its label; with a key for each label, a new button would briefly push the old one
            aside, from under a pointer that is about to click it.
        resume: label of the button that resumes after that.
        result: draws the results so far.
        is_page_without: whether the page around it found some jobs unfinished and was drawn without their results;
            otherwise `result` draws all of them. The jobs may have ended since.
    """
    was_awaited = _is_awaited(jobs)
    began, done_before = time.monotonic(), _share(jobs)
    last, known = began, done_before  # when a share was told last, and which

    def yield_point() -> None:
        nonlocal last, known
        for job in jobs:
            if job.is_awaited:
                job.watch()
        if _is_awaited(jobs) != was_awaited or (is_page_without and all(job.finished for job in jobs)):
            whole_page()
        now = time.monotonic()
        if _share(jobs) != known:
            last, known = now, _share(jobs)
        left = time_left(last - began, known - done_before, 1 - known, since=now - last)
        _show_progress(jobs, lambda: f"{wording()} {left}", stopped, resume, key)
        if result is not None:
            result()

    redrawn_block(yield_point, pulse if was_awaited else None)


def _share(jobs: Sequence[Job]) -> float:
    """Progress of all jobs together, 0 to 1."""
    return sum(job.share for job in jobs) / len(jobs)


def time_left(seconds: float, done: float, left: float, *, since: float = 0.0) -> str:
    """The time left at the pace so far, in words, once a twentieth of the work is done.

    Args:
        since: seconds since then, in which no more was told to be done.
    """
    if done < 0.05:
        return "Starting takes a few seconds." if done == 0 and left == 1 else ""
    rest = seconds * left / done - since
    return f"About {max(1, round(rest))} s left." if rest < 90 else f"About {round(rest / 60)} minutes left."


def _is_awaited(jobs: Sequence[Job]) -> bool:
    """Whether more results will come; after an error, none until the visitor tries again."""
    return not any(job.error for job in jobs) and any(job.is_awaited for job in jobs)


def _show_progress(
    jobs: Sequence[Job], wording: Callable[[], str], stopped: Callable[[], str], resume: str, key: str
) -> None:
    """A bar with a button to cancel, or why the jobs stopped with a button to resume; nothing once they are done."""

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
    """The progress, 0 to 1 and in words, and a button that cancels."""
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
    """Where the work stopped, in words, and a button that resumes it."""
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
