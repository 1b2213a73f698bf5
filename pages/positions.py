"""How does the model know the order of the words? Its position vectors, the paper's, and the words shuffled."""

from dataclasses import replace

import numpy as np
import streamlit as st
from sklearn.metrics.pairwise import cosine_similarity

from attnviz.figures.effect import draw_effect
from attnviz.figures.matrices import draw_matrix
from attnviz.figures.positions import draw_likeness, draw_path, draw_table, spaced, tone_limit
from attnviz.figures.theme import isolated
from attnviz.maps.layouts import LARGEST_SEED, principal_components
from attnviz.maths.positions import shift, sinusoidal_order, sinusoidal_positions
from attnviz.records import Axis
from ui.choice import widgets
from ui.export.take import take
from ui.page import errors, verdict
from ui.page.frame import frame
from ui.page.view import View
from ui.sections.steps.walk import compare
from ui.words.findings import power
from ui.words.glossary import linked
from ui.words.literal import literal
from ui.work import cache

CONFIG = {"displayModeBar": False}
CORNER = 12  # rows and columns of the matrix of a shift that are drawn


def vectors(view: View) -> None:
    """The model's table, if it has one, beside the paper's."""
    table = None if view.selection.bundle else cache.learned_positions(view.selection.model)
    n_used = len(view.trace.tokens)
    d_model = view.trace.last_hidden_state.shape[1] if table is None else table.shape[1]
    n_position = 512 if table is None else len(table)
    sines = sinusoidal_positions(n_position, d_model + d_model % 2)  # a cosine for every sine
    st.markdown(
        f"Attention itself has no order: a {linked('Token')}'s {linked('Output')} is a weighted sum over the tokens that "
        "it sees, itself among them, whatever their order. So many families add a "
        f"{linked('Position vector', 'vector for each position')} to the token's own before the first "
        f"{linked('Layer')}. BERT has learned its vectors (Devlin et al. 2018, arXiv:1810.04805); the paper of 2017 "
        "took sines and cosines (Vaswani et al. 2017, arXiv:1706.03762, section 3.5). Others rotate queries and keys by "
        "their position (Su et al. 2021, arXiv:2104.09864) or add a bias for the distance to the scores (Raffel et al. "
        "2019, arXiv:1910.10683). Under a causal mask order shows even without any of these."
    )
    st.latex(
        r"PE_{(p,\,2i)} = \sin\!\left(\frac{p}{10000^{2i/d}}\right), \quad "
        r"PE_{(p,\,2i+1)} = \cos\!\left(\frac{p}{10000^{2i/d}}\right)"
    )
    fixed = None if table is None else sinusoidal_order(table)
    is_learned = table is not None and fixed is None
    of_model = (
        "Learned by this model" if is_learned else "This model’s, not learned" if fixed else "This model’s"
    )
    columns = st.columns(2, gap="medium")
    for column, title, own, key in (
        (columns[0], of_model, table, "learned"),
        (columns[1], "Sines and cosines", sines, "sines"),
    ):
        with column:
            st.markdown(f"**{title}**")
            if own is None:
                st.info(
                    "A bundle does not hold the model's tables."
                    if view.selection.bundle
                    else "This family adds no position vectors: positions come in where queries meet keys, by rotating "
                    "them or as a bias of the scores."
                )
                continue
            if own is table and fixed:
                st.caption(
                    f"The sines and cosines of the paper{', all sines first' * (fixed == 'sines first')}."
                )
            lengths = np.linalg.norm(own, axis=1)
            st.caption(
                f"{own.shape[0]:,} × {own.shape[1]}; lengths {lengths.min():.2f} to {lengths.max():.2f}. Colours "
                f"end at ±{tone_limit(own):.2g}, which 99 of 100 numbers stay within; the largest is {np.abs(own).max():.2g}."
            )
            st.plotly_chart(
                draw_table(own, theme=view.theme),
                theme=None,
                key=f"{key}_table",
                config=CONFIG,
                alt=f"{title}: the vectors",
            )
            st.plotly_chart(
                draw_likeness(own, n_used=n_used, theme=view.theme),
                theme=None,
                key=f"{key}_likeness",
                config=CONFIG,
                alt=f"{title}: cosine similarity of any two positions",
            )
            st.caption(
                f"{linked('Cosine similarity', 'Cosine similarity') if own is table else 'Cosine similarity'}. Position 0 and 1: {cosine(own, 0, 1):.3f}; 0 and 10: {cosine(own, 0, 10):.3f}; "
                f"20 and 30: {cosine(own, 20, 30):.3f}. The frame holds the {n_used} positions of this text."
                + (
                    f" Of {len(own)} positions {len(spaced(len(own)))} are drawn."
                    if len(own) > len(spaced(len(own)))
                    else ""
                )
            )
            st.plotly_chart(
                draw_path(principal_components(own), n_used=n_used, theme=view.theme),
                theme=None,
                key=f"{key}_path",
                config=CONFIG,
                alt=f"{title}: positions in the plane of their two principal components",
            )
            st.caption("The same vectors by their first two principal components, joined in their order.")
    distances(sines, table if is_learned else None)
    shifted(view, sines)


