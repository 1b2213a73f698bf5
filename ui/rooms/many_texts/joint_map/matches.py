"""The occurrences of the highlighted token."""

import numpy as np
import streamlit as st

from attnviz.figures.labels import label_at
from attnviz.figures.numbers import counted
from ui.choice import widgets
from ui.rooms.many_texts.joint_map import lines
from ui.rooms.many_texts.joint_map.choices import JointMapSettings
from ui.rooms.many_texts.joint_map.joint_map import Screen
from ui.rooms.many_texts.joint_map.picked_token import pick
from ui.shell.table import whole_rows
from ui.shell.view import View
from ui.words.literal import quoted


def matches(view: View, screen: Screen, rows: np.ndarray, token: int | None) -> None:
    """The matching tokens, each with its sentence; a row selects its token."""
    collection, wanted = screen.collection, quoted(view.selection.of(JointMapSettings).search)
    if not len(rows):
        st.caption(f"No token and no word of these sentences is {wanted}.")
        return
    sentences = collection.sentence[rows]
    n_sentence = len(np.unique(sentences))
    st.markdown(f"**{wanted}: {counted(len(rows), 'token')} in {counted(n_sentence, 'sentence')}**")
    side = ("query", "key").index(view.selection.of(JointMapSettings).side)
    key = f"matches_{lines.digest(view.selection.of(JointMapSettings).search)[:8]}"
    st.dataframe(
        {
            "sentence": sentences + 1,
            "token": [
                label_at(
                    collection.tokens[sentence].labels[collection.position[at]], int(collection.position[at])
                )
                for sentence, at in zip(sentences, rows, strict=True)
            ],
            "text": [collection.tokens[sentence].text for sentence in sentences],
        },
        hide_index=True,
        height=whole_rows(len(rows)),
        **widgets.tie_row(key, rows.tolist(), token, lambda picked: pick(collection, side, picked)),
    )
