"""How does the model know the order of the words? Its position vectors, the paper's, and the words shuffled."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import streamlit as st
from jaxtyping import Float
from sklearn.metrics.pairwise import cosine_similarity

from attnviz.errors import UnsupportedArchitectureError
from attnviz.figures.bars import draw_effect
from attnviz.figures.labels import isolated
from attnviz.figures.matrices import draw_matrix
from attnviz.figures.numbers import counted, number_text
from attnviz.figures.positions import draw_likeness, draw_path, draw_table, spaced, tone_limit
from attnviz.lessons.order import Shuffle
from attnviz.maps.layouts import principal_components
from attnviz.maths.positions import shift, sinusoidal_order, sinusoidal_positions
from attnviz.records import Axis
from ui.choice import widgets
from ui.part import Block, Part, Picture, Row, Sheet
from ui.rooms.how_it_works.step_by_step.walk import compare
from ui.runtime import cache
from ui.shell.chart import chart
from ui.shell.export.captions import SIGNED
from ui.shell.view import View
from ui.words.findings import power
from ui.words.glossary import linked
from ui.words.literal import literal

STEPS = (1, 5, 20)
"""Distances between positions that are named."""
PAIRS = ((0, 1), (0, 10), (20, 30))
"""Pairs of positions whose cosine is named."""
NO_CHANGE = 1e-3
"""1 - cosine below which a token's vector counts as unchanged: float32 leaves up to 1e-6, and a shuffle changes more than 0.01."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfDistance:
    """The dot products of all pairs of positions ``apart`` from each other."""

    apart: int
    first: float
    """Dot product of position 0 and position ``apart``."""
    least: float
    most: float


def dot_products(table: Float[np.ndarray, "position d_model"]) -> tuple[OfDistance, ...]:
    """The dot products at each distance of `STEPS` that fits in the table."""
    products = table.astype(np.float64) @ table.T
    return tuple(
        OfDistance(
            apart=apart,
            first=float(products[0, apart]),
            least=float(products.diagonal(apart).min()),
            most=float(products.diagonal(apart).max()),
        )
        for apart in STEPS
        if apart < len(table)
    )


def cosines(table: Float[np.ndarray, "position d_model"]) -> tuple[tuple[int, int, float], ...]:
    """Two positions and their cosine, for each of `PAIRS` that the table has."""
    return tuple(
        (first, other, float(cosine_similarity(table[[first]], table[[other]]).item()))
        for first, other in PAIRS
        if max(first, other) < len(table)
    )


CORNER = 12  # rows and columns of a shift's matrix that are drawn
_SIMILARITY = "cell colour: cosine similarity of two positions; framed: the positions of the text"
_PATH = "the two main directions of the position vectors; marked: the positions of the text"


@dataclass(frozen=True, kw_only=True)
class Vectors:
    """The model's table of position vectors, and the paper's of the same size."""

    view: View

    @cached_property
    def table(self) -> np.ndarray | None:
        """The model's own; None if it has none, or is not here."""
        selection = self.view.selection
        return None if selection.bundle else cache.learned_positions(selection.model)

    @cached_property
    def sines(self) -> np.ndarray:
        """Sines and cosines: 512 positions beside a model without a table."""
        shape = (512, self.view.trace.last_hidden_state.shape[1]) if self.table is None else self.table.shape
        return sinusoidal_positions(shape[0], shape[1] + shape[1] % 2)  # a cosine for every sine

    @cached_property
    def fixed(self) -> str | None:
        """How the model's table orders sines and cosines; None if it holds others, or there is none."""
        return None if self.table is None else sinusoidal_order(self.table)

    @property
    def learned(self) -> np.ndarray | None:
        """The model's table if it was learned."""
        return None if self.fixed else self.table


def finding(vectors: Vectors) -> str:
    """What the model adds to its tokens for their positions."""
    if vectors.table is None:
        what = (
            "A bundle holds no position vectors"
            if vectors.view.selection.bundle
            else "This model adds no position vectors"
        )
        return f"{what}; the paper of 2017 took sines and cosines"
    made = "computed" if vectors.fixed else "learned"
    return f"This model adds a {made} vector for each of {len(vectors.table)} positions"


