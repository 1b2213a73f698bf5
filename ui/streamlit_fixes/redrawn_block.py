"""A block that is redrawn by itself, without losing what stands after it.

Symptom: what a fragment draws as its first element takes the place of the fragment itself. Where it is redrawn before the
page has reached the browser, Streamlit drops the first drawing, so that the element after it has no elder sibling, and the
page ends there.
Version: 1.67.0. Related, closed: github.com/streamlit/streamlit issue 9188, pull request 9381.
No longer needed when: `test_what_stands_after_a_look_has_its_place[bare]` in tests/app/test_waiting.py fails.
"""

from collections.abc import Callable

import streamlit as st


def redrawn_block(draw: Callable[[], None], every: float | None) -> None:
    """Draws what a function draws, and redraws it every so many seconds; once where that is None."""
    with st.container():  # which is sent with the page
        st.fragment(draw, run_every=every)()
