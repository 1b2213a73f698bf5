"""The pages in the order of reading, each with its name and the question that it answers; and the menu of them all.

One concept: the list of pages. Menu, title of the tab, heading, address and the links from page to page follow from it.
"""

from dataclasses import dataclass
from typing import Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ui.choice.selection import Selection
from ui.session import Link, of_session

Group = Literal["Look", "Compare", "Maps", "Effects", "Learn", "Check"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page; its name in small letters, joined by "_", is its address."""

    name: str
    group: Group
    icon: str
    """Name of a Material symbol."""
    question: str
    """What the page answers."""

    @property
    def address(self) -> str:
        """Path in the address bar, without a slash; empty for the first page."""
        return "" if self.name == "Attention" else self.name.lower().replace(" ", "_").replace("-", "_")

    @property
    def title(self) -> str:
        """What the browser's tab says."""
        return f"{self.name} · attnviz"

    @property
    def file(self) -> str:
        """The script, as Streamlit's links name it."""
        return f"pages/{self.address}.py" if self.address else "attention.py"


PAGES = (
    Page(
        name="Attention",
        group="Look",
        icon="grid_on",
        question="Which tokens does each token attend to?",
    ),
    Page(
        name="All heads",
        group="Look",
        icon="apps",
        question="Which heads are there, and which are alike?",
    ),
    Page(
        name="Token flow",
        group="Look",
        icon="conversion_path",
        question="Where does the attention of one head, or of several, go?",
    ),
    Page(
        name="Generation",
        group="Look",
        icon="edit_note",
        question="What does a decoder read while it writes?",
    ),
    Page(
        name="Find a head",
        group="Compare",
        icon="search",
        question="Which head links these two tokens?",
    ),
    Page(
        name="Compare",
        group="Compare",
        icon="compare_arrows",
        question="What changes with another sentence, head, layer or model?",
    ),
    Page(
        name="Many sentences",
        group="Compare",
        icon="library_books",
        question="What does a head do over many sentences?",
    ),
    Page(
        name="Query-key map",
        group="Maps",
        icon="scatter_plot",
        question="Where do the queries and keys of a head lie?",
    ),
    Page(
        name="All maps",
        group="Maps",
        icon="view_module",
        question="Where do queries and keys lie in every head?",
    ),
    Page(
        name="Effects",
        group="Effects",
        icon="bolt",
        question="What if a head were off?",
    ),
    Page(
        name="Patching",
        group="Effects",
        icon="healing",
        question="Where does the difference between two sentences lie?",
    ),
    Page(
        name="Lens",
        group="Effects",
        icon="biotech",
        question="What would the model predict if it stopped after each layer?",
    ),
    Page(
        name="Inputs",
        group="Effects",
        icon="manage_search",
        question="Which tokens does the outcome depend on?",
    ),
    Page(
        name="Door experiment",
        group="Learn",
        icon="door_front",
        question="Why does one token attend to another?",
    ),
    Page(
        name="Step by step",
        group="Learn",
        icon="stairs",
        question="How does a sentence become a matrix, and the matrix an output?",
    ),
    Page(
        name="Scaling",
        group="Learn",
        icon="square_foot",
        question="Why are scores divided by the square root of d_k?",
    ),
    Page(
        name="Positions",
        group="Learn",
        icon="format_list_numbered",
        question="How does the model know the order of the words?",
    ),
    Page(
        name="Kinds of attention",
        group="Learn",
        icon="grid_guides",
        question="What if a token could see fewer others?",
    ),
    Page(
        name="Claims",
        group="Learn",
        icon="forum",
        question="Which common claims about attention hold for this sentence?",
    ),
    Page(
        name="Cost",
        group="Learn",
        icon="monitoring",
        question="What does attention cost as a text grows?",
    ),
    Page(
        name="History",
        group="Learn",
        icon="history",
        question="What came before scaled dot-product attention?",
    ),
    Page(
        name="Glossary",
        group="Learn",
        icon="dictionary",
        question="What do the words mean?",
    ),
    Page(
        name="Verification",
        group="Check",
        icon="fact_check",
        question="Are these numbers the model's own?",
    ),
)

TEACH = Page(
    name="Teach",
    group="Learn",
    icon="school",
    question="Which lessons are there, and what is there to say?",
)
"""For teachers: at the foot of the menu, since it shows no text of the reader's."""


def page_named(name: str) -> Page:
    """The page of this name; there is one, or StopIteration is raised."""
    return next(page for page in PAGES if page.name == name)


def page_after(page: Page) -> Page:
    """The page that a reader goes on to: the next one of the menu, and after the last one the first."""
    return PAGES[(PAGES.index(page) + 1) % len(PAGES)]


def link_to(
    name: str, *, label: str = "", icon: str = "", selection: Selection | None = None, help: str | None = None
) -> None:
    """A link to the page of this name.

    Args:
        label: the name if empty.
        icon: name of a Material symbol, the page's if empty.
        selection: what the page shows; None for what is chosen.
    """
    page = page_named(name)
    st.page_link(
        page.file,
        label=label or page.name,
        icon=f":material/{icon or page.icon}:",
        query_params=selection.to_params() if selection else of_session(Link).params or {},
        help=help,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where a page's heading is filled in later."""

    verdict: DeltaGenerator
    next: DeltaGenerator
    lead: DeltaGenerator


def heading(page: Page) -> Places:
    """Name and question of a page; the places for the verdict, for the page to go on to, and for what it says first."""
    with st.container(key="page_head", horizontal=True, vertical_alignment="center", gap="small"):
        st.title(page.name, anchor=False, width="content")
        st.markdown(page.question, width="stretch")
        # A container with a height is there before what it holds, so that nothing moves when that comes.
        verdict = st.container(key="verdict", width="content", height=40)
        following = st.container(key="next_page", width="content", height=24)
    lead = st.container(key="lead")
    return Places(verdict=verdict, next=following, lead=lead)


def next_page(page: Page) -> None:
    """The page to go on to, once the link to what is shown is known."""
    following = page_after(page)
    link_to(following.name, label=f"Next: {following.name}")


def menu() -> None:
    """All pages as links, in groups."""
    for group in dict.fromkeys(page.group for page in PAGES):
        st.markdown(f"**{group}**")
        for page in PAGES:
            if page.group == group:
                link_to(page.name)
    st.page_link(
        TEACH.file,
        label="For teachers",
        icon=f":material/{TEACH.icon}:",
        query_params=of_session(Link).params or {},
    )
