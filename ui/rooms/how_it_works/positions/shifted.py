"""A shift of positions as one matrix."""

import numpy as np
import streamlit as st

from attnviz.figures.matrices import draw_matrix
from attnviz.figures.numbers import counted
from attnviz.maths.positions import shift
from ui.choice import widgets
from ui.rooms.how_it_works.step_by_step.walk import compare
from ui.shell.chart import chart
from ui.shell.view import View

CORNER = 12  # rows and columns of a shift's matrix that are drawn


def shifted(view: View, sines: np.ndarray) -> None:
    """One matrix that shifts every position by a fixed offset."""
    st.subheader("A shift is a rotation")
    k = min(view.selection.shift, len(sines) - 1)
    with st.columns(3)[0]:
        st.number_input(**widgets.field("shift", view.selection.but(shift=k), max_value=len(sines) - 1))
    st.markdown(
        f"To shift by {counted(k, 'position')}, each sine and its cosine are rotated by the angle $k\\,\\omega_i$: one "
        "matrix does it, the same for every position. The authors expected this to make it easy to learn to "
        "attend a fixed distance away (Vaswani et al. 2017, arXiv:1706.03762, section 3.5)."
    )
    turn = shift(k, sines.shape[1])
    formula, matrix = st.columns([3, 2], vertical_alignment="center", gap="medium")
    formula.latex(
        r"\begin{pmatrix} PE_{(p+k,\,2i)} \\ PE_{(p+k,\,2i+1)} \end{pmatrix} = "
        r"\begin{pmatrix} \cos k\omega_i & \sin k\omega_i \\ -\sin k\omega_i & \cos k\omega_i \end{pmatrix} "
        r"\begin{pmatrix} PE_{(p,\,2i)} \\ PE_{(p,\,2i+1)} \end{pmatrix}"
    )
    with matrix:
        chart(
            draw_matrix(
                turn.T[:CORNER, :CORNER],
                title="Corner of the matrix",
                rows=("dimension", None),
                columns=("dimension", None),
                theme=view.theme,
            ),
            key="shift_matrix",
            alt=f"Corner of the matrix that shifts a position by {k}: blocks of two by two on the diagonal, else 0",
        )
    compare(
        sines[:-k] @ turn,
        sines[k:],
        f"{len(sines) - k:,} positions times this matrix, {turn.shape[0]} × {turn.shape[1]}",
        to=f"the positions {k} later",
    )
