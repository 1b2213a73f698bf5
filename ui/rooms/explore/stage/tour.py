"""The tour of the first screen: stops at its controls, each with a task; once the task is done, the tour goes on by itself."""

from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import streamlit as st

from attnviz.figures.heatmap import MEASURE_NAMES
from attnviz.figures.numbers import counted
from attnviz.figures.theme import THEMES
from ui.choice import state
from ui.choice.selection import Selection
from ui.components.tour import Stop, tour
from ui.rooms.explore.stage.screen import Screen
from ui.session import of_session
from ui.shell.first_look import PURPOSE
from ui.shell.lesson import all_lessons
from ui.shell.lesson_line import step_link
from ui.shell.view import View
from ui.words.findings import name

_STAYS_IN_SIGHT = """
.stApp [data-testid="stLayoutWrapper"]:has(> .st-key-controls), .st-key-controls { display: contents }
.st-key-lead_of_stage .stElementContainer:has(> .stHtml) { display: none }
@media (max-width: 640px) { .stApp [data-testid="stLayoutWrapper"]:has(> .st-key-finding) { position: static } }
"""
"""Makes the stop sticky on the page, not within the controls around it; this style itself takes no room; on a phone the stop takes the
finding's place."""


ATTENTION = (
    "To make out what a word means here, a language model looks at the other words, at some more than at others. "
    "How much it looks at each is its attention."
)
"""What attention is, for a visitor who has never heard of it."""


@dataclass(slots=True)
class Begun:
    """The visitor's current stop, and the selection when it began."""

    at: int = 0
    selection: Selection | None = None


def advance(screen: Screen) -> None:
    """Goes on to the next stop once this one's task is done; pages call it before their link is written."""
    here, now = of_session(Begun), screen.view.selection
    at, before = now.tour, here.selection
    if before is None or here.at != at:
        here.at, here.selection = at, now
    elif is_done(at, before, now):
        state.pin(tour=at + 1)
        here.at, here.selection = at + 1, now
    elif before.source != now.source:  # another text has other tokens
        here.selection = now


def is_done(at: int, before: Selection, now: Selection) -> bool:
    """Whether the stop's task was done since it began."""
    if at == 1:
        return (before.text, before.second) != (now.text, now.second)
    if at == 5:
        return now.filled == "map"
    if before.source != now.source:
        return False
    if at == 2:
        return before.query != now.query
    if at == 3:
        return before.place != now.place
    return at == 4 and now.key is not None and (before.query, before.key) != (now.query, now.key)


def guide(view: View) -> None:
    """The invitation, or the tour's current stop, with its target framed."""
    stops, at = stops_of(view), state.chosen().tour
    if at:
        # Narrower than the space between neighbours, so that the frame does not cut them.
        frame = f"outline: 2px solid {THEMES[view.theme].picked}; outline-offset: 1px; border-radius: 4px"
        # A style alone Streamlit keeps apart from the page, where it would outlast the tour.
        st.html(
            f"<i></i><style>.st-key-{(target := stops[at - 1].target)}, .st-key-stage *::part({target}) {{ {frame} }} {_STAYS_IN_SIGHT}</style>"
        )
    with st.container(key="tour_under_way") if at else nullcontext():
        tour(stops, at=at, purpose=PURPOSE, on_go=_go, theme=view.theme)
        if at == len(stops):
            lessons, _ = all_lessons()
            with st.container(key="tour_lesson"):
                step_link(lessons[0], 1, label="Begin the first lesson", icon=":material/school:")


def _go(number: int) -> None:
    """Goes to a stop, with its subject on the stage; 0 ends the tour."""
    state.change(tour=number, **({"filled": "all"} if 0 < number <= 5 else {}))


def stops_of(view: View) -> list[Stop]:
    """Sentence, token, head, cell, map; and what to do next."""
    trace = view.trace
    query = name(view.queries, view.query)
    n_heads = len(trace.heads(view.kind))
    is_decoder = view.kind == "decoder" and len(trace.kinds) == 1
    earlier = " A token looks only at itself and at earlier ones." if is_decoder else ""
    shown = "All heads together are shown now." if view.is_of_layer else "What you see is one of them."
    back = "" if view.selection.filled in ("all", "matrix") else "Select “Together” beside “Map”. "
    return [
        Stop(
            title="Sentence",
            text=f"{ATTENTION} Type a sentence of your own and press Enter, or select an example.",
            target="field_text",
        ),
        Stop(
            title="Token",
            text=f"The model reads your sentence as {counted(len(trace.tokens), 'token')}.{_added(view)} Select one"
            + ", to see where it looks."
            + earlier,
            target="band",
        ),
        Stop(
            title="Head",
            text=f"The model has {n_heads:,} heads, and each looks in its own way. {shown} Select another small picture.",
            target="heads",
        ),
        Stop(
            title="Matrix",
            text=f"{back}Here is one head for all tokens: rows are queries, which look; columns are keys, which are looked at. The stronger "
            f"a cell's colour, the larger {_cells(view)}. Select a cell.",
            target="matrix",
        ),
        Stop(
            title="Map",
            text=f"Open the map: select “Map”. Queries are circles, keys diamonds, and lines lead from {query} to its strongest keys.",
            target="fills",
        ),
        Stop(
            title="Check",
            text="The tick says whether these numbers match the model's own. “Watch it happen” shows how they come about; “Together”, "
            "beside “Map”, brings all parts back.",
            target="verdict",
        ),
    ]


def _added(view: View) -> str:
    """Names the tokens that were added to the visitor's text."""
    tokens = view.trace.tokens
    added = [
        *dict.fromkeys(
            label for label, is_added in zip(tokens.labels, tokens.is_added, strict=True) if is_added
        )
    ]
    listed = f"{', '.join(added[:-1])} and {added[-1]}" if len(added) > 1 else "".join(added)
    if not added:
        return ""
    are, they, stand = ("are", "they", "stand") if len(added) > 1 else ("is", "it", "stands")
    return f" {listed} {are} added by the model; {they} {stand} for no word."


def _cells(view: View) -> str:
    """What the cells hold, and the sum of a row."""
    measure = f"the {MEASURE_NAMES[view.measure]}"
    if view.measure == "norms" and not view.is_renormalised:
        return measure
    is_whole = view.is_renormalised or int(np.diff(view.keys.spans).sum()) == len(view.key_tokens)
    return f"{measure}; each row adds up to 100%{'' if is_whole else ' with what is hidden'}"
