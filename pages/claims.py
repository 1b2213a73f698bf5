"""What is often said of attention, and what this model says to it for this sentence."""

from dataclasses import fields
from functools import partial

import numpy as np
import streamlit as st

from attnviz.claims import MOST_WEIGHT, Claims
from attnviz.figures.claims import draw_heads
from attnviz.figures.theme import percent_text, share_text
from attnviz.table import table_csv
from ui import cache, errors, verdict
from ui.frame import View, frame
from ui.glossary import linked
from ui.take import take

ALIKE, APART = 0.05, 0.3  # asymmetry up to which two halves count as the same, and from which on as different
MOSTLY, HARDLY = 2 / 3, 1 / 3  # shares of the heads from which on, and up to which, a claim holds


def heads_say(holds: np.ndarray) -> str:
    """How many heads agree with a claim, and what follows for it."""
    share = float(holds.mean())
    word = (
        "**Holds** here"
        if share >= MOSTLY
        else "**Does not hold** here"
        if share <= HARDLY
        else "**Half true** here"
    )
    return f"{word}: {int(holds.sum())} of {holds.size} heads"


def figure(
    view: View, key: str, numbers: np.ndarray, what: str, *, span: tuple[float, float] = (0.0, 1.0)
) -> None:
    """One number of every head."""
    picked = (view.selection.layer, view.selection.head)
    st.plotly_chart(
        draw_heads(numbers, what=what, picked=picked, span=span, theme=view.theme),
        theme=None,
        key=f"claim_{key}",
        config={"displayModeBar": False},
        alt=f"{what}, one point for each head; layer {picked[0]}, head {picked[1]}: {numbers[picked]:.3f}",
    )
    layer, head = np.unravel_index(numbers.argmax(), numbers.shape)
    st.caption(
        f"The picked head, layer {picked[0]}, head {picked[1]}: {numbers[picked]:.2f}; the largest, layer {layer}, head "
        f"{head}: {numbers.max():.2f}."
    )


def symmetric(view: View, claims: Claims) -> None:
    """Claim 9."""
    found = claims.weight_asymmetry
    st.markdown(
        f"{heads_say(found <= ALIKE)} are symmetric to within {ALIKE:g}; {int((found >= APART).sum())} are far from it "
        f"(above {APART:g}). The median is {np.median(found):.2f}, where 0 is a symmetric matrix and 1 one where nobody "
        "is looked back at."
    )
    st.latex(r"\frac{\sum_{i,j} \lvert w_{ij} - w_{ji} \rvert}{\sum_{i,j} (w_{ij} + w_{ji})}")
    figure(view, "symmetric", found, "asymmetry of the weights")
    st.markdown(
        f"Why: a {linked('Query')} and a {linked('Key')} are made by different matrices, so the "
        f"{linked('Score', 'scores')} are not symmetric either (median "
        f"{np.median(claims.score_asymmetry):.2f}). Were queries and keys the same vectors, scores would be symmetric, "
        f"but the {linked('Softmax')} divides every row by its own sum, and the weights would still be asymmetric: "
        f"{np.median(claims.tied_asymmetry):.2f} in the median head."
    )


def diagonal(view: View, claims: Claims) -> None:
    """Claim 10."""
    itself = claims.on_itself
    others = {
        "themselves": itself,
        "the token before or after": claims.on_neighbour,
        "a special token": claims.on_special,
    }
    most = max(others, key=lambda name: float(others[name].mean()))
    st.markdown(
        f"{heads_say(itself > 0.5)} have more than half of their queries look at themselves most. Over all heads, "
        f"{share_text(float(itself.mean()))} of the queries look at themselves most, "
        f"{share_text(float(claims.on_neighbour.mean()))} at the token before or after, "
        f"{share_text(float(claims.on_special.mean()))} at a {linked('Special token')}. Most often it is **{most}** "
        "(Clark et al. 2019, arXiv:1906.04341, sections 3.1 and 3.2)."
    )
    figure(view, "diagonal", itself, "share of the queries that look at themselves most")


def full(view: View, claims: Claims) -> None:
    """Claim 11."""
    found = claims.cells_for_most
    every = bool((claims.positive == 1).all())
    st.markdown(
        (
            "**True to the letter** here: a softmax without a mask gives every cell a weight above 0. "
            if every
            else f"**Not even to the letter** here: {share_text(1 - float(claims.positive.mean()))} of the cells a query "
            "may see have a weight that is 0 to the machine. "
        )
        + f"But {share_text(float(np.median(found)))} of the cells hold {percent_text(MOST_WEIGHT)} of the weight in the "
        f"median head, and {share_text(float(found.min()))} in the most concentrated one."
    )
    figure(view, "full", found, f"share of the cells that hold {percent_text(MOST_WEIGHT)} of the weight")


def explanation(view: View, claims: Claims) -> None:
    """Claim 12."""
    if claims.other_strongest is None or claims.rank_agreement is None:
        st.markdown(
            "This family's W\\_O is not known to attnviz, so weights cannot be laid beside what they bring."
        )
    else:
        found = claims.other_strongest
        st.markdown(
            f"{heads_say(found < 0.1)} name the key that really brings most for nine in ten queries. Over all heads the "
            f"strongest key by weight is another than by {linked('Value-aware weight', 'what arrives')}, $\\lVert w_{{ij}}\\, v_j W_O \\rVert$, for "
            f"{share_text(float(found.mean()))} of the queries; ranks agree with {np.mean(claims.rank_agreement):+.2f} "
            "(1 is the same order). A large weight on a short value brings little "
            "(Kobayashi et al. 2020, arXiv:2004.10102)."
        )
        figure(
            view,
            "explanation",
            found,
            "share of the queries whose strongest key is another by what it brings",
        )
    st.markdown(
        "Nor does what arrives explain an answer: many heads can be taken away and the model answers the same (Michel et "
        "al. 2019, arXiv:1905.10650); other weights can give the same answer (Jain and Wallace 2019, arXiv:1902.10186); "
        "whether that settles it is disputed (Wiegreffe and Pinter 2019, arXiv:1908.04626). Weights say where a head "
        "takes its mixture from, no more."
    )


def as_csv(claims: Claims) -> bytes:
    """A line for each head: all its numbers."""
    measured = {one.name: found for one in fields(claims) if (found := getattr(claims, one.name)) is not None}
    places = list(np.ndindex(claims.positive.shape))
    rows = ([*place, *(float(found[place]) for found in measured.values())] for place in places)
    return table_csv(["layer", "head", *(name.replace("_", " ") for name in measured)], rows)


CLAIMS = (
    ("“The attention matrix is symmetric”", symmetric),
    ("“Tokens attend to themselves most”", diagonal),
    ("“Every cell is filled”", full),
    ("“Attention shows what the model looks at”", explanation),
)

view = frame("What is often said")
csv = None
with errors.explained():
    claims = cache.claims(view.selection.source, view.kind)
    csv = partial(as_csv, claims)
    st.caption(
        f"Four sentences from articles, measured in all {claims.positive.size} {linked('Head', 'heads')} for this sentence. A claim holds "
        f"when it is true of two heads in three, and does not when of one in three or fewer. Change the sentence, and "
        "the numbers and verdicts follow."
    )
    for said, draw in CLAIMS:
        st.subheader(said)
        draw(view, claims)
take(
    view,
    {f"claim_{name}": name.capitalize() for name in ("symmetric", "diagonal", "full", "explanation")},
    csv=csv,
    numbers="All heads" if csv else "Matrix",
)
verdict.in_sidebar(view.selection)
