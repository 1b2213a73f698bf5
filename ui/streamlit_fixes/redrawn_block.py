"""A block that is redrawn by itself without losing the elements after it.

Symptom: two.
1. A fragment's first element takes the place of the fragment itself. If the fragment is redrawn before the page has reached the
   browser, Streamlit drops the first drawing, so the next element has no preceding sibling and the page ends there.
2. An error in a fragment is shown in its place, and then ends the whole page.
Version: 1.67.0. Related to the first, closed: github.com/streamlit/streamlit issue 9188, pull request 9381.
No longer needed when: `test_what_stands_after_a_look_has_its_place[bare]` in tests/app/test_waiting.py fails for the first; for the
second when `test_an_error_in_a_block_leaves_what_is_beside_it` in tests/app/test_broken_models.py is green without.
"""

from collections.abc import Callable

import streamlit as st


def redrawn_block(draw: Callable[[], None], every: float | None) -> None:
    """Calls a drawing function, and again every ``every`` seconds; only once if that is None."""
    with st.container():  # which is sent with the page
        try:
            st.fragment(draw, run_every=every)()
        except Exception as error:
            if not isinstance(next(iter(error.args), None), Exception):
                raise  # what is not of the block, whose error Streamlit has shown and wrapped
