"""What all steps of the page "Step by step" share: the selected pair, the matrices as pictures, and comparisons."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from attnviz.figures.labels import axis_labels, isolated
from attnviz.figures.matrices import draw_matrix
from attnviz.figures.numbers import share_text
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
"""The form of `number_text` where Streamlit writes the number."""


@dataclass(frozen=True, kw_only=True)
class Walk:
    """What all steps look at: the selected pair in the selected head, and what the layer is made of."""

    view: View
    query: int
    key: int
    anatomy: "LayerAnatomy | None"
    """None where the model is not here, as for a bundle."""
    met: set[str] = field(default_factory=set)
    """Terms that the page has linked so far."""

    def term(self, name: str, shown: str = "") -> str:
        """A term in a sentence, linked to the glossary where the page has it for the first time.

        Args:
            shown: the words of the page; the name, as it stands in a sentence, if empty.
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
        """A token as it is written in a sentence on this page."""
        tokens = (
            self.view.trace.query_tokens(self.view.kind)
            if of == "query"
            else self.view.trace.key_tokens(self.view.kind)
        )
        return f"“{isolated(literal(tokens.labels[position]))}”"


def compare(
    numbers: np.ndarray,
    expected: np.ndarray,
    what: str,
    *,
    to: str = "the trace",
    how: str = "Recomputed here",
) -> None:
    """Says how far what was worked out on a page is from what stands at that very place.

    Args:
        to: what it is compared with; the trace, unless a module of the model was asked.
        how: where ``found`` is from.
    """
    facts = comparison(numbers, expected)
    st.markdown(
        f":material/calculate: {how}: {what}. Largest difference from {to}: {power(facts.difference)}."
        if facts.matches
        else f":red[:material/cancel: Does not match {to}:] {what}. Largest difference: {power(facts.difference)}.",
        unsafe_allow_html=True,
    )


def picture(walk: Walk, key: str, cells: np.ndarray, **named: object) -> None:
    """One matrix of a step."""
    chart(
        draw_matrix(cells, theme=walk.view.theme, **named),  # type: ignore[arg-type]
        key=f"step_{key}",
        alt=f"Matrix {named['title']}, {cells.shape[0]} by {cells.shape[1]}",
    )


def goes(into: str, out: str) -> None:
    """Says in one line what goes into a step and what comes out of it."""
    st.markdown(f"**In:** {into}  \n**Out:** {out}")


def source(*papers: str) -> None:
    """Says in one grey line where a step is from."""
    st.caption(f"{'; '.join(papers)}.")


def size(matrix: np.ndarray) -> str:
    """Rows and columns of a matrix, "11 × 384"."""
    return " × ".join(f"{size:,}" for size in matrix.shape)


def anatomy(walk: Walk) -> "LayerAnatomy | None":
    """What the layer is made of; where that is not here, a message says so."""
    if walk.anatomy is None:
        st.info(
            "A bundle holds queries, keys and values, but not the model that made them; this step needs the model."
        )
    return walk.anatomy


def labels(walk: Walk, of: str) -> list[str]:
    """The queries or the keys as rows are labelled."""
    trace, kind = walk.view.trace, walk.view.kind
    tokens = trace.query_tokens(kind) if of == "query" else trace.key_tokens(kind)
    return axis_labels(Axis.of(tokens))


def shown_keys(walk: Walk, weights: np.ndarray) -> np.ndarray:
    """All keys in the order of the text, or the strongest of many, the selected one always among them."""
    return np.array(listed_keys(weights, walk.key).positions)


def listed_note(listed: Listed) -> str:
    """Which keys of a row are listed, and what the others have; empty where all are."""
    if not listed.n_others:
        return ""
    n_listed = len(listed.positions)
    which = (
        f"The {n_listed} strongest keys"
        if listed.are_strongest
        else f"The {n_listed - 1} strongest keys and the selected one"
    )
    return f"{which}; the other {listed.n_others:,} share {share_text(listed.others_weight)} of the weight."
