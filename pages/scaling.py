"""Why are scores divided by the square root of d_k? What any scale does to scores, to a row of weights, and to exp."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import streamlit as st

from attnviz.effects.scaling import (
    LARGEST_D_K,
    SCALES,
    Products,
    exponentials,
    products_of,
    sharpness,
)
from attnviz.figures.scaling import draw_sharpness, draw_spread, variance_text
from attnviz.figures.theme import share_text
from attnviz.maps.layouts import LARGEST_SEED
from attnviz.records import Axis
from attnviz.records.table import table_csv
from ui.choice import state, widgets
from ui.components.token_strip import token_strip
from ui.export.take import take
from ui.page import errors, verdict
from ui.page.frame import frame
from ui.page.view import View
from ui.sections.scaling.overflow import overflow
from ui.words.findings import name, power
from ui.words.glossary import linked
from ui.words.literal import literal
from ui.work import cache

CONFIG = {"displayModeBar": False}
ALIKE = 1.05  # ratio up to which two norms count as the same
MEASURES = {
    "entropy": "entropy, share of ln n",
    "largest": "largest weight",
    "jacobian": "norm of the Jacobian",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What is looked at: a row of the picked head, under a scale."""

    view: View
    products: Products
    scale: float
    d_k: int
    """Dimensions of the random vectors."""

    @property
    def n_seen(self) -> int:
        """Keys that the picked query may see."""
        return int(self.products.allowed[self.view.query].sum())

    @property
    def scales(self) -> dict[str, float]:
        """The model's own scale, none at all, and the one that is chosen, each once."""
        named = {"The model’s": self.products.scale}
        for said, scale in (("Not scaled", 1.0), ("Yours", self.scale)):
            if scale not in named.values():
                named[said] = scale
        return named

    @property
    def other(self) -> float:
        """What the model's scale is compared with: the chosen one, or none at all, or the paper's, whichever differs."""
        d_head = self.view.trace.query(self.view.selection.layer, 0, self.view.kind).shape[1]
        return next(one for one in (self.scale, 1.0, d_head**-0.5) if one != self.products.scale)

    @property
    def token(self) -> str:
        """The picked query, to be read as Markdown."""
        return literal(name(Axis.of(self.view.trace.query_tokens(self.view.kind)), self.view.query))


def nearest(options: list[float], wanted: float) -> float:
    """The option of the nearest ratio."""
    return min(options, key=lambda one: abs(np.log(one / wanted)))


def controls(view: View, products: Products) -> Chosen:
    """The scale and the dimensions of the random vectors."""
    own, selection = products.scale, view.selection
    d_head = view.trace.query(selection.layer, selection.head, view.kind).shape[1]
    scales = sorted([own, *(one for one in SCALES if not np.isclose(one, own))])
    sizes = sorted({d_head, *(2**power for power in range(LARGEST_D_K.bit_length()))})
    scale = nearest(scales, selection.scale or own)
    d_k = int(nearest([float(one) for one in sizes], selection.d_k or d_head))
    left, middle, right = st.columns([3, 3, 1], vertical_alignment="bottom", gap="medium")
    left.select_slider(
        "Scale",
        scales,
        format_func=lambda one: f"{one:.3g}" + " (the model’s)" * (one == own),
        help="What dot products are multiplied with: in the bars of the tokens, the lower histograms, the curves and the table.",
        **widgets.field("scale", replace(selection, scale=scale)),
    )
    middle.select_slider(
        "Dimensions of the random vectors",
        sizes,
        format_func=lambda one: f"{one}" + " (this head)" * (one == d_head),
        help="How many numbers a random query or key has: in the left histogram and on the dashed curves.",
        **widgets.field("d_k", replace(selection, d_k=d_k)),
    )
    with right.popover("More", icon=":material/tune:", key="scaling_more"):
        st.number_input(
            "Seed of the random vectors",
            min_value=0,
            max_value=LARGEST_SEED,
            help="Another seed draws other random vectors; the same seed the same.",
            **widgets.field("seed"),
        )
    return Chosen(view=view, products=products, scale=scale, d_k=d_k)


