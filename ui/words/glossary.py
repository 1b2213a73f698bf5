"""The field's terms: each with its meaning, formula, source and the page that shows it.

The terms are in glossary.toml.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

PAGE = "pages/glossary.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One entry."""

    name: str
    means: str
    """One to three sentences."""
    formula: str = ""
    """LaTeX; empty if words are enough."""
    source: str = ""
    """Authors, year and arXiv number."""
    page: str = ""
    """The page that shows it with the reader's own numbers."""

    @property
    def anchor(self) -> str:
        """The term's anchor on the page: "causal-mask"."""
        return self.name.lower().replace(" ", "-").replace("_", "-")


with Path(__file__).with_suffix(".toml").open("rb") as _file:
    GROUPS = {
        group["name"]: tuple(Term(**term) for term in group["terms"])
        for group in tomllib.load(_file)["groups"]
    }
TERMS = {term.name: term for terms in GROUPS.values() for term in terms}
"""All terms by their names."""


def matching(searched: str) -> list[Term]:
    """The terms with all these words in their name or meaning; those with all of them in the name come first."""
    words = searched.casefold().split()

    def has(text: str) -> bool:
        return all(word in text.casefold() for word in words)

    terms = [term for term in TERMS.values() if has(f"{term.name} {term.means}")]
    return sorted(terms, key=lambda term: not has(term.name))


def linked(name: str, shown: str = "") -> str:
    """A Markdown link from a word on a page to its term, opened in a new tab.

    `ui.components.page` shows the link's title, and adds the selection to the link.

    Args:
        name: of the term.
        shown: the link's text; if empty, the name as written within a sentence.
    """
    term = TERMS[name]
    in_sentence = name[0].lower() + name[1:] if name[1].islower() else name
    return f'[{shown or in_sentence}](glossary#{term.anchor} "{term.name}: {term.means}")'


def terms(*names: str) -> None:
    """A line of links to the terms of a page that has no sentence to link them in."""
    st.caption(f"What the words mean: {', '.join(linked(name) for name in names)}.")
