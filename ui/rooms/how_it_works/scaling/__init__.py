"""Why are scores divided by the square root of d_k? What any scale does to scores, to a row of weights, and to exp."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
import streamlit as st

from attnviz.figures.numbers import counted
from attnviz.figures.scaling import draw_sharpness, draw_spread, variance_text
from attnviz.lessons.scaling import (
    LARGEST_D_K,
    SCALES,
    Products,
    Sharpness,
    exponentials,
    largest_argument,
    products_of,
    sharpness,
)
from attnviz.records import Axis
from attnviz.records.table import table_csv
from ui.choice import state, widgets
from ui.choice.fields import Number
from ui.choice.selection import choices
from ui.components.token_strip import token_strip
from ui.part import Block, Part, Picture, Row, Sheet
from ui.rooms.how_it_works.scaling.in_numbers import (
    breaks,
    from_scale,
    lines_of,
    mean_norm,
    norm_text,
    of_model,
    of_random,
    ratio,
    spread_of,
    written,
)
from ui.runtime import cache
from ui.shell.chart import chart
from ui.shell.table import whole_rows
from ui.shell.view import View
from ui.words.findings import name
from ui.words.glossary import linked
from ui.words.literal import literal

MEASURES = {
    "entropy": "entropy, share of ln n",
    "largest": "largest weight",
    "jacobian": "norm of the Jacobian",
}
TYPES: dict[str, type[np.floating]] = {"float32": np.float32, "float16": np.float16}


@choices
@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingSettings:
    """The scale for the selected head's dot products, and the random vectors beside them."""

    scale: Annotated[
        float | None,
        Number(
            SCALES[0],
            SCALES[-1],
            title="Scale",
            help="Multiplies the dot products by this: in the bars of the tokens, the lower histograms, the curves and "
            "the table.",
        ),
    ] = None
    """None for the model's own scale."""
    d_k: Annotated[
        int | None,
        Number(
            1,
            LARGEST_D_K,
            title="Dimensions of the random vectors",
            help="Sets how many numbers a random query or key has: in the left histogram and on the dashed curves.",
        ),
    ] = None
    """None for as many as the head has."""


def nearest(options: list[float], wanted: float) -> float:
    """The option nearest by ratio."""
    return min(options, key=lambda scale: abs(np.log(scale / wanted)))


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """A row of the selected head under the selected scale, and random vectors beside it."""

    view: View
    products: Products
    d_head: int
    all_scales: list[float]
    """Those that can be selected."""
    all_sizes: list[int]
    """The dimensions that random vectors can have."""
    scale: float
    d_k: int
    """Dimensions of the random vectors."""

    @classmethod
    def of(cls, view: View) -> "Chosen":
        """What is selected; a link's scale and dimensions are met by the nearest of those on offer."""
        wanted, place = view.selection.of(ScalingSettings), view.selection.place
        products = products_of(view.trace, *place, view.kind)
        own, d_head = products.scale, view.trace.query(*place, view.kind).shape[1]
        scales = sorted([own, *(scale for scale in SCALES if not np.isclose(scale, own))])
        sizes = sorted({d_head, *(2**power for power in range(LARGEST_D_K.bit_length()))})
        return cls(
            view=view,
            products=products,
            d_head=d_head,
            all_scales=scales,
            all_sizes=sizes,
            scale=nearest(scales, wanted.scale or own),
            d_k=int(nearest([float(size) for size in sizes], wanted.d_k or d_head)),
        )

    @property
    def own(self) -> float:
        """The model's own scale."""
        return self.products.scale

    @cached_property
    def random(self) -> np.ndarray:
        """Dot products of the random vectors."""
        seed = self.view.selection.seed
        return cache.random_products(self.d_k, self.products.products.shape[1], seed)

    @property
    def n_seen(self) -> int:
        """Keys that the selected query may see."""
        return int(self.products.allowed[self.view.query].sum())

    @property
    def scales(self) -> dict[str, float]:
        """The model's own scale, no scale, and the selected scale, without duplicates."""
        named = {"The model’s": self.own}
        for scale_name, scale in (("Not scaled", 1.0), ("Yours", self.scale)):
            if scale not in named.values():
                named[scale_name] = scale
        return named

    @property
    def other(self) -> float:
        """The scale to compare the model's with: the first that differs of the selected one, none, the paper's, and half."""
        scales = self.scale, 1.0, self.d_head**-0.5, self.own / 2
        return next(scale for scale in scales if scale != self.own)

    @property
    def token(self) -> str:
        """The selected query, as Markdown."""
        return literal(name(Axis.of(self.view.query_tokens), self.view.query))

    @cached_property
    def curves(self) -> tuple[np.ndarray, Sharpness, Sharpness]:
        """Scales, and how sharp the row and random rows are under each."""
        scales = np.unique([*SCALES, self.own, self.scale, self.d_k**-0.5])
        row = sharpness(self.products.row(self.view.query, scales[:, None]))
        seed = self.view.selection.seed
        return scales, row, cache.random_sharpness(self.d_k, self.n_seen, seed, tuple(scales.tolist()))


