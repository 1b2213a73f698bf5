"""The three matrices of a comparison, zoomed to a part around the selected pair."""

import math

import streamlit as st
from plotly.graph_objects import Figure

from attnviz.figures import draw_comparison
from attnviz.figures.comparison import MOST_BLOCKS, Part, block_length
from attnviz.figures.heatmap import MOST_COUNTED
from attnviz.heads.comparison import Comparison
from ui.choice import state
from ui.rooms.compare.partner import FEWEST_ZOOMED, PartnerB
from ui.shell.chart import chart
from ui.shell.view import View


def matrix(
    view: View, comparison: Comparison, part: Part, picked: tuple[int, int], *, alt: str, key: str
) -> Figure:
    """The zoomed part of A, B or their difference, with the picked query and key; a click on a cell selects its own.

    Args:
        key: prefix of the charts' keys.
    """
    around = _part_length(comparison, view.selection.of(PartnerB).zoom)
    drawn = draw_comparison(comparison, part, picked=picked, around=around, theme=view.theme)
    chart(drawn, key=f"{key}_{part}", alt=alt, on_pick=pick)
    return drawn


def pick(clicked: object) -> None:
    """Selects a cell's query and key, if they are tokens of A."""
    match clicked:
        case [int(query), int(key)] if min(query, key) >= 0:
            state.change(query=query, key=key)
        case _:
            state.hold()


def zoom_buttons(comparison: Comparison, around: int | None, *, key: str) -> None:
    """Buttons that show a smaller or larger part; none if all cells are large enough to be counted."""
    longest = _longest(comparison)
    if longest <= MOST_COUNTED:
        return
    shown = _part_length(comparison, around) or longest
    nearer = max(FEWEST_ZOOMED, min(math.ceil(shown / 2), MOST_BLOCKS))  # the first step shows single cells
    farther = None if 2 * shown >= longest else 2 * shown
    steps = (
        ("Zoom in", nearer, shown <= FEWEST_ZOOMED, "Shows fewer cells, larger, around the selected pair."),
        ("Zoom out", farther, shown == longest, "Shows more cells around the selected pair."),
        ("All cells", None, shown == longest, "Shows the whole matrices."),
    )
    with st.container(horizontal=True, key=f"{key}_zoom"):
        for label, length, is_over, caption in steps:
            st.button(
                label,
                disabled=is_over,
                key=f"{key}_{label.lower().replace(' ', '_')}",
                help=caption,
                on_click=state.change,
                kwargs={"other_zoom": length},
            )


def zoom_note(comparison: Comparison, around: int | None) -> str:
    """What is left out, and what a cell of several tokens shows; empty if neither applies."""
    shape = len(comparison.queries), len(comparison.keys)
    length = _part_length(comparison, around)
    shown = shape if length is None else tuple(min(length, size) for size in shape)
    sentences = []
    if length is not None:
        sentences.append(
            f"Shown are {shown[0]} of {shape[0]} queries and {shown[1]} of {shape[1]} keys, around the selected pair; "
            "select a cell to move there."
        )
    n_query, n_key = (block_length(size) for size in shown)
    if max(n_query, n_key) > 1:
        sentences.append(
            f"Each cell stands for a block of {n_query} × {n_key} and shows its number furthest from 0, which a click selects."
        )
    return " ".join(sentences)


def _part_length(comparison: Comparison, around: int | None) -> int | None:
    """Entries per side of the part that is shown; None if all are shown."""
    return None if around is None or around >= _longest(comparison) else around


def _longest(comparison: Comparison) -> int:
    return max(len(comparison.queries), len(comparison.keys))
