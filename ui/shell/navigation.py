"""The menu, a part's heading and the row of a room's parts, and links between parts; all from the list of rooms."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import streamlit as st

from ui.choice.fields import in_link
from ui.choice.selection import Selection
from ui.part import Part, part_named, room_of, rooms
from ui.session import of_session

_MANY_PARTS = 6
"""From so many parts in its row, a heading has no room for the question there (heading.css)."""


@dataclass(slots=True)
class Left:
    """The page on which a visitor left each room."""

    pages: dict[str, str] = field(default_factory=dict)
    """Name of the page's first part, by the room's name."""


def link_to(
    name: str,
    *,
    label: str = "",
    icon: str = "",
    selection: Selection | None = None,
    only: Mapping[str, object] | None = None,
    help: str | None = None,
) -> None:
    """A link to the part of this name.

    Args:
        label: the name if empty.
        icon: name of a Material symbol, the room's if empty.
        selection: what the part shows; None for what is selected when the link is used
            (`ui.components.page`).
        only: fields in which what is selected then is changed.
    """
    part = part_named(name)
    icon = f":material/{icon or room_of(part).icon}:"
    params = in_link(only) if only else {} if selection is None else selection.to_params()
    _link(part, params, label=label or part.name, icon=icon, help=help)


def _link(
    part: Part,
    params: Mapping[str, str] | None = None,
    *,
    label: str,
    icon: str | None = None,
    help: str | None = None,
) -> None:
    st.page_link(part.file, label=label, icon=icon, query_params=params or {}, help=help)


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The places of a heading that are filled in later."""

    verdict: AbstractContextManager[object]
    """Says whether the page's numbers are the model's."""
    parts: AbstractContextManager[object]
    """The row of the room's parts."""
    lead: AbstractContextManager[object]
    """Below the heading, above the controls: for the page's lead."""


def heading(page: Part, *, in_lesson: bool = False) -> Places:
    """Draws the room's name and the part's question; returns the places for the verdict, the row of parts and the lead.

    Args:
        in_lesson: whether a lesson leads, in place of the stage's invitation to its tour.
    """
    with st.container(key=_head_key(page), horizontal=True, vertical_alignment="center", gap="small"):
        st.title(room_of(page).name, anchor=False, width="content")
        st.markdown(page.question, width="stretch")
        # A container with a height takes up its space before its content arrives, so nothing moves then.
        verdict = st.container(key="verdict", width="content", height=40)
        parts = st.container(key="parts", horizontal=True, gap=None, height=32, border=False)
    lead = st.container(key="lead_of_stage" if page.is_stage and not in_lesson else "lead")
    return Places(verdict=verdict, parts=parts, lead=lead)


def _head_key(page: Part) -> str:
    """The key by which heading.css distinguishes headings.

    Its rules could test for other elements on the page (`:has`), but then Chromium recomputes the style of the whole page
    whenever anything is drawn.
    """
    key = "page_head"
    if "sentence" in page.asks:
        key += "_with_sentence"
    if page.is_stage:
        key += "_of_stage"
    elif len(room_of(page).parts) >= _MANY_PARTS:
        key += "_many_parts"
    return key


def menu(page: Part) -> None:
    """All rooms, each linked to the page where it was left."""
    left = of_session(Left).pages
    left[room_of(page).name] = page.name
    with st.container(key="menu", gap=None):
        for room in rooms():
            if room.in_menu:
                part = part_named(left.get(room.name, room.parts[0].name))
                _link(part, label=room.name, icon=f":material/{room.icon}:", help=room.asks)


def parts(here: Part, row: AbstractContextManager[object]) -> None:
    """The room's parts in their row."""
    room = room_of(here)
    with row:
        for part in room.parts if len(room.parts) > 1 else ():
            _link(part, label=part.name, help=part.question)