def strip(view: View) -> None:
    """The tokens, with the weights under the selected scale."""
    chosen = Chosen.of(view)
    weights = np.zeros(chosen.products.products.shape[1], dtype=np.float32)
    if chosen.n_seen:
        scores = chosen.products.row(view.query, chosen.scale)
        weights[chosen.products.allowed[view.query]] = exponentials(scores, np.float32, subtract=True).weights
    token_strip(
        view.query_tokens,
        query=view.query,
        key=-1 if view.selection.key is None else view.selection.key,
        weights=weights if view.kind != "cross" else None,
        mask_label=None,
        on_pick=lambda position: state.change(query=position, key=None),
        on_mask=state.mask,
        theme=view.theme,
    )


def controls(view: View) -> None:
    """The controls for the scale and for the random vectors' dimensions."""
    chosen = Chosen.of(view)
    left, right = st.columns(2, gap="medium")
    left.select_slider(
        **widgets.field(
            "scale",
            view.selection.but(scale=chosen.scale),
            format_func=lambda scale: f"{scale:.3g}" + " (the model’s)" * (scale == chosen.own),
            options=chosen.all_scales,
            value=chosen.scale,
        )
    )
    right.select_slider(
        **widgets.field(
            "d_k",
            view.selection.but(d_k=chosen.d_k),
            format_func=lambda size: f"{size}" + " (this head)" * (size == chosen.d_head),
            options=chosen.all_sizes,
            value=chosen.d_k,
        )
    )


def finding(chosen: Chosen) -> str:
    """The variance of the head's dot products, before and after scaling."""
    if not chosen.products.seen.size:
        return "No query of this head may see any key"
    own = spread_of(chosen.products.seen, chosen.scale)
    return (
        f"Times {chosen.scale:.3g}, this head’s dot products have variance {variance_text(own.scaled_variance)}, not "
        f"{variance_text(own.variance)}"
    )


def spread_random(chosen: Chosen) -> None:
    """Dot products of random vectors, before and after scaling."""
    dimensions = counted(chosen.d_k, "dimension")
    st.markdown(f"**Random vectors with {dimensions}**")
    chart(
        draw_spread(chosen.random.ravel(), chosen.scale, expected=float(chosen.d_k), theme=chosen.view.theme),
        key="spread_random",
        alt=f"Histogram of the dot products of random vectors with {dimensions}, before and after the scale",
    )


def spread_model(chosen: Chosen) -> tuple[str, ...]:
    """The same of the model's vectors."""
    st.markdown(f"**This model: {chosen.view.selection.place.words}, your sentence**")
    if not chosen.products.seen.size:
        st.info("No query of this head may see any key.")
        return ()
    chart(
        draw_spread(chosen.products.seen, chosen.scale, theme=chosen.view.theme),
        key="spread_model",
        alt="Histogram of this head's dot products for your sentence, before and after the scale",
    )
    return ("spread_model",)


