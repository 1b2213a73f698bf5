"""How far another sentence goes through the house: files and calls between files, counted while it is drawn.

A browser that has the page asks for the stage's block alone, so what a page draws whatever is selected does not count, and
neither does what is in a drawer that is closed.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from tests.app import screen
from tests.app.screen import ROOT, assert_no_exception, open_page, type_text

OURS = tuple(f"{ROOT}/{name}" for name in ("attnviz/", "ui/", "attention.py"))
BLOCK = "_block"
"""The function of the renderer that a change draws anew."""
MOST_FILES = 108
MOST_CALLS = 870
LATEST_STAGE = 72
"""Ceilings: what holds now. Whoever needs more says why; whoever needs less lowers them. The last that needed more: how long a text is,
is asked before it is read; what is said of heads goes by rows; a text may come from a file; a row is asked whether it matters; and a text, whether ALTI and value
zeroing take it. The last files: the cells of a layer, which were among the statistics, and quotients, which were written six times."""


class Way:
    """The files that were entered, in order, and calls from one of them into another."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.n_call = 0

    def take(self, frame: FrameType, event: str, _: Any) -> None:
        """A profile function, as of `threading.setprofile`."""
        name = frame.f_code.co_filename
        is_called = (
            event == "call" and frame.f_back is not None
        )  # numba tells of what it compiled, without a caller
        if not is_called or not name.startswith(OURS) or not self._is_of_block(frame):
            return
        if name not in self.files:
            self.files.append(name)
        caller = frame.f_back
        if caller and caller.f_code.co_filename.startswith(OURS) and caller.f_code.co_filename != name:
            self.n_call += 1

    @staticmethod
    def _is_of_block(frame: FrameType) -> bool:
        """Whether the block is being drawn, or the page has not begun: then a callback takes what was typed."""
        above: FrameType | None = frame
        is_of_page = False
        while above is not None:
            name = above.f_code.co_filename
            if name == f"{ROOT}/tests/app/conftest.py":  # which does here what is another process's
                return False
            if name == f"{ROOT}/ui/renderer.py":
                is_of_page = True
                if above.f_code.co_name == BLOCK:
                    return True
            above = above.f_back
        return not is_of_page


@contextmanager
def followed() -> Iterator[Way]:
    """The way of what is drawn meanwhile, which Streamlit does in a thread of its own."""
    way = Way()
    threading.setprofile(way.take)
    try:
        yield way
    finally:
        threading.setprofile(None)


@pytest.fixture
def another_sentence(monkeypatch) -> Way:
    monkeypatch.setattr(screen, "DRAWERS", ())
    at = open_page()
    type_text(at, "A nurse read the old letter when it came.")  # what is made once for a model is made
    with followed() as way:
        type_text(at, "A farmer saw the grey river when it rose.")
    assert_no_exception(at)
    return way


def test_another_sentence_goes_through_no_more_of_the_house_than_before(another_sentence):
    way = another_sentence
    short = [name.removeprefix(f"{ROOT}/") for name in way.files]
    told = f"{way.n_call:,} calls between {len(short)} files, in the order they are entered: {short}"
    assert len(short) <= MOST_FILES, told
    assert way.n_call <= MOST_CALLS, told
    assert short.index("ui/components/stage_data/__init__.py") < LATEST_STAGE, told
    assert {"attnviz/model/trace.py", "attnviz/maths/attention.py", "ui/rooms/explore/stage/stage.py"} <= {
        *short
    }, told
    assert "ui/shell/glossary_search.py" not in short, "that stays whatever is selected"