def spread(chosen: Chosen) -> None:
    """Dot products before and after the scale, of random vectors and of the model's."""
    view, scale, d_k = chosen.view, chosen.scale, chosen.d_k
    selection = view.selection
    st.subheader("Scores grow with the number of dimensions")
    st.markdown(
        f"A {linked('Query')} and a {linked('Key')} have $d_k$ numbers each, and their dot product is a sum of $d_k$ products. If the numbers "
        "are independent, with mean 0 and variance 1, every product has variance 1 and the sum variance $d_k$: more "
        f"dimensions, larger {linked('Score', 'scores')}. {linked('Scale', 'Divided')} by $\\sqrt{{d_k}}$ they have variance "
        "1 again (Vaswani et al. 2017, arXiv:1706.03762, section 3.2.1, footnote 4)."
    )
    _formulas(
        r"\mathrm{Var}(q \cdot k) = \sum_{i=1}^{d_k} \mathrm{Var}(q_i k_i) = d_k",
        r"\mathrm{Var}\!\left(\frac{q \cdot k}{\sqrt{d_k}}\right) = \frac{d_k}{d_k} = 1",
    )
    random = cache.random_products(d_k, chosen.products.products.shape[1], selection.seed)
    seen = chosen.products.seen
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown(f"**Random vectors with {_count(d_k, 'dimension')}**")
        _chart(
            "spread_random",
            draw_spread(random.ravel(), scale, expected=float(d_k), theme=view.theme),
            f"Histogram of the dot products of random vectors with {_count(d_k, 'dimension')}, before and after the scale",
        )
        variance = float(random.var())
        st.caption(
            f"{random.shape[0]} queries and {random.shape[1]:,} keys, seed {selection.seed}. Variance "
            f"{variance_text(variance)} where the formula says {d_k:,}; times {scale:.3g} it is "
            f"{variance_text(variance * scale**2)} where the formula says {d_k:,} × {scale:.3g}² = "
            f"{variance_text(d_k * scale**2)}. The curve is the normal distribution of that variance, which a sum of "
            "many products comes near."
        )
    with right:
        st.markdown(f"**This model: layer {selection.layer}, head {selection.head}, your sentence**")
        if not seen.size:
            st.info("No query of this head may see any key.")
            return
        _chart(
            "spread_model",
            draw_spread(seen, scale, theme=view.theme),
            "Histogram of this head's dot products for your sentence, before and after the scale",
        )
        queries, keys = (
            of(selection.layer, selection.head, view.kind) for of in (view.trace.query, view.trace.key)
        )
        variance, mean = float(seen.var()), f"{seen.mean():.3g}".replace("-", "−")
        said = (
            f"{seen.size:,} pairs of a query and a key that it may see, {_count(queries.shape[1], 'dimension')}. Variance "
            f"{variance_text(variance)}; times {scale:.3g} it is {variance_text(variance * scale**2)}. The formula does "
            "not hold for a trained model: the numbers in its vectors are not independent, those of these queries have "
            f"variance {queries.var():.3g}, those of the keys {keys.var():.3g}, and the mean of the dot products is {mean}."
        )
        if not np.isclose(chosen.products.scale, queries.shape[1] ** -0.5):
            said += f" This model multiplies with {chosen.products.scale:.3g}, not with $1/\\sqrt{{d_k}}$."
        st.caption(said)


