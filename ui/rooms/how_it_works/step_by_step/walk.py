"""Shared by all steps of the page "Step by step": the selected pair, matrices as pictures, and comparisons."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from attnviz.figures.labels import axis_labels, isolated
from attnviz.figures.matrices import draw_matrix
from attnviz.figures.numbers import counted, share_text
from attnviz.records import Axis, Head
from ui.rooms.how_it_works.step_by_step.facts import Listed, comparison, listed_keys
from ui.shell.chart import chart
from ui.shell.view import View
from ui.words.findings import power
from ui.words.glossary import linked
from ui.words.literal import literal

if TYPE_CHECKING:
    from attnviz.model.anatomy import LayerAnatomy

TABLE_NUMBER = st.column_config.NumberColumn(format="%.3g")
"""The closest to `number_text` for numbers that Streamlit formats."""


@dataclass(frozen=True, kw_only=True)
class Walk:
    """The input of all steps: the selected pair in the selected head, and the layer's components."""

    view: View
    query: int
    key: int
    anatomy: "LayerAnatomy | None"
    """None if the model is not here, as for a bundle."""
    met: set[str] = field(default_factory=set)
    """Terms that the page has linked so far."""

    def term(self, name: str, shown: str = "") -> str:
        """A term in a sentence, linked to the glossary at its first use on the page.

        Args:
            shown: the link's text; if empty, the name as written within a sentence.
        """
        if name in self.met:
            return shown or name[0].lower() + name[1:]
        self.met.add(name)
        return linked(name, shown)

    @property
    def place(self) -> Head:
        """The selected head."""
        return self.view.selection.place

    def label(self, position: int, *, of: str) -> str:
        """A token as written in this page's sentences."""
        tokens = self.view.query_tokens if of == "query" else self.view.key_tokens
        return f"“{isolated(literal(tokens.labels[position]))}”"


def compare(
    numbers: np.ndarray,
    expected: np.ndarray,
    what: str,
    *,
    to: str = "the trace",
    how: str = "Recomputed here",
) -> None:
    """Shows the largest difference between the page's own results and the expected numbers.

    Args:
        to: source of ``expected``; the trace, unless a module of the model was called.
        how: source of ``numbers``.
    """
    facts = comparison(numbers, expected)
    st.markdown(
        f":material/calculate: {how}: {what}. Largest difference from {to}: {power(facts.difference)}."
        if facts.matches
        else f":red[:material/cancel: Does not match {to}:] {what}. Largest difference: {power(facts.difference)}.",
    )


def picture(walk: Walk, key: str, cells: np.ndarray, **named: object) -> None:
    """One matrix of a step."""
    chart(
        draw_matrix(cells, theme=walk.view.theme, **named),  # type: ignore[arg-type]
        key=f"step_{key}",
        alt=f"Matrix {named['title']}, {cells.shape[0]} by {cells.shape[1]}",
    )


def goes(into: str, out: str) -> None:
    """Shows the input and output of a step."""
    st.markdown(f"**In:** {into}  \n**Out:** {out}")


def source(*papers: str) -> None:
    """Shows the sources of a step in one grey line."""
    st.caption(f"{'; '.join(papers)}.")


def size(matrix: np.ndarray) -> str:
    """Rows and columns of a matrix, "11 × 384"."""
    return " × ".join(f"{size:,}" for size in matrix.shape)


def anatomy(walk: Walk) -> "LayerAnatomy | None":
    """The layer's components; if they are not here, shows a message."""
    if walk.anatomy is None:
        st.info(
            "A bundle holds queries, keys and values, but not the model that made them; this step needs the model."
        )
    return walk.anatomy


def labels(walk: Walk, of: str) -> list[str]:
    """The row labels for the queries or the keys."""
    return axis_labels(Axis.of(walk.view.query_tokens if of == "query" else walk.view.key_tokens))


def shown_keys(walk: Walk, weights: np.ndarray) -> np.ndarray:
    """All keys in the order of the text, or if there are many the strongest, always with the selected one."""
    return np.array(listed_keys(weights, walk.key).positions)


def listed_note(listed: Listed) -> str:
    """Which keys of a row are listed, and the others' weight; empty if all are listed."""
    if not listed.n_others:
        return ""
    n_listed = len(listed.positions)
    which = (
        f"The {n_listed} strongest keys"
        if listed.are_strongest
        else f"The {n_listed - 1} strongest keys and the selected one"
    )
    return f"{which}; what is not listed, {counted(listed.n_others, 'key')}, has {share_text(listed.others_weight)} of the weight."