def sharp(chosen: Chosen) -> tuple[str, ...]:
    """Entropy, largest weight and Jacobian over all scales."""
    st.subheader("The softmax saturates at large scores")
    if not chosen.n_seen:
        st.info(f"The query {chosen.token} may see no key, so its row has no scores.")
        return ()
    scales, row, random = chosen.curves
    even = sharpness(np.zeros(chosen.n_seen))
    marks = {of.lower(): scale for of, scale in chosen.scales.items() if scale in (chosen.own, chosen.scale)}
    for column, (key, what) in zip(st.columns(3, gap="medium"), MEASURES.items(), strict=True):
        with column:
            chart(
                draw_sharpness(
                    scales,
                    getattr(row, key),
                    getattr(random, key),
                    what=what,
                    even=float(getattr(even, key)),
                    marks=marks,
                    random_mark=chosen.d_k**-0.5,
                    theme=chosen.view.theme,
                ),
                key=f"sharp_{key}",
                alt=f"{what} of the row over the scale",
            )
    keys = f"rows of {counted(chosen.n_seen, 'random key')} with {counted(chosen.d_k, 'dimension')}"
    st.caption(
        f"Solid: the row of {chosen.token}. Dashed: {keys}, mean of {cache.RANDOM_ROWS}; diamond: $1/\\sqrt{{d_k}}$ = "
        f"{chosen.d_k**-0.5:.3g}. Thin: equal weights."
    )
    return tuple(f"sharp_{key}" for key in MEASURES)


