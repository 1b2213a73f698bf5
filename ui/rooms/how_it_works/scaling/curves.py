"""Entropy, largest weight and Jacobian over all scales."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import streamlit as st

from attnviz.figures.numbers import counted, share_text
from attnviz.figures.scaling import draw_sharpness
from attnviz.lessons.scaling import SCALES, Products, sharpness
from attnviz.records.table import table_csv
from ui.rooms.how_it_works.scaling.chosen import Chosen
from ui.rooms.how_it_works.scaling.numbers import formulas, norm_text, ratio
from ui.runtime import cache
from ui.shell.chart import chart
from ui.words.glossary import linked

MEASURES = {
    "entropy": "entropy, share of ln n",
    "largest": "largest weight",
    "jacobian": "norm of the Jacobian",
}


def curves(chosen: Chosen) -> Callable[[], bytes]:
    """Draws how sharp the softmax makes the selected row under every scale; returns the function for the CSV."""
    view, products, d_k, n_seen = chosen.view, chosen.products, chosen.d_k, chosen.n_seen
    own, paper = products.scale, d_k**-0.5
    scales = np.unique([*SCALES, own, chosen.scale, paper])
    row = sharpness(products.row(view.query, scales[:, None]))
    random = cache.random_sharpness(d_k, n_seen, view.selection.seed, tuple(scales.tolist()))
    even = sharpness(np.zeros(n_seen))
    st.subheader("The softmax saturates at large scores")
    st.markdown(
        f"The {linked('Softmax')} makes {linked('Weight', 'weights')} of a row of scores. Under a small "
        f"scale all keys get about the same, under a large one the best key gets nearly everything. The {linked('Jacobian', 'Jacobian')}, "
        "the table of all derivatives, tells how far the weights move when the scores do ($\\delta_{ij}$ is 1 where i = j, 0 "
        "elsewhere). Where it is near 0 little can be learned: almost no gradient reaches the query and the key. In a long "
        "text it is small under a very small scale too: where many weights are equal, each is close to 0 and can move little."
    )
    formulas(
        r"J_{ij} = \frac{\partial w_i}{\partial s_j} = w_i\,(\delta_{ij} - w_j)",
        r"J = \mathrm{diag}(w) - w w^\top",
        r"\lVert J \rVert_F = \sqrt{\textstyle\sum_{i,j} J_{ij}^2}",
    )
    lines = "\n".join(lines_of(products, view.query, chosen.scales))
    st.markdown(f"The row of {chosen.token}, which sees {counted(n_seen, 'key')}:\n{lines}")
    marks = {name.lower(): scale for name, scale in chosen.scales.items() if scale in (own, chosen.scale)}
    columns = st.columns(3, gap="medium")
    for column, (key, what) in zip(columns, MEASURES.items(), strict=True):
        with column:
            chart(
                draw_sharpness(
                    scales,
                    getattr(row, key),
                    getattr(random, key),
                    what=what,
                    even=float(getattr(even, key)),
                    marks=marks,
                    random_mark=paper,
                    theme=view.theme,
                ),
                key=f"sharp_{key}",
                alt=f"{what} of the row over the scale",
            )
    st.caption(
        f"Solid: the row of {chosen.token}. Dashed: rows of {counted(n_seen, 'random key')} with {counted(d_k, 'dimension')}, mean "
        f"of {cache.RANDOM_ROWS}; diamond: $1/\\sqrt{{d_k}}$ = {paper:.3g}. Thin: equal weights. The "
        "norm is the Frobenius norm: 1/2 where two keys share all the weight, 0 where one has it all, so it stays up while the best "
        "two are nearly tied (J: Martins and Astudillo 2016, arXiv:1602.02068, section 2.5). On the way on to query "
        "and key everything is multiplied by the scale once more"
        + (
            "."
            if products.softcap is None
            else f", and by the derivative of this model's softcap, $1 - \\tanh^2(s / {products.softcap:g})$."
        )
    )
    of_head = [mean_norm(products, scale) for scale in (own, chosen.other)]
    of_random = [float(random.jacobian[np.searchsorted(scales, scale)]) for scale in (paper, 1.0)]
    st.markdown(
        f"Over all {counted(int(products.allowed.any(axis=1).sum()), 'query', 'queries')} of this head the norm is {norm_text(of_head[0])} on "
        f"average under the model’s scale and {norm_text(of_head[1])} under scale {chosen.other:.3g}, {ratio(*of_head)}. For random vectors with "
        f"{counted(d_k, 'dimension')} it is {norm_text(of_random[0])} under $1/\\sqrt{{d_k}}$ and {norm_text(of_random[1])} not "
        f"scaled, {ratio(*of_random)}."
    )
    header = ["scale", *MEASURES.values(), *(f"{what}, random vectors" for what in MEASURES.values())]
    numbers = [getattr(curve, key) for curve in (row, random) for key in MEASURES]
    return partial(table_csv, header, np.column_stack([scales, *numbers]).tolist())


def lines_of(products: Products, query: int, scales: Mapping[str, float]) -> list[str]:
    """How sharp a row is under each of these scales, compared with equal weights; a line each."""
    sentences = []
    for name, scale in scales.items():
        row = sharpness(products.row(query, scale))
        sentences.append(
            f"- **{name}, scale {scale:.3g}:** entropy {share_text(float(row.entropy))} of ln n, largest weight "
            f"{share_text(float(row.largest))}, norm of the Jacobian {norm_text(row.jacobian)}"
        )
    even = sharpness(np.zeros(int(products.allowed[query].sum())))
    equal = (
        f"- **Equal weights:** entropy {share_text(float(even.entropy))} of ln n, each weight "
        f"{share_text(float(even.largest))}, norm of the Jacobian {norm_text(even.jacobian)}"
    )
    return [*sentences, equal]


def mean_norm(products: Products, scale: float) -> float:
    """Norm of the Jacobian under a scale, averaged over the queries that see a key."""
    looking = products.allowed.any(axis=1)
    return float(sharpness(products.scores(scale)[looking]).jacobian.mean())