def distances(sines: np.ndarray, table: np.ndarray | None) -> None:
    """What the dot product of two positions depends on."""
    st.subheader("Only the distance counts")
    st.latex(r"PE_p \cdot PE_{p+k} = \sum_i \cos(k\,\omega_i), \qquad \omega_i = \frac{1}{10000^{2i/d}}")
    steps = [one for one in (1, 5, 20) if one < len(sines)]
    products = sines.astype(np.float64) @ sines.T
    spread = max(float(np.ptp(np.diagonal(products, apart))) for apart in steps)
    said = (
        "Of sines and cosines the dot product does not depend on where two positions are, but on how far apart: "
        + ", ".join(f"{apart} apart it is {products[0, apart]:.3f}" for apart in steps)
        + f", the same everywhere to {power(spread)}."
    )
    if table is not None:
        learned = table.astype(np.float64) @ table.T
        ends = (
            f"{apart} apart from {learned.diagonal(apart).min():.3f} to {learned.diagonal(apart).max():.3f}"
            for apart in steps
            if apart < len(table)
        )
        said += f" Learned vectors need not do that; here it is {', '.join(ends)}.".replace("-", "−")
    st.markdown(said)


def shifted(view: View, sines: np.ndarray) -> None:
    """One matrix that moves every position on by as much."""
    st.subheader("A shift is a turn")
    k = min(view.selection.shift, len(sines) - 1)
    with st.columns(3)[0]:
        st.number_input(
            "Shift, positions",
            min_value=1,
            max_value=len(sines) - 1,
            help="How many positions the matrix moves every vector on.",
            **widgets.field("shift", replace(view.selection, shift=k)),
        )
    st.markdown(
        f"To move {k} position{'s' * (k > 1)} on, each sine and its cosine are turned by the angle $k\\,\\omega_i$: one "
        "matrix does it, the same for every position. That, its authors supposed, makes it easy to learn to look a fixed "
        "distance away (Vaswani et al. 2017, arXiv:1706.03762, section 3.5)."
    )
    turn = shift(k, sines.shape[1])
    formula, matrix = st.columns([3, 2], vertical_alignment="center", gap="medium")
    formula.latex(
        r"\begin{pmatrix} PE_{(p+k,\,2i)} \\ PE_{(p+k,\,2i+1)} \end{pmatrix} = "
        r"\begin{pmatrix} \cos k\omega_i & \sin k\omega_i \\ -\sin k\omega_i & \cos k\omega_i \end{pmatrix} "
        r"\begin{pmatrix} PE_{(p,\,2i)} \\ PE_{(p,\,2i+1)} \end{pmatrix}"
    )
    with matrix:
        st.plotly_chart(
            draw_matrix(
                turn.T[:CORNER, :CORNER],
                title="Corner of the matrix",
                rows=("dimension", None),
                columns=("dimension", None),
                theme=view.theme,
            ),
            theme=None,
            key="shift_matrix",
            config=CONFIG,
            alt=f"Corner of the matrix that moves a position {k} on: blocks of two by two on the diagonal, else 0",
        )
    compare(
        sines[:-k] @ turn,
        sines[k:],
        f"{len(sines) - k:,} positions times this matrix, {turn.shape[0]} × {turn.shape[1]}",
        to=f"the positions {k} later",
    )


def cosine(table: np.ndarray, one: int, other: int) -> float:
    """Cosine of the angle between two positions; of the last one where the table is short."""
    first, second = (table[[min(at, len(table) - 1)]] for at in (one, other))
    return float(cosine_similarity(first, second).item())


def shuffled(view: View) -> None:
    """The same words in another order."""
    st.subheader("The words shuffled")
    if view.selection.bundle:
        st.info("A bundle holds no model to run again; its sentence can be computed by leaving the bundle.")
        return
    with st.columns(3)[0]:
        st.number_input(
            "Seed of the order",
            min_value=0,
            max_value=LARGEST_SEED,
            help="Another seed is another order; the same seed the same.",
            **widgets.field("seed"),
        )
    found = cache.shuffled(view.selection.source, view.selection.seed)
    labels = view.trace.tokens.labels
    st.markdown(f"The model reads: {literal(' '.join(isolated(labels[at]) for at in found.order))}")
    axis = Axis.of(view.trace.tokens)
    columns = st.columns(2, gap="medium")
    for column, title, change, key in (
        (columns[0], "With its positions", found.with_positions, "shuffled_with"),
        (columns[1], "Without position vectors", found.without_positions, "shuffled_without"),
    ):
        with column:
            st.markdown(f"**{title}**")
            st.plotly_chart(
                draw_effect(change, axis, picked=view.query, theme=view.theme),
                theme=None,
                key=key,
                config=CONFIG,
                alt=f"{title}: how far each token's last hidden state turns",
            )
            st.caption(
                f"A token turns by {change.mean():.4f} on average, by {change.max():.4f} at most (1 − cosine)."
            )
    if found.without_positions.max() < 1e-3:
        st.latex(r"\mathrm{attention}(P M) = P\,\mathrm{attention}(M) \quad \text{for every reordering } P")
        st.markdown(
            "Without position vectors every token ends with the same vector wherever it stands: to attention without a "
            "causal mask a sentence is a bag of words. The positions alone make the difference on the left."
        )
    else:
        st.markdown(
            "Even without position vectors the order matters to this model: its causal mask tells before from after "
            "(Haviv et al. 2022, arXiv:2203.16634)."
        )


view = frame("Positions")
with errors.explained():
    vectors(view)
    shuffled(view)
take(
    view,
    {
        "learned_table": "The model’s vectors",
        "sines_table": "Sines and cosines",
        "learned_likeness": "The model’s, similarity",
        "sines_likeness": "Sines, similarity",
        "learned_path": "The model’s, path",
        "sines_path": "Sines, path",
        "shift_matrix": "Shift",
        "shuffled_with": "Shuffled",
    },
)
verdict.in_sidebar(view.selection)
