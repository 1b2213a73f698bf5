"""Labels of tokens and words: each with its position, short enough for its place, and taken literally by plotly."""

import unicodedata
from html import escape
from typing import SupportsIndex

import numpy as np
from jaxtyping import Int

from attnviz.records import Axis, Tokens, visible

LONGEST_LABEL = 14
"""Most characters of a label on an axis; longer labels would take the room of the cells."""
LONGEST_HOVER = 40
"""Most characters of a label in hover text; longer ones would not fit on a phone's screen."""


def literal(text: str) -> str:
    """Text escaped for plotly, which would interpret tags and entities, and `$...$` as LaTeX; all of it visible.

    A picture with a character that XML does not allow could not be exported.
    """
    # Nearly every label is printable, and a drawing has hundreds.
    shown = text if text.isprintable() else visible(text)
    return escape(shown, quote=False).replace("$", "&#36;")


def isolated(text: str) -> str:
    """Text in isolates, so that right-to-left text does not change the order of the text around it.

    Between FSI and PDI: Unicode Standard Annex 9, section 2.4.
    """
    runs_left = not text.isascii() and any(
        unicodedata.bidirectional(character) in ("R", "AL", "AN") for character in text
    )
    return f"\u2068{text}\u2069" if runs_left else text


def label_at(label: str, position: SupportsIndex) -> str:
    """A token or word with its position, "door·5", so that equal tokens have different labels."""
    return f"{isolated(label)}·{position}"


def labels_at(axis: Axis) -> list[str]:
    """The entries of an axis with the positions of their first tokens, "door·5"; not safe for plotly."""
    return [label_at(*label) for label in zip(axis.labels, axis.positions, strict=True)]


def token_labels(tokens: Tokens, positions: Int[np.ndarray, " token"]) -> list[str]:
    """Tokens with their positions, "door·5", so that equal tokens have different labels; safe for plotly."""
    return [label_at(literal(tokens.labels[position]), position) for position in positions]


def axis_labels(axis: Axis, most: int = LONGEST_LABEL) -> list[str]:
    """The entries of an axis, long ones shortened, each with the position of its first token; safe for plotly."""
    pairs = zip(axis.labels, axis.positions, strict=True)
    return [label_at(literal(shortened(label, most)), position) for label, position in pairs]


def hover_labels(axis: Axis) -> list[str]:
    """The same labels for hover text, where there is room for more."""
    return axis_labels(axis, LONGEST_HOVER)


def aliases(values: list[str], written: list[str]) -> dict[str, str]:
    """Tick labels of an axis by its values, where the two differ.

    Hover text has the values themselves as ``%{x:c}``: plotly replaces a plain ``%{x}`` with the tick label.
    """
    return {value: text for value, text in zip(values, written, strict=True) if value != text}


def shortened(text: str, most: int = LONGEST_LABEL) -> str:
    """Text of at most ``most`` characters: longer text loses its middle, "antidises…logy", or its end where there is little room."""
    end = 4 if most > 8 else 0
    return text if len(text) <= most else f"{text[: most - 1 - end]}…{text[len(text) - end :]}"
