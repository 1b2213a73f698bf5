"""A row's softmax without subtracting the largest score first, in float32 and float16."""

from collections.abc import Mapping

import numpy as np
import streamlit as st

from attnviz.lessons.scaling import Products, exponentials, largest_argument
from ui.rooms.how_it_works.scaling.facts import breaks
from ui.shell.table import whole_rows
from ui.words.findings import power

TYPES: dict[str, type[np.floating]] = {"float32": np.float32, "float16": np.float16}


def overflow(products: Products, query: int, token: str, scales: Mapping[str, float]) -> None:
    """The same row's softmax without subtracting the largest score, in float32 and float16."""
    st.subheader("Too large for floating point")
    limits = {name: largest_argument(dtype) for name, dtype in TYPES.items()}
    st.markdown(
        "Exponentials grow fast, and a machine has a largest number: in float32 it is 3.4 × 10³⁸, which is "
        f"$e^{{{limits['float32']:.2f}}}$, in float16 65,504, which is $e^{{{limits['float16']:.2f}}}$. What is larger "
        "becomes inf, infinity; and inf / inf is nan, not a number. So the row’s largest score is subtracted first, "
        "which cancels in the division (Blanchard et al. 2021, arXiv:1909.03469)."
    )
    st.latex(r"w_i = \frac{e^{s_i}}{\sum_j e^{s_j}} = \frac{e^{s_i - \max s}}{\sum_j e^{s_j - \max s}}")
    rows, broken = [], []
    for name, scale in scales.items():
        scores = products.row(query, scale)
        best = int(scores.argmax())
        for kind, dtype in TYPES.items():
            plain, safe = (exponentials(scores, dtype, subtract=subtract) for subtract in (False, True))
            rows.append(
                {
                    "scale": f"{scale:.3g}, {name.lower()}",
                    "numbers": kind,
                    "largest score": written(plain.scores[best]),
                    "its exponential": written(plain.exponentials[best]),
                    "sum of all": written(plain.total),
                    "its weight": written(plain.weights[best]),
                    "sum, largest subtracted": written(safe.total),
                    "weight, largest subtracted": written(safe.weights[best]),
                }
            )
            if breaks(scores, dtype):
                broken.append(f"{kind} under scale {scale:.3g}")
    st.dataframe(rows, hide_index=True, height=whole_rows(len(rows)), key="overflow_table")
    ends = [
        f"for {kind} {_from_scale(products.scale_reaching(query, limit))}" for kind, limit in limits.items()
    ]
    st.markdown(
        f"The row of {token}, computed in these types. "
        + (
            f"Without the subtraction it breaks in {', '.join(broken)}. "
            if broken
            else "Nothing breaks here. "
        )
        + f"Its largest exponential is too large {' and '.join(ends)}."
    )


def _from_scale(scale: float | None) -> str:
    """The scale from which the row's largest score exceeds a limit, in words."""
    return "under no scale" if scale is None else f"from scale {scale:.3g} on"


def written(number: np.floating) -> str:
    """A floating-point number: inf and nan as such, very large and very small ones in powers of ten."""
    value = float(number)
    if not np.isfinite(value) or value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:,.4f}" if np.isfinite(value) else str(value)
    return power(value)
