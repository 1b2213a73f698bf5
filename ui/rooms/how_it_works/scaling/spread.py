"""The spread of scores under the scale, and how sharp the row becomes."""

import numpy as np
import streamlit as st
from jaxtyping import Float

from attnviz.figures.numbers import counted, number_text
from attnviz.figures.scaling import draw_spread, variance_text
from ui.rooms.how_it_works.scaling.chosen import Chosen
from ui.rooms.how_it_works.scaling.facts import spread_of
from ui.rooms.how_it_works.scaling.numbers import formulas
from ui.runtime import cache
from ui.shell.chart import chart
from ui.words.glossary import linked


def spread(chosen: Chosen) -> None:
    """Dot products before and after scaling, of random vectors and of the model's vectors."""
    view, scale, d_k = chosen.view, chosen.scale, chosen.d_k
    selection = view.selection
    st.subheader("Scores grow with the number of dimensions")
    st.markdown(
        f"A {linked('Query')} and a {linked('Key')} have $d_k$ numbers each, and their dot product is a sum of $d_k$ products. If the numbers "
        "are independent, with mean 0 and variance 1, every product has variance 1 and the sum variance $d_k$: more "
        f"dimensions, larger {linked('Score', 'scores')}. {linked('Scale', 'Divided')} by $\\sqrt{{d_k}}$ they have variance "
        "1 again (Vaswani et al. 2017, arXiv:1706.03762, section 3.2.1, footnote 4)."
    )
    formulas(
        r"\mathrm{Var}(q \cdot k) = \sum_{i=1}^{d_k} \mathrm{Var}(q_i k_i) = d_k",
        r"\mathrm{Var}\!\left(\frac{q \cdot k}{\sqrt{d_k}}\right) = \frac{d_k}{d_k} = 1",
    )
    random = cache.random_products(d_k, chosen.products.products.shape[1], selection.seed)
    seen = chosen.products.seen
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown(f"**Random vectors with {counted(d_k, 'dimension')}**")
        chart(
            draw_spread(random.ravel(), scale, expected=float(d_k), theme=view.theme),
            key="spread_random",
            alt=f"Histogram of the dot products of random vectors with {counted(d_k, 'dimension')}, before and after the scale",
        )
        st.caption(of_random(random, d_k, scale, seed=selection.seed))
    with right:
        st.markdown(f"**This model: {selection.place.words}, your sentence**")
        if not seen.size:
            st.info("No query of this head may see any key.")
            return
        chart(
            draw_spread(seen, scale, theme=view.theme),
            key="spread_model",
            alt="Histogram of this head's dot products for your sentence, before and after the scale",
        )
        queries, keys = (of(*selection.place, view.kind) for of in (view.trace.query, view.trace.key))
        sentence = of_model(seen, scale, queries, keys)
        if not np.isclose(chosen.products.scale, queries.shape[1] ** -0.5):
            sentence += (
                f" This model multiplies with {chosen.products.scale:.3g}, not with $1/\\sqrt{{d_k}}$."
            )
        if (cap := chosen.products.softcap) is not None:
            sentence += f" After the scale it softcaps: a score s becomes {cap:g} tanh(s / {cap:g}), which the histogram leaves out."
        st.caption(sentence)


def of_random(products: Float[np.ndarray, "query key"], d_k: int, scale: float, *, seed: int) -> str:
    """Variance of random vectors' dot products, before and after scaling, compared with the formula."""
    drawn = spread_of(products.ravel(), scale)
    return (
        f"{products.shape[0]} queries and {products.shape[1]:,} keys, seed {seed}. Variance "
        f"{variance_text(drawn.variance)} where the formula says {d_k:,}; the products times {scale:.3g} have variance "
        f"{variance_text(drawn.scaled_variance)}, where the formula says {d_k:,} × {scale:.3g}² = "
        f"{variance_text(d_k * scale**2)}. The curve is the normal distribution of that variance, which a sum of "
        "many products comes near."
    )


def of_model(
    products: Float[np.ndarray, " pair"],
    scale: float,
    queries: Float[np.ndarray, "query d_head"],
    keys: Float[np.ndarray, "key d_head"],
) -> str:
    """Variance of a head's dot products, before and after scaling, and how well its vectors meet the formula's assumptions."""
    own = spread_of(products, scale)
    return (
        f"{own.n_product:,} pairs of a query and a key that it may see, {counted(queries.shape[1], 'dimension')}. Variance "
        f"{variance_text(own.variance)}; the products times {scale:.3g} have variance {variance_text(own.scaled_variance)}, "
        f"{scale:.3g}² times as much. The formula is for independent numbers with mean 0 and variance 1, and the mean of their dot "
        f"products is 0: the numbers of these queries have variance {number_text(float(queries.var()))}, those of the keys "
        f"{number_text(float(keys.var()))}, and the mean of the dot products is {number_text(own.mean)}."
    )
