"""The position vectors: the model's own, and the sines and cosines of the 2017 paper."""

import numpy as np
import streamlit as st
from jaxtyping import Float

from attnviz.figures.numbers import number_text
from attnviz.figures.positions import draw_likeness, draw_path, draw_table, spaced, tone_limit
from attnviz.maps.layouts import principal_components
from attnviz.maths.positions import sinusoidal_order, sinusoidal_positions
from ui.rooms.how_it_works.positions.facts import cosines, dot_products
from ui.rooms.how_it_works.positions.shifted import shifted
from ui.runtime import cache
from ui.shell.chart import chart
from ui.shell.view import View
from ui.words.findings import power
from ui.words.glossary import linked


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
            st.caption(table_words(own))
            chart(draw_table(own, theme=view.theme), key=f"{key}_table", alt=f"{title}: the vectors")
            chart(
                draw_likeness(own, n_used=n_used, theme=view.theme),
                key=f"{key}_likeness",
                alt=f"{title}: cosine similarity of any two positions",
            )
            linked_name = linked("Cosine similarity", "Cosine similarity")
            st.caption(
                f"{linked_name if own is table else 'Cosine similarity'}. {likeness_words(own, n_used)}"
            )
            chart(
                draw_path(principal_components(own), n_used=n_used, theme=view.theme),
                key=f"{key}_path",
                alt=f"{title}: positions in the plane of their two principal components",
            )
            st.caption("The same vectors by their first two principal components, joined in their order.")
    st.subheader("Only the distance counts")
    st.latex(r"PE_p \cdot PE_{p+k} = \sum_i \cos(k\,\omega_i), \qquad \omega_i = \frac{1}{10000^{2i/d}}")
    st.markdown(distances(sines, table if is_learned else None))
    shifted(view, sines)


def table_words(table: Float[np.ndarray, "position d_model"]) -> str:
    """Size and magnitude of a table of position vectors."""
    lengths = np.linalg.norm(table, axis=1)
    return (
        f"{table.shape[0]:,} × {table.shape[1]}; lengths {number_text(float(lengths.min()))} to {number_text(float(lengths.max()))}. Colours "
        f"end at ±{number_text(tone_limit(table))}, which 99 of 100 numbers stay within; the largest is {number_text(float(np.abs(table).max()))}."
    )


def likeness_words(table: Float[np.ndarray, "position d_model"], n_used: int) -> str:
    """Cosines of a few positions, and which positions are drawn."""
    pairs = "; ".join(
        f"{first} and {other}: {number_text(cosine)}" for first, other, cosine in cosines(table)
    )
    n_drawn = len(spaced(len(table)))
    drawn = f" Of {len(table)} positions {n_drawn} are drawn." if n_drawn < len(table) else ""
    return f"Positions {pairs}. The frame holds the {n_used} positions of this text.{drawn}"


def distances(sines: np.ndarray, table: np.ndarray | None) -> str:
    """What the dot product of two positions depends on; empty for a single position.

    Args:
        table: learned vectors; None for a model without them.
    """
    of_sines = dot_products(sines)
    if not of_sines:
        return ""
    sentence = (
        "The dot product of two vectors of sines and cosines depends only on the distance between their positions: "
        + ", ".join(f"{of_sine.apart} apart it is {number_text(of_sine.first)}" for of_sine in of_sines)
        + f", the same everywhere to {power(max(of_sine.most - of_sine.least for of_sine in of_sines))}."
    )
    if table is not None:
        ends = ", ".join(
            f"{dot_product.apart} apart from {number_text(dot_product.least)} to {number_text(dot_product.most)}"
            for dot_product in dot_products(table)
        )
        sentence += f" Learned vectors need not have this property; here it is {ends}."
    return sentence
