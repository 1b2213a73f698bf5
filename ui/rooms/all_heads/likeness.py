"""Which heads are similar: those most similar to the selected head, and a map of all."""

from typing import Any

import numpy as np
import streamlit as st

from attnviz.figures.heads import draw_head_map
from attnviz.figures.numbers import number_text
from ui.components.plotly_figure.label_room import label_room
from ui.components.ranked_list import Row, ranked_list
from ui.rooms.all_heads.screen import Screen, pick
from ui.runtime import head_cache
from ui.shell.chart import chart
from ui.shell.navigation import link_to
from ui.words.glossary import linked

N_NEAREST = 8


def nearest(screen: Screen) -> None:
    """The heads most similar to the selected one; a click selects."""
    selection = screen.view.selection
    st.markdown(f"**Most similar to {selection.place.words}**")
    with st.spinner("Comparing all heads …", show_time=True):
        divergences = head_cache.divergences(screen.cells)
    nearest_heads = divergences.nearest(*selection.place, N_NEAREST)
    ranked_list(
        [
            Row(
                text=f"Layer {layer}, head {head}",
                amount=number_text(1 - divergence),
                length=1 - divergence,
                picked=False,
            )
            for layer, head, divergence in nearest_heads
        ],
        name="Heads most similar to the selected one; select one",
        on_pick=lambda row: pick(*nearest_heads[row][:2]),
        theme=screen.view.theme,
        key="nearest_heads",
    )
    n_rows, n_queries = divergences.n_rows, divergences.n_queries
    st.caption(
        f"{linked('Jensen–Shannon divergence', 'Jensen–Shannon divergence')} of their rows; bars show 1 − distance. Distance 0 = identical, 1 = no shared keys."
        + (f" Of {n_queries:,} rows {n_rows:,} are compared, evenly spaced." if n_rows < n_queries else "")
    )
    link_to(
        "Heads off",
        label=f"What if {selection.place.words} were off?",
        help="Switches this head off, and every other, to measure what happens to an outcome.",
    )


def head_map(screen: Screen) -> None:
    """All heads as points; similar heads are close together."""
    selection = screen.view.selection
    st.markdown("**Similar heads are close together**")
    with st.spinner("Laying out the heads …", show_time=True):
        points = head_cache.head_map(screen.cells)
    chart(
        draw_head_map(
            points,
            heads=screen.heads,
            picked=selection.place,
            dimmed=np.array([not screen.is_kept[head] for head in screen.heads]),
            theme=screen.view.theme,
        ),
        key="head_map",
        alt=f"Map of all heads; {selection.place.words} is marked",
        on_pick=_pick_point,
        listeners=[label_room(note="", theme=screen.view.theme, picked=selection.place.short)],
    )
    st.caption(
        "Multidimensional scaling of the divergences (Clark et al. 2019, arXiv:1906.04341, section 6). Select a point to select its head."
    )


def _pick_point(clicked: Any) -> None:
    match clicked:
        case [int(layer), int(head)]:
            pick(layer, head)
