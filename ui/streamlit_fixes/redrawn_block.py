"""A block that is redrawn by itself without losing the elements after it.

Symptom: a fragment's first element takes the place of the fragment itself. If the fragment is redrawn before the page has
reached the browser, Streamlit drops the first drawing, so the next element has no preceding sibling and the page ends
there.
Version: 1.67.0. Related, closed: github.com/streamlit/streamlit issue 9188, pull request 9381.
No longer needed when: `test_what_stands_after_a_look_has_its_place[bare]` in tests/app/test_waiting.py fails.
"""

from collections.abc import Callable

import streamlit as st


def redrawn_block(draw: Callable[[], None], every: float | None) -> None:
    """Calls a drawing function, and again every ``every`` seconds; only once if that is None."""
    with st.container():  # which is sent with the page
        st.fragment(draw, run_every=every)()
