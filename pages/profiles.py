"""What does each head do over many texts? All heads by their numbers, and one of them with examples."""

from functools import partial

import streamlit as st

from attnviz.records.table import table_csv
from ui.rooms.many_texts.profiles import exported, one_head, overview
from ui.rooms.many_texts.profiles.screen import screen_of
from ui.shell import errors, verdict
from ui.shell.export.take import take
from ui.shell.frame import frame
from ui.words.literal import literal

view = frame("Profiles")
title = st.container(key="finding")
screen = None
with errors.explained():
    with st.container(key="profile_notes"):  # has its place, or what follows would move with it
        screen = screen_of(view)
    if screen is None:
        overview.none(view)
    else:
        title.markdown(f"**{literal(overview.headline(screen))}**")
        overview.controls(screen)
        left, right = st.columns([3, 2], gap="medium")
        with left:
            overview.points(screen)
            st.caption(overview.about(screen))
        with right:
            overview.ranking(screen)
        st.subheader(screen.head.title, anchor=False)
        one_head.places(screen)
        left, right = st.columns(2, gap="medium")
        with left:
            one_head.relations(screen)
        with right:
            one_head.pairs(screen)
        one_head.examples(screen)
take(
    view,
    {overview.CHART: "Heads"} if screen else {},
    csv=partial(table_csv, *exported.as_csv_rows(screen)) if screen else None,
    numbers="Numbers of all heads" if screen else "Matrix",
    python=exported.python_lines(screen) if screen else None,
)
verdict.show(view)
