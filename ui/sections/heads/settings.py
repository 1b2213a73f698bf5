"""What the grid shows, which heads it dims, and from what number on a head bears a label."""

from dataclasses import replace

import numpy as np
import streamlit as st

from attnviz.heads import LABELS, STATISTICS
from ui.choice import state, widgets
from ui.choice.selection import CHOICES
from ui.sections.heads.grid import MARKS
from ui.sections.heads.screen import PICTURES, Screen


def controls(screen: Screen) -> None:
    """What the grid shows, and which heads are dimmed."""

    def choose_number(grid: str) -> None:
        # Limits of the number before mean nothing to this one.
        state.change(grid=grid, lowest=None, highest=None)

    def name_of(label: str) -> str:
        if label in LABELS:
            return f"{MARKS[LABELS[label]]}  {LABELS[label]}"
        return {"all": "All heads", "none": "Heads without a label"}[label]

    with st.container(horizontal=True, vertical_alignment="bottom"):
        shown = screen.view.selection.but(grid=screen.shown)
        st.selectbox(
            "Show",
            CHOICES["grid"],
            format_func=lambda name: STATISTICS[name].title if name in STATISTICS else "Pictures",
            help="Each head's matrix as a small picture, or one number of each head as a colour.",
            width=290,
            **widgets.field("grid", shown, choose_number),
        )
        st.selectbox(
            "Highlight",
            CHOICES["label"],
            format_func=name_of,
            help="Dims the heads that do not bear this label.",
            width=210,
            **widgets.field("label"),
        )
        with st.popover("More", icon=":material/tune:", key="heads_more"):
            if screen.shown == PICTURES:
                scale_of_pictures()
            else:
                range_of_number(screen)
            thresholds()


def scale_of_pictures() -> None:
    """How weights become tones."""
    st.toggle(
        "One scale for all heads",
        help="Gives the strongest tone to the largest weight of all heads, instead of each head's own.",
        **widgets.field("common"),
    )
    st.segmented_control(
        "Colours",
        CHOICES["colour"],
        required=True,
        format_func=str.capitalize,
        help="Logarithmic colours tell small weights apart.",
        **widgets.field("colour"),
    )


def range_of_number(screen: Screen) -> None:
    """From where to where a head's number is not dimmed; at the ends there is no limit."""
    numbers, selection = screen.numbers[screen.shown], screen.view.selection
    low = float(np.floor(1000 * np.nanmin(numbers)) / 1000)
    high = float(np.ceil(1000 * np.nanmax(numbers)) / 1000)
    if low == high:  # all heads alike
        return
    chosen = tuple(
        float(np.clip(end if limit is None else limit, low, high))
        for limit, end in ((selection.all_heads.lowest, low), (selection.all_heads.highest, high))
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
        **widgets.tie("heads_range", chosen, choose_range),
    )


def thresholds() -> None:
    """The number from which on a head bears a label."""
    for name, title in (
        ("near", "Previous, next, self: weight above"),
        ("delimiter", r"\[CLS\], \[SEP\], punctuation: weight above"),
        ("broad", "Broad: entropy, as a share of ln n, above"),
    ):
        st.slider(
            title,
            min_value=0.0,
            max_value=1.0,
            step=0.05,
            help="A head whose number is larger bears the label.",
            **widgets.field(name),
        )
