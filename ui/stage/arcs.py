"""The lines of all tokens at once: the token flow of the selected head, as large as the stage."""

import streamlit as st

from ui.choice import state
from ui.components.token_flow import token_flow
from ui.rooms.explore.token_flow.lines import drawn_at_once, hidden_lines, lines_of, note
from ui.stage.screen import Screen
from ui.words.literal import literal


def arcs(screen: Screen) -> None:
    """Queries and keys of the head in two columns, joined by lines as thick as the weights."""
    view, pattern = screen.view, screen.pattern
    matrices = pattern.weights[None]
    flow = lines_of(matrices, view)
    largest = float(matrices.max()) if view.measure == "norms" else 1.0
    drawn = drawn_at_once(flow, view, screen.key)

    def keep(side: str, position: int) -> None:
        if side == "query":
            state.change(query=position, key=None)
        elif side == "key":
            state.change(key=position)

    token_flow(
        flow,
        view.queries,
        view.keys,
        heads=[(view.selection.place.short, view.selection.place.title)],
        largest=max(largest, 1e-9),
        drawn=drawn,
        query=screen.query,
        kept=None,
        on_keep=keep,
        theme=view.theme,
    )
    st.caption(
        " ".join(
            filter(None, [literal(note(flow, view, largest)), hidden_lines(drawn, "More of “Several heads”")])
        )
    )
