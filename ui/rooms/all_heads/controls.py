"""The controls for what the grid shows, which heads it dims, and the number from which a head matches a pattern."""

import numpy as np
import streamlit as st

from ui.choice import state, widgets
from ui.rooms.all_heads.choices import GridSettings
from ui.rooms.all_heads.screen import PICTURES, Screen
from ui.streamlit_fixes.stale_values import tie


def controls(screen: Screen) -> None:
    """The controls for what the grid shows, and which heads are dimmed."""

    def choose_number(grid: str) -> None:
        # The previous number's limits mean nothing for this one.
        state.change(grid=grid, lowest=None, highest=None)

    with st.container(horizontal=True, vertical_alignment="bottom"):
        shown = screen.view.selection.but(grid=screen.shown)
        st.selectbox(**widgets.field("grid", shown, choose_number), width=290)
        st.selectbox(**widgets.field("label"), width=210)
        with st.popover("More", icon=":material/tune:", key="heads_more"):
            if screen.shown == PICTURES:
                scale_of_pictures()
            else:
                range_of_number(screen)
            thresholds()


def scale_of_pictures() -> None:
    """The control for the colour scale."""
    st.toggle(**widgets.field("common_scale"))
    st.segmented_control(**widgets.field("colour", required=True))


def range_of_number(screen: Screen) -> None:
    """The range of numbers whose heads are not dimmed; the ends of the slider mean no limit."""
    numbers, selection = screen.numbers[screen.shown], screen.view.selection
    low = float(np.floor(1000 * np.nanmin(numbers)) / 1000)
    high = float(np.ceil(1000 * np.nanmax(numbers)) / 1000)
    if low == high:  # all heads have the same number
        return
    first, last = (
        float(np.clip(end if limit is None else limit, low, high))
        for limit, end in (
            (selection.of(GridSettings).lowest, low),
            (selection.of(GridSettings).highest, high),
        )
    )

    def choose_range(picked: tuple[float, float]) -> None:
        first, last = picked
        state.change(lowest=None if first == low else first, highest=None if last == high else last)

    st.slider(
        "Range",
        min_value=low,
        max_value=high,
        step=0.001,
        format="%.3f",
        help="Dims the heads whose number lies outside.",
        value=(first, last),
        **tie("heads_range", (first, last), choose_range),
    )


def thresholds() -> None:
    """The number above which a head matches a pattern."""
    for name in ("near", "delimiter", "broad"):
        st.slider(**widgets.field(name, format=None))