def curves(chosen: Chosen) -> Callable[[], bytes]:
    """How sharp the softmax makes the picked row under every scale; what writes the same as CSV."""
    view, products, d_k, n_seen = chosen.view, chosen.products, chosen.d_k, chosen.n_seen
    own, paper = products.scale, d_k**-0.5
    scales = np.unique([*SCALES, own, chosen.scale, paper])
    row = sharpness(products.row(view.query, scales[:, None]))
    random = cache.random_sharpness(d_k, n_seen, view.selection.seed, tuple(scales.tolist()))
    even = sharpness(np.zeros(n_seen))
    st.subheader("A softmax of large scores hardly moves")
    st.markdown(
        f"The {linked('Softmax')} makes {linked('Weight', 'weights')} of a row of scores. Under a small "
        "scale all keys get about the same, under a large one the best key gets everything. How far the weights move "
        f"when the scores do is said by the {linked('Jacobian', 'Jacobian')}, the table of all derivatives ($\\delta_{{ij}}$ is 1 "
        "where i = j, 0 elsewhere). Where it is near 0 little can be learned: what comes back through the weights "
        "hardly reaches the query and the key. In a long text it is small under a very small scale too: of many equal "
        "weights none has far to go."
    )
    _formulas(
        r"J_{ij} = \frac{\partial w_i}{\partial s_j} = w_i\,(\delta_{ij} - w_j)",
        r"J = \mathrm{diag}(w) - w w^\top",
        r"\lVert J \rVert_F = \sqrt{\textstyle\sum_{i,j} J_{ij}^2}",
    )
    lines = []
    for said, scale in chosen.scales.items():
        at = int(np.searchsorted(scales, scale))
        lines.append(
            f"- **{said}, scale {scale:.3g}:** entropy {row.entropy[at]:.3f} of ln n, largest weight "
            f"{share_text(float(row.largest[at]))}, norm of the Jacobian {norm_text(row.jacobian[at])}"
        )
    lines.append(
        f"- **Equal weights:** entropy {float(even.entropy):.3f} of ln n, each weight {share_text(1 / n_seen)}, norm of "
        f"the Jacobian {norm_text(even.jacobian)}"
    )
    st.markdown(f"The row of {chosen.token}, which sees {_count(n_seen, 'key')}:\n" + "\n".join(lines))
    marks = {said.lower(): scale for said, scale in chosen.scales.items() if scale in (own, chosen.scale)}
    columns = st.columns(3, gap="medium")
    for column, (key, what) in zip(columns, MEASURES.items(), strict=True):
        with column:
            _chart(
                f"sharp_{key}",
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
                f"{what} of the row over the scale",
            )
    st.caption(
        f"Solid: the row of {chosen.token}. Dashed: rows of {_count(n_seen, 'random key')} with {_count(d_k, 'dimension')}, mean "
        f"of {cache.RANDOM_ROWS}; diamond: $1/\\sqrt{{d_k}}$ = {paper:.3g}. Thin: equal weights. The "
        "norm is the Frobenius norm: 1/2 where two keys share all the weight, 0 where one has it all, so it stays up while the best "
        "two are nearly tied (J: Martins and Astudillo 2016, arXiv:1602.02068, section 2.5). On the way on to query "
        "and key everything is multiplied by the scale once more."
    )
    looking = products.allowed.any(axis=1)
    of_head = [float(sharpness(products.scores(one)[looking]).jacobian.mean()) for one in (own, chosen.other)]
    of_random = [float(random.jacobian[np.searchsorted(scales, one)]) for one in (paper, 1.0)]
    st.markdown(
        f"Over all {_count(int(looking.sum()), 'query', 'queries')} of this head the norm is {norm_text(of_head[0])} on "
        f"average under the model’s scale and {norm_text(of_head[1])} under scale {chosen.other:.3g}, {ratio(*of_head)}. For random vectors with "
        f"{_count(d_k, 'dimension')} it is {norm_text(of_random[0])} under $1/\\sqrt{{d_k}}$ and {norm_text(of_random[1])} not "
        f"scaled, {ratio(*of_random)}."
    )
    header = ["scale", *MEASURES.values(), *(f"{what}, random vectors" for what in MEASURES.values())]
    numbers = [getattr(one, key) for one in (row, random) for key in MEASURES]
    return partial(table_csv, header, np.column_stack([scales, *numbers]).tolist())


def norm_text(norm: float | np.ndarray) -> str:
    """A norm in words; in powers of ten where it would read as nothing."""
    number = float(norm)
    return f"{number:.3f}" if number == 0 or number >= 0.01 else power(number)


def ratio(first: float, second: float) -> str:
    """What a second norm is beside a first."""
    if not first or not second:
        return "which leaves nothing to compare"
    if max(first / second, second / first) < ALIKE:
        return "about the same"
    times = max(first / second, second / first)
    said = f"{times:.3g}" if times < 1000 else f"{times:,.0f}" if times < 1e6 else power(times)
    return f"{said} times {'less' if first > second else 'more'}"


def _count(number: int, one: str, several: str = "") -> str:
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def _formulas(*formulas: str) -> None:
    for column, formula in zip(st.columns(len(formulas), vertical_alignment="center"), formulas, strict=True):
        column.latex(formula)


def _chart(key: str, figure: object, alt: str) -> None:
    st.plotly_chart(figure, theme=None, key=key, config=CONFIG, alt=alt)


view = frame("Why divide by the square root of d_k")
selection = view.selection
csv = None
with errors.explained():
    products = products_of(view.trace, selection.layer, selection.head, view.kind)
    strip = st.container()
    chosen = controls(view, products)
    weights = np.zeros(products.products.shape[1], dtype=np.float32)
    if chosen.n_seen:
        scores = products.row(view.query, chosen.scale)
        weights[products.allowed[view.query]] = exponentials(scores, np.float32, subtract=True).weights
    with strip:
        token_strip(
            view.trace.query_tokens(view.kind),
            query=view.query,
            key=-1 if selection.key is None else selection.key,
            weights=weights if view.kind != "cross" else None,
            mask_label=None,
            on_pick=lambda position: state.change(query=position, key=None),
            on_mask=state.mask,
            theme=view.theme,
        )
    spread(chosen)
    if chosen.n_seen:
        csv = curves(chosen)
        overflow(products, view.query, chosen.token, chosen.scales)
    else:
        st.info(f"The query {chosen.token} may see no key, so its row has no scores.")
take(
    view,
    {
        "spread_random": "Random vectors",
        "spread_model": "This model",
        **{f"sharp_{key}": what.capitalize() for key, what in MEASURES.items()},
    },
    csv=csv,
    numbers="Curves" if csv else "Matrix",
)
verdict.in_sidebar(selection)
