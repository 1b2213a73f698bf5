"""The rooms in reading order, each with its parts and the question that each part answers; and the menu.

The menu, tab titles, headings, addresses and the links between parts follow from it.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal

import streamlit as st

from ui.choice.fields import in_link
from ui.choice.selection import Selection
from ui.session import of_session

Asked = Literal["sentence", "head", "rows"]
"""The controls above a part: sentence (with the model), layer and head, and which rows and columns are shown."""
Predicts = Literal["", "tokens", "writes"]
"""What of a model a part is about: nothing that it predicts, the tokens that it predicts, or those that it writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a room, opened by a link in the row below the room's heading."""

    name: str
    address: str
    """Path in the address bar, without a slash; empty for the first screen."""
    question: str
    """The question that it answers."""
    asks: tuple[Asked, ...] = ("sentence", "head")
    """The controls that affect it."""
    is_stage: bool = False
    """Whether it is the first screen."""
    predicts: Predicts = ""
    """A visitor whose model lacks that begins with the bundled language model."""

    @property
    def file(self) -> str:
        """The script's path, as Streamlit's links need it."""
        return f"pages/{self.address}.py" if self.address else "attention.py"

    @property
    def place(self) -> str:
        """Part and room, "Scaling · How it works"; the first screen is its room."""
        room = room_of(self).name
        return room if self.is_stage or self.name == room else f"{self.name} · {room}"

    @property
    def title(self) -> str:
        """Title of the browser tab."""
        return f"{self.place} · attnviz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """One entry of the menu."""

    name: str
    icon: str
    """Name of a Material symbol."""
    question: str
    """The question that brings a visitor here."""
    parts: tuple[Part, ...]
    """The menu opens the first one on a first visit."""


def _alone(name: str, icon: str, question: str, address: str, *asks: Asked, predicts: Predicts = "") -> Room:
    """A room of one part."""
    part = Part(name=name, address=address, question=question, asks=asks, predicts=predicts)
    return Room(name=name, icon=icon, question=question, parts=(part,))


ROOMS = (
    Room(
        name="Explore",
        icon="grid_on",
        question="Where does each token look?",
        parts=(
            Part(
                name="Together",
                address="",
                question="Where does each token look?",
                asks=("sentence", "head", "rows"),
                is_stage=True,
            ),
            Part(
                name="Several heads",
                address="token_flow",
                question="Where does the attention of one head, or of several, go?",
                asks=("sentence", "head", "rows"),
            ),
            Part(
                name="Other maps",
                address="query_key_map",
                question="Where do the queries and keys of a head lie?",
                asks=("sentence", "head", "rows"),
            ),
        ),
    ),
    Room(
        name="All heads",
        icon="apps",
        question="Which heads are there?",
        parts=(
            Part(
                name="Pictures and numbers",
                address="all_heads",
                question="Which heads are there, and which are alike?",
                asks=("sentence", "head", "rows"),
            ),
            Part(
                name="Maps",
                address="all_maps",
                question="Where do queries and keys lie in every head?",
            ),
            Part(
                name="Find a head",
                address="find_a_head",
                question="Which head links these two tokens?",
                asks=("sentence", "head", "rows"),
            ),
        ),
    ),
    Room(
        name="How it works",
        icon="stairs",
        question="How does a sentence become a matrix?",
        parts=(
            Part(
                name="Step by step",
                address="step_by_step",
                question="How does a sentence become a matrix, and the matrix an output?",
            ),
            Part(
                name="Scaling",
                address="scaling",
                question="Why are scores divided by the square root of d_k?",
            ),
            Part(
                name="Positions",
                address="positions",
                question="How does the model know the order of the words?",
                asks=("sentence",),
            ),
            Part(
                name="Kinds of attention",
                address="kinds_of_attention",
                question="What if a token could see fewer others?",
            ),
            Part(
                name="Cost",
                address="cost",
                question="What does attention cost as a text grows?",
                asks=("sentence",),
            ),
            Part(
                name="History",
                address="history",
                question="What came before scaled dot-product attention?",
            ),
        ),
    ),
    _alone(
        "Door experiment",
        "door_front",
        "Why does one token attend to another?",
        "door_experiment",
        "sentence",
        "head",
        "rows",
    ),
    _alone(
        "Myths",
        "forum",
        "Which common claims about attention hold for this sentence?",
        "claims",
        "sentence",
        "head",
    ),
    Room(
        name="Compare",
        icon="compare_arrows",
        question="What changes with another sentence, head, layer or model?",
        parts=(
            Part(
                name="Side by side",
                address="compare",
                question="What changes with another sentence, head, layer or model?",
                asks=("sentence", "head", "rows"),
            ),
            Part(
                name="Patching",
                address="patching",
                question="Where does the difference between two sentences lie?",
            ),
        ),
    ),
    Room(
        name="Cause",
        icon="bolt",
        question="What would change without it?",
        parts=(
            Part(name="Heads off", address="effects", question="What if a head were off?"),
            Part(
                name="Inputs",
                address="inputs",
                question="Which tokens does the outcome depend on?",
                asks=("sentence",),
            ),
            Part(
                name="Lens",
                address="lens",
                question="What would the model predict if it stopped after each layer?",
                predicts="tokens",
            ),
        ),
    ),
    _alone(
        "Generate",
        "edit_note",
        "What does a decoder read while it writes?",
        "generation",
        "sentence",
        "head",
        predicts="writes",
    ),
    Room(
        name="Many texts",
        icon="library_books",
        question="What does a head do over many texts?",
        parts=(
            Part(
                name="Profiles",
                address="profiles",
                question="What does each head do over many texts?",
                asks=("sentence", "head"),
            ),
            Part(
                name="Find tokens",
                address="find_tokens",
                question="Which tokens in other texts are most like the selected one?",
            ),
            Part(
                name="Joint map",
                address="many_sentences",
                question="Where do the queries and keys of many sentences lie?",
                asks=("head", "rows"),
            ),
        ),
    ),
)
"""The entries of the menu."""
VERIFICATION = _alone(
    "Verification",
    "fact_check",
    "Are these numbers the model's own?",
    "verification",
    "sentence",
    "head",
)
"""Opens behind the verdict."""
GLOSSARY = _alone("Glossary", "dictionary", "What do the words mean?", "glossary")
"""Opens from the terms, and from the search at the foot of the menu."""
_ALL = (*ROOMS, VERIFICATION, GLOSSARY)
PAGES = tuple(part for room in _ALL for part in room.parts)
"""All parts, a script each."""

TEACHING = _alone("For teachers", "school", "Which lessons are there, and what is there to say?", "teach")
"""Below the menu, since it shows no text of the visitor's."""
TEACH = TEACHING.parts[0]
_MANY_PARTS = 6
"""From so many parts in its row, a heading has no room for the question there (heading.css)."""


def part_named(name: str) -> Part:
    """The part of this name; raises StopIteration if there is none."""
    return next(part for room in _ALL for part in room.parts if part.name == name)


def room_of(part: Part) -> Room:
    """The room that a part belongs to."""
    return next(room for room in (*_ALL, TEACHING) if part in room.parts)


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
        for room in ROOMS:
            part = part_named(left.get(room.name, room.parts[0].name))
            _link(part, label=room.name, icon=f":material/{room.icon}:", help=room.question)
        _link(TEACH, label=TEACHING.name, icon=f":material/{TEACHING.icon}:", help=TEACHING.question)


def parts(here: Part, row: AbstractContextManager[object]) -> None:
    """The room's parts in their row."""
    room = room_of(here)
    with row:
        for part in room.parts if len(room.parts) > 1 else ():
            _link(part, label=part.name, help=part.question)
