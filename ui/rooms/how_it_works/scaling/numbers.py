"""Formats the page's numbers."""

import numpy as np
import streamlit as st

from ui.rooms.how_it_works.scaling.facts import ratio_of
from ui.words.findings import power


def norm_text(norm: float | np.ndarray) -> str:
    """A norm as text; in powers of ten if it would round to 0."""
    number = float(norm)
    return f"{number:.3f}" if number == 0 or number >= 0.01 else power(number)


def ratio(first: float, second: float) -> str:
    """A second norm compared with a first, in words."""
    facts = ratio_of(first, second)
    if facts is None:
        return "which leaves nothing to compare"
    if facts.is_alike:
        return "about the same"
    times = facts.times
    number = f"{times:.3g}" if times < 999.5 else f"{times:,.0f}" if times < 1e6 else power(times)
    return f"{number} times {'less' if facts.is_less else 'more'}"


def formulas(*written: str) -> None:
    """Formulas side by side."""
    for column, formula in zip(st.columns(len(written), vertical_alignment="center"), written, strict=True):
        column.latex(formula)
