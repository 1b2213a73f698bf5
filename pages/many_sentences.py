"""What does a head do over many sentences? All their queries and keys in one map."""

from functools import partial

import streamlit as st

from ui.rooms.many_texts.many_sentences import joint_map, lines
from ui.rooms.many_texts.many_sentences.controls import controls
from ui.rooms.many_texts.many_sentences.drawing import CHART, as_csv, draw
from ui.rooms.many_texts.many_sentences.joint_map import Screen
from ui.rooms.many_texts.many_sentences.matches import matches
from ui.rooms.many_texts.many_sentences.picked_token import picked_token, sentence
from ui.rooms.many_texts.many_sentences.reliability import headline, reliability
from ui.session import of_session
from ui.shell import errors, verdict
from ui.shell.export.take import take
from ui.shell.frame import frame
from ui.words.literal import literal

view = frame("Joint map")
title = st.container(key="finding")
controls(view)
screen: Screen | None = None
with errors.explained():
    text = lines.chosen_lines(view)
    collection = lines.read(view, text)
    made = None if collection is None else joint_map.lay_out(view, text, collection)
    last = of_session(joint_map.LastScreen)
    screen = last.screen = made or last.screen
    if screen is not None:
        title.markdown(f"**{literal(headline(screen.place, screen.map))}**")
        token = picked_token(view, screen)
        sentence_picked = (
            screen.collection.find(view.selection.joint.search)
            if view.selection.joint.search.strip()
            else None
        )
        left, right = st.columns([5, 2], gap="medium")
        with left:
            draw(view, screen, sentence_picked, token)
        with right:
            if sentence_picked is not None:
                matches(view, screen, sentence_picked, token)
            reliability(screen)
        if token is None:
            st.caption("Select a point to see its sentence, with lines to its strongest keys.")
        else:
            sentence(view, screen, token)
take(
    view,
    {CHART: "Map of many sentences"} if screen else {},
    csv=partial(as_csv, screen) if screen else None,
    numbers="Points" if screen else "Matrix",
)
verdict.show(view)
