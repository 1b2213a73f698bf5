"""How does the model know the order of the words? Its position vectors, the paper's, and the words shuffled."""

import numpy as np
import streamlit as st
from sklearn.metrics.pairwise import cosine_similarity

from attnviz.figures.effect import draw_effect
from attnviz.figures.positions import draw_likeness, draw_path, draw_table, spaced
from attnviz.figures.theme import isolated
from attnviz.layouts import LARGEST_SEED, principal_components
from attnviz.positions import sinusoidal_positions
from attnviz.records import Axis
from ui import cache, errors, state, verdict
from ui.frame import View, frame
from ui.glossary import linked
from ui.take import take
from ui.text import literal

CONFIG = {"displayModeBar": False}


def vectors(view: View) -> None:
    """The model's table beside the paper's."""
    table = None if view.selection.bundle else cache.learned_positions(view.selection.model)
    n_used = len(view.trace.tokens)
    d_model = view.trace.last_hidden_state.shape[1] if table is None else table.shape[1]
    n_position = 512 if table is None else len(table)
    sines = sinusoidal_positions(n_position, d_model)
    st.markdown(
        f"Attention itself has no order: a {linked('Token')}'s {linked('Output')} is a sum over all others, in any order. "
        f"So a {linked('Position vector', 'vector for each position')} is added to the token's own before the first "
        f"{linked('Layer')}. BERT has learned its vectors; the paper of 2017 "
        "took sines and cosines (Vaswani et al. 2017, arXiv:1706.03762, section 3.5)."
    )
    st.latex(
        r"PE_{(p,\,2i)} = \sin\!\left(\frac{p}{10000^{2i/d}}\right), \quad "
        r"PE_{(p,\,2i+1)} = \cos\!\left(\frac{p}{10000^{2i/d}}\right)"
    )
    columns = st.columns(2, gap="medium")
    for column, title, own, key in (
        (columns[0], "Learned by this model", table, "learned"),
        (columns[1], "Sines and cosines", sines, "sines"),
    ):
        with column:
            st.markdown(f"**{title}**")
            if own is None:
                st.info(
                    "A bundle does not hold the model's tables."
                    if view.selection.bundle
                    else "This family has no table of positions; it turns queries and keys by their position, or adds "
                    "a bias for the distance to the scores."
                )
                continue
            lengths = np.linalg.norm(own, axis=1)
            st.caption(
                f"{own.shape[0]:,} × {own.shape[1]}; lengths {lengths.min():.2f} to {lengths.max():.2f}"
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
    products = sines.astype(np.float64) @ sines.T
    spread = max(float(np.ptp(np.diagonal(products, apart))) for apart in (1, 5, 20))
    st.markdown(
        f"Of sines and cosines the dot product depends on the distance alone: 1 apart it is {products[0, 1]:.3f}, 5 "
        f"apart {products[0, 5]:.3f}, 20 apart {products[0, 20]:.3f}, the same everywhere to {spread:.0e}. Learned "
        "vectors need not do that."
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
            **state.field("seed"),
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
        st.markdown(
            "Without positions every token ends where it was, wherever it stands: to attention a sentence is a bag of "
            "words. The positions alone make the difference on the left."
        )
    else:
        st.markdown(
            "Even without positions the order matters to this model: a causal mask tells before from after."
        )


view = frame("Positions")
with errors.explained():
    vectors(view)
    shuffled(view)
take(view, {"learned_likeness": "Learned positions", "sines_likeness": "Sines and cosines"})
verdict.in_sidebar(view.selection)
