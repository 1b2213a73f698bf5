"""The mask, and the matrices without and with it."""

import numpy as np
import streamlit as st

from ui.shell.chart import chart

# isort: split
from attnviz.effects.masking import under_mask
from attnviz.figures import draw_pattern
from attnviz.records import AttentionPattern
from ui.components.plotly_figure.heatmap_events import heatmap_events
from ui.rooms.explore.pair import pick, pick_key
from ui.rooms.how_it_works.kinds_of_attention.mask import mask_title, paint
from ui.shell.navigation import link_to
from ui.shell.view import View
from ui.words.findings import name
from ui.words.literal import literal


def matrices(view: View, allowed: np.ndarray, key: int) -> None:
    """The model's own matrix and the masked one, side by side; a click or a button paints cells."""
    own = view.trace.pattern(*view.selection.place, view.kind)
    masked = under_mask(view.trace, *view.selection.place, allowed, view.kind)
    largest = float(max(pattern.weights.max() for pattern in (own, masked)))
    before, after = st.columns(2, gap="medium")
    to_paint = heatmap_events(
        own,
        show="weights",
        picked=(view.query, key),
        on_pick=paint,
        on_label=lambda *clicked: pick(list(clicked)),
        theme=view.theme,
    )
    for column, pattern, title, place, listeners in (
        (before, own, "The model's own", "mask_before", [to_paint]),
        (after, masked, mask_title(view), "mask_after", []),
    ):
        with column:
            st.markdown(f"**{title}**")
            chart(
                draw_pattern(
                    pattern,
                    colour=view.selection.colour,
                    picked=(view.query, key),
                    largest=largest,
                    hatched=True,
                    theme=view.theme,
                ),
                key=place,
                alt=f"{title}, attention matrix of {len(pattern.queries)} queries and {len(pattern.keys)} keys",
                listeners=listeners,
            )
    with st.container(horizontal=True, vertical_alignment="bottom", key="paint_cell"):
        pick_key(view, key)
        query_name, key_name = name(own.queries, view.query), name(own.keys, key)
        st.button(
            literal(f"{'Mask' if allowed[view.query, key] else 'Allow'} {query_name} → {key_name}"),
            icon=":material/edit_off:" if allowed[view.query, key] else ":material/edit:",
            on_click=paint,
            args=(view.query, key),
            key="paint",
            help="Masks this cell, or allows it again, as selecting a cell of the model's own matrix does.",
        )
    st.caption(cells_left(masked))
    link_to(
        "Several heads",
        label="See the edges as lines",
        help="Shows this head as lines from each query to its keys, without the attention mask.",
    )


def cells_left(masked: AttentionPattern) -> str:
    """How many cells of a matrix both masks allow, and how many queries see nothing."""
    allowed = masked.allowed
    sentence = (
        f"{int(allowed.sum()):,} of {allowed.size:,} cells are left; hatched cells may not be seen. Select a cell of the model's own "
        "matrix to mask it, or to allow it again."
    )
    if empty := int((~allowed.any(axis=1)).sum()):
        sentence += f" {empty} quer{'ies see' if empty > 1 else 'y sees'} no key at all; their rows are zero."
    return sentence
