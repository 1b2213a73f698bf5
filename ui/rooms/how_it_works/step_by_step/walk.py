"""Shared by all steps of "Step by step": the selected pair, matrices as pictures, and what the page finds in its own results."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st
from jaxtyping import Float

from attnviz.figures.labels import axis_labels, isolated
from attnviz.figures.matrices import draw_matrix
from attnviz.figures.numbers import counted, share_text
from attnviz.records import Axis, Head
from ui.shell.chart import chart
from ui.shell.view import View
from ui.words.findings import power, strongest_key
from ui.words.glossary import linked
from ui.words.literal import literal

if TYPE_CHECKING:
    from attnviz.model.anatomy import LayerAnatomy

TABLE_NUMBER = st.column_config.NumberColumn(format="%.3g")
"""The closest to `number_text` for numbers that Streamlit formats."""


MOST_KEYS = 12
"""Most keys in the table of a row; for a longer text, the strongest."""


TOLERANCE = 1e-4
"""Largest difference from the model's numbers, as a share of the largest of them, that counts as a match: the verdict's
tolerance for hidden states."""


def key_of(view: View) -> int:
    """Position of the selected key, or of the strongest by weight in the whole row, whatever rows and columns are hidden."""
    whole = view.trace.pattern(*view.selection.place, view.kind)
    return strongest_key(whole, view.query) if view.selection.key is None else view.selection.key


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
        """A term in a sentence, linked to the glossary at its first use on the page; arguments as in `linked`."""
        if name in self.met:
            return shown or name[0].lower() + name[1:]
        self.met.add(name)
        return linked(name, shown)

    @property
    def place(self) -> Head:
        """The selected head."""
        return self.view.selection.place

    def of(self, name: str) -> Any:
        """What the trace has of the selected head under this name, such as its keys or its scores."""
        return getattr(self.view.trace, name)(*self.place, self.view.kind)

    def label(self, position: int, *, of: str) -> str:
        """A token as written in this page's sentences."""
        tokens = self.view.query_tokens if of == "query" else self.view.key_tokens
        return f"“{isolated(literal(tokens.labels[position]))}”"

    def labels(self, of: str) -> list[str]:
        """The row labels for the queries or the keys."""
        return axis_labels(Axis.of(self.view.query_tokens if of == "query" else self.view.key_tokens))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The page's own results compared with the model's numbers."""

    difference: float
    """Largest difference."""
    matches: bool


def comparison(numbers: np.ndarray, expected: np.ndarray) -> Comparison:
    """The largest difference, and whether it is within `TOLERANCE`; NaN does not match."""
    difference = float(np.abs(numbers.astype(np.float64) - expected).max(initial=0.0))
    largest = float(np.abs(expected).max(initial=0.0))
    return Comparison(difference=difference, matches=difference <= TOLERANCE * max(largest, 1e-12))


def compare(
    numbers: np.ndarray,
    expected: np.ndarray,
    what: str,
    *,
    to: str = "the trace",
    how: str = "Recomputed here",
) -> None:
    """Shows the largest difference between the page's own results and the numbers of ``to``."""
    facts = comparison(numbers, expected)
    st.markdown(
        f":material/calculate: {how}: {what}. Largest difference from {to}: {power(facts.difference)}."
        if facts.matches
        else f":red[:material/cancel: Does not match {to}:] {what}. Largest difference: {power(facts.difference)}."
    )


def picture(
    walk: Walk,
    key: str,
    cells: np.ndarray,
    title: str,
    rows: tuple[str, int | range | None],
    columns: tuple[str, int | range | None] = ("dimension", None),
    labels: list[str] | None = None,
) -> None:
    """One matrix of a step; arguments as in `draw_matrix`."""
    chart(
        draw_matrix(cells, title=title, rows=rows, columns=columns, labels=labels, theme=walk.view.theme),
        key=f"step_{key}",
        alt=f"Matrix {title}, {cells.shape[0]} by {cells.shape[1]}",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The keys of a row that are listed, in the order of the text."""

    positions: tuple[int, ...]
    n_others: int
    others_weight: float
    """Weight of the keys that are not listed."""
    are_strongest: bool
    """Whether these are the strongest keys; not if the selected key replaces a stronger one."""


def listed_keys(weights: Float[np.ndarray, " key"], key: int) -> Listed:
    """All keys of a short row, or the `MOST_KEYS` strongest, always with the selected one; earlier ones first if tied."""
    order = [int(key) for key in np.argsort(-weights, kind="stable")[:MOST_KEYS]]
    if key not in order:
        order[-1] = key
    others = np.delete(weights, order)
    return Listed(
        positions=tuple(sorted(order)),
        n_others=len(others),
        others_weight=float(others.sum(dtype=np.float64)),
        are_strongest=not others.size or bool(weights[order].min() >= others.max()),
    )


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