def of_model(vectors: Vectors) -> tuple[str, ...]:
    """The model's table, if it has one."""
    title = (
        "This model’s, not learned"
        if vectors.fixed
        else "This model’s"
        if vectors.table is None
        else "Learned by this model"
    )
    st.markdown(f"**{title}**")
    if vectors.table is None:
        st.info(
            "A bundle does not hold the model's tables."
            if vectors.view.selection.bundle
            else "This family adds no position vectors: positions come in where queries meet keys, by rotating "
            "them or as a bias of the scores."
        )
        return ()
    if vectors.fixed:
        st.caption(
            f"The sines and cosines of the paper{', all sines first' * (vectors.fixed == 'sines first')}."
        )
    return _pictures(vectors, vectors.table, title, "learned")


def of_paper(vectors: Vectors) -> None:
    """The sines and cosines of the 2017 paper."""
    st.markdown("**Sines and cosines**")
    _pictures(vectors, vectors.sines, "Sines and cosines", "sines")


def _pictures(vectors: Vectors, own: np.ndarray, title: str, key: str) -> tuple[str, ...]:
    """A table, how alike its positions are, and their path; returns the keys."""
    theme, n_used = vectors.view.theme, len(vectors.view.trace.tokens)
    similarity = (
        linked("Cosine similarity", "Cosine similarity") if own is vectors.table else "Cosine similarity"
    )
    for name, figure, alt, said in (
        ("table", draw_table(own, theme=theme), "the vectors", table_words(own)),
        (
            "likeness",
            draw_likeness(own, n_used=n_used, theme=theme),
            "cosine similarity of any two positions",
            f"{similarity}. {likeness_words(own, n_used)}",
        ),
        (
            "path",
            draw_path(principal_components(own), n_used=n_used, theme=theme),
            "positions in the plane of their two principal components",
            "The same vectors by their first two principal components, joined in their order.",
        ),
    ):
        chart(figure, key=f"{key}_{name}", alt=f"{title}: {alt}")
        st.caption(said)
    return f"{key}_table", f"{key}_likeness", f"{key}_path"


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
    """What the dot product of two positions depends on; empty for a single position, ``table`` None without learned vectors."""
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


def shifted(vectors: Vectors) -> None:
    """One matrix that shifts every position by a fixed offset."""
    st.subheader("A shift is a rotation")
    view, sines = vectors.view, vectors.sines
    k = min(view.selection.shift, len(sines) - 1)
    control, matrix = st.columns(2, gap="medium")
    control.number_input(**widgets.field("shift", view.selection.but(shift=k), max_value=len(sines) - 1))
    turn = shift(k, sines.shape[1])
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
    with control:
        compare(
            sines[:-k] @ turn,
            sines[k:],
            f"{len(sines) - k:,} positions times this matrix, {turn.shape[0]} × {turn.shape[1]}",
            to=f"the positions {k} later",
        )


def shuffled(vectors: Vectors) -> tuple[str, ...]:
    """The same words in another order; returns the key of the picture that can be saved."""
    view = vectors.view
    st.subheader("Shuffled words")
    if view.selection.bundle:
        st.info("A bundle holds no model to run again; close the bundle to compute its sentence.")
        return ()
    try:
        shuffle = cache.shuffled(view.selection.source, view.selection.seed)
    except UnsupportedArchitectureError as error:
        st.info(f"{literal(view.selection.model)} is not shuffled: {error.reason}.")
        return ()
    with st.columns(3)[0]:
        st.number_input(
            **widgets.field(
                "seed",
                help="Another seed gives another order; the same seed gives the same.",
                label="Random seed of the order",
            )
        )
    labels = view.trace.tokens.labels
    st.markdown(f"The model reads: {literal(' '.join(isolated(labels[at]) for at in shuffle.order))}")
    for column, title, change, key in zip(
        st.columns(2, gap="medium"),
        ("With its positions", "Without position vectors"),
        (shuffle.with_positions, shuffle.without_positions),
        ("shuffled_with", "shuffled_without"),
        strict=True,
    ):
        with column:
            st.markdown(f"**{title}**")
            chart(
                draw_effect(change, Axis.of(view.trace.tokens), picked=view.query, theme=view.theme),
                key=key,
                alt=f"{title}: by how much the direction of each token's last hidden state changes",
            )
            st.caption(change_words(change))
    facts = order_matters(shuffle)
    if says_bag_of_words(facts):
        st.latex(r"\mathrm{attention}(P M) = P\,\mathrm{attention}(M) \quad \text{for every reordering } P")
    st.markdown(meaning(facts, is_causal=view.kind == "decoder"))
    return ("shuffled_with",)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderMatters:
    """The effect of another order of the words on a model."""

    is_own_order: bool
    """Whether the new order is the text's own, so that nothing can change."""
    with_positions: bool
    """Whether any token's vector changes direction."""
    without_positions: bool
    """Whether any does without position vectors."""