def overflow(chosen: Chosen) -> None:
    """The same row's softmax without subtracting the largest score, in float32 and float16."""
    if not chosen.n_seen:
        return
    st.subheader("Too large for floating point")
    products, query = chosen.products, chosen.view.query
    rows, broken = [], []
    for scale_name, scale in chosen.scales.items():
        scores = products.row(query, scale)
        best = int(scores.argmax())
        for kind, dtype in TYPES.items():
            plain, safe = (exponentials(scores, dtype, subtract=subtract) for subtract in (False, True))
            rows.append(
                {
                    "scale": f"{scale:.3g}, {scale_name.lower()}",
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
        f"for {kind} {from_scale(products.scale_reaching(query, largest_argument(dtype)))}"
        for kind, dtype in TYPES.items()
    ]
    is_broken = (
        f"Without the subtraction it breaks in {', '.join(broken)}. " if broken else "Nothing breaks here. "
    )
    st.markdown(
        f"The row of {chosen.token}, computed in these types. {is_broken}Its largest exponential is too large {' and '.join(ends)}."
    )


def more(chosen: Chosen) -> None:
    """Why scores grow, why the softmax saturates, and why exponentials are too large; with formulas and all numbers."""
    with st.expander("More", key="scaling_more"):
        _of_spread(chosen)
        if chosen.n_seen:
            _of_sharpness(chosen)
            _of_overflow()
        with st.columns(3)[0]:
            st.number_input(
                **widgets.field(
                    "seed",
                    help="Another seed draws other random vectors; the same seed draws the same.",
                    label="Random seed of the vectors",
                )
            )


def _formulas(*formulas: str) -> None:
    """Formulas side by side."""
    for column, formula in zip(st.columns(len(formulas), vertical_alignment="center"), formulas, strict=True):
        column.latex(formula)


def _of_spread(chosen: Chosen) -> None:
    view, scale, products = chosen.view, chosen.scale, chosen.products
    st.markdown("**Scores grow with the number of dimensions**")
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
    st.caption(f"Random vectors: {of_random(chosen.random, chosen.d_k, scale, seed=view.selection.seed)}")
    if not products.seen.size:
        return
    queries, keys = (of(*view.selection.place, view.kind) for of in (view.trace.query, view.trace.key))
    sentence = of_model(products.seen, scale, queries, keys)
    if not np.isclose(chosen.own, chosen.d_head**-0.5):
        sentence += f" This model multiplies with {chosen.own:.3g}, not with $1/\\sqrt{{d_k}}$."
    if (cap := products.softcap) is not None:
        sentence += f" After the scale it softcaps: a score s becomes {cap:g} tanh(s / {cap:g}), which the histogram leaves out."
    st.caption(f"This model: {sentence}")


def _of_sharpness(chosen: Chosen) -> None:
    products = chosen.products
    st.markdown("**The softmax saturates at large scores**")
    st.markdown(
        f"The {linked('Softmax')} makes {linked('Weight', 'weights')} of a row of scores. Under a small "
        f"scale all keys get about the same, under a large one the best key gets nearly everything. The {linked('Jacobian', 'Jacobian')}, "
        "the table of all derivatives, tells how far the weights move when the scores do ($\\delta_{ij}$ is 1 where i = j, 0 "
        "elsewhere). Where it is near 0 little can be learned: almost no gradient reaches the query and the key. In a long "
        "text it is small under a very small scale too: where many weights are equal, each is close to 0 and can move little."
    )
    _formulas(
        r"J_{ij} = \frac{\partial w_i}{\partial s_j} = w_i\,(\delta_{ij} - w_j)",
        r"J = \mathrm{diag}(w) - w w^\top",
        r"\lVert J \rVert_F = \sqrt{\textstyle\sum_{i,j} J_{ij}^2}",
    )
    lines = "\n".join(lines_of(products, chosen.view.query, chosen.scales))
    st.markdown(f"The row of {chosen.token}, which sees {counted(chosen.n_seen, 'key')}:\n{lines}")
    softcap = (
        "."
        if products.softcap is None
        else f", and by the derivative of this model's softcap, $1 - \\tanh^2(s / {products.softcap:g})$."
    )
    st.caption(
        "The norm is the Frobenius norm: 1/2 where two keys share all the weight, 0 where one has it all, so it stays up while the best "
        "two are nearly tied (J: Martins and Astudillo 2016, arXiv:1602.02068, section 2.5). On the way on to query "
        f"and key everything is multiplied by the scale once more{softcap}"
    )
    scales, _, random = chosen.curves
    of_head = [mean_norm(products, scale) for scale in (chosen.own, chosen.other)]
    of_random = [float(random.jacobian[np.searchsorted(scales, scale)]) for scale in (chosen.d_k**-0.5, 1.0)]
    queries = counted(int(products.allowed.any(axis=1).sum()), "query", "queries")
    st.markdown(
        f"Over all {queries} of this head the norm is {norm_text(of_head[0])} on "
        f"average under the model’s scale and {norm_text(of_head[1])} under scale {chosen.other:.3g}, {ratio(*of_head)}. For random vectors with "
        f"{counted(chosen.d_k, 'dimension')} it is {norm_text(of_random[0])} under $1/\\sqrt{{d_k}}$ and {norm_text(of_random[1])} not "
        f"scaled, {ratio(*of_random)}."
    )


def _of_overflow() -> None:
    st.markdown("**Too large for floating point**")
    limits = {kind: largest_argument(dtype) for kind, dtype in TYPES.items()}
    st.markdown(
        "Exponentials grow fast, and a machine has a largest number: in float32 it is 3.4 × 10³⁸, which is "
        f"$e^{{{limits['float32']:.2f}}}$, in float16 65,504, which is $e^{{{limits['float16']:.2f}}}$. What is larger "
        "becomes inf, infinity; and inf / inf is nan, not a number. So the row’s largest score is subtracted first, "
        "which cancels in the division (Blanchard et al. 2021, arXiv:1909.03469)."
    )
    st.latex(r"w_i = \frac{e^{s_i}}{\sum_j e^{s_j}} = \frac{e^{s_i - \max s}}{\sum_j e^{s_j - \max s}}")


def csv(chosen: Chosen) -> bytes:
    """A line for each scale: how sharp the row is, and random rows."""
    header = ["scale", *MEASURES.values(), *(f"{what}, random vectors" for what in MEASURES.values())]
    if not chosen.n_seen:
        return table_csv(header, [])
    scales, *curves = chosen.curves
    numbers = [getattr(curve, key) for curve in curves for key in MEASURES]
    return table_csv(header, np.column_stack([scales, *numbers]).tolist())


_SHARPNESS = "solid line: the selected row; dashed line: random vectors"
_SPREAD = "bar height: density of scores, without the scale above and with it below"

PART = Part(
    name="Scaling",
    address="scaling",
    question="Why are scores divided by the square root of d_k?",
    sheets=(
        Sheet(
            strip=strip,
            controls=controls,
            screen=Chosen.of,
            finding=finding,
            rows=(
                Row(
                    Picture("spread_random", "Random vectors", _SPREAD, spread_random),
                    Picture("spread_model", "This model", _SPREAD, spread_model),
                ),
                Block(
                    sharp,
                    tuple(
                        Picture(f"sharp_{key}", what.capitalize(), _SHARPNESS)
                        for key, what in MEASURES.items()
                    ),
                ),
                overflow,
                more,
            ),
            numbers="Curves",
            csv=csv,
        ),
    ),
)
