"""Visitors' texts shown literally where Streamlit reads Markdown."""

import re

from attnviz.figures.labels import isolated, shortened

_SPACES = re.compile(r"[^\S\N{NO-BREAK SPACE}]+")
_MEANS_SOMETHING = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:&\"'^=%@/])")


def literal(text: str) -> str:
    """Markdown that shows this text and nothing else: no formatting, link, formula, icon or tag."""
    return _MEANS_SOMETHING.sub(r"\\\1", _SPACES.sub(" ", text).strip())


LONGEST_QUOTED = 72
"""Most characters of a sentence quoted within another."""


def quoted(text: str) -> str:
    """The text in quotation marks, shown literally; a long text loses its middle."""
    return f"“{isolated(literal(shortened(text, LONGEST_QUOTED)))}”"