def order_matters(shuffle: Shuffle) -> OrderMatters:
    """Whether a shuffle changes any token, with and without position vectors."""
    return OrderMatters(
        is_own_order=bool((shuffle.order == np.arange(len(shuffle.order))).all()),
        with_positions=bool((shuffle.with_positions >= NO_CHANGE).any()),
        without_positions=bool((shuffle.without_positions >= NO_CHANGE).any()),
    )


def change_words(change: Float[np.ndarray, " token"]) -> str:
    """How much the tokens' vectors change direction."""
    return (
        f"The direction of a token’s vector changes by {number_text(float(change.mean()))} on average, by "
        f"{number_text(float(change.max()))} at most (1 − cosine)."
    )


def says_bag_of_words(facts: OrderMatters) -> bool:
    """Whether the order matters only through the position vectors."""
    return not facts.is_own_order and not facts.without_positions


def meaning(facts: OrderMatters, *, is_causal: bool) -> str:
    """What the two pictures mean."""
    if facts.is_own_order:
        return "This order is the text's own, so nothing changes. Another seed may give another order."
    if says_bag_of_words(facts):
        return (
            "Without position vectors every token ends with the same vector wherever it stands: to attention without a "
            "causal mask a sentence is a bag of words."
            + " The positions alone make the difference on the left."
            * facts.with_positions
        )
    if is_causal:
        return (
            "Even without position vectors the order matters to this model: its causal mask tells before from after "
            "(Haviv et al. 2022, arXiv:2203.16634)."
        )
    return (
        "Even without position vectors the order matters to this model, which has no causal mask: it knows positions in another way "
        "too."
    )


def more(vectors: Vectors) -> None:
    """Why a model needs position vectors, and what those of the paper do."""
    view = vectors.view
    with st.expander("More", key="positions_more"):
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
        st.markdown("**Only the distance counts**")
        st.latex(r"PE_p \cdot PE_{p+k} = \sum_i \cos(k\,\omega_i), \qquad \omega_i = \frac{1}{10000^{2i/d}}")
        st.markdown(distances(vectors.sines, vectors.learned))
        st.markdown("**A shift is a rotation**")
        k = min(view.selection.shift, len(vectors.sines) - 1)
        st.markdown(
            f"To shift by {counted(k, 'position')}, each sine and its cosine are rotated by the angle $k\\,\\omega_i$: one "
            "matrix does it, the same for every position. The authors expected this to make it easy to learn to "
            "attend a fixed distance away (Vaswani et al. 2017, arXiv:1706.03762, section 3.5)."
        )
        st.latex(
            r"\begin{pmatrix} PE_{(p+k,\,2i)} \\ PE_{(p+k,\,2i+1)} \end{pmatrix} = "
            r"\begin{pmatrix} \cos k\omega_i & \sin k\omega_i \\ -\sin k\omega_i & \cos k\omega_i \end{pmatrix} "
            r"\begin{pmatrix} PE_{(p,\,2i)} \\ PE_{(p,\,2i+1)} \end{pmatrix}"
        )


PART = Part(
    name="Positions",
    address="positions",
    question="How does the model know the order of the words?",
    asks=("sentence",),
    sheets=(
        Sheet(
            screen=lambda view: Vectors(view=view),
            finding=finding,
            rows=(
                Row(
                    Block(
                        of_model,
                        (
                            Picture("learned_table", "The model’s vectors", SIGNED),
                            Picture("learned_likeness", "The model’s, similarity", _SIMILARITY),
                            Picture("learned_path", "The model’s, path", _PATH),
                        ),
                    ),
                    Block(
                        of_paper,
                        (
                            Picture("sines_table", "Sines and cosines", SIGNED),
                            Picture("sines_likeness", "Sines, similarity", _SIMILARITY),
                            Picture("sines_path", "Sines, path", _PATH),
                        ),
                    ),
                ),
                Picture("shift_matrix", "Shift", SIGNED, shifted),
                Picture(
                    "shuffled_with",
                    "Shuffled",
                    "bar height: change of each token's last hidden state by another order, 1 − cosine",
                    shuffled,
                ),
                more,
            ),
        ),
    ),
)
