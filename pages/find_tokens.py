"""Which tokens in other texts are most like the selected one? Those with the nearest vectors, and what the head attends to there."""

from functools import partial

import streamlit as st

from attnviz.records.table import table_csv
from ui.rooms.many_texts.find_tokens import lines
from ui.rooms.many_texts.find_tokens.screen import opened_index, search
from ui.shell import errors, verdict
from ui.shell.export.take import take
from ui.shell.frame import frame
from ui.words.literal import literal

view = frame("Find tokens")
lines.selected_token(view)
title = st.container(key="finding")
screen = None
with errors.explained():
    lines.controls(view)
    index = opened_index(view)
    if index is not None and lines.is_of_layer(view, index):
        screen = search(view, index)
        title.markdown(f"**{literal(lines.headline(screen))}**")
        lines.results(screen)
        st.caption(literal(lines.about(screen)))
take(
    view,
    {},
    csv=partial(table_csv, *lines.as_csv_rows(screen)) if screen else None,
    numbers="Found tokens" if screen else "Matrix",
    python=lines.python_lines(screen) if screen else None,
)
verdict.show(view)
