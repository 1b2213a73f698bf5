"""What is often said of attention, and what this model says to it for this sentence."""

from dataclasses import fields
from functools import partial

import numpy as np
import streamlit as st

from attnviz.figures.claims import draw_heads
from attnviz.figures.theme import percent_text, share_text
from attnviz.heads.claims import MOST_WEIGHT, Claims
from attnviz.records.table import table_csv
from ui.export.take import take
from ui.page import errors, verdict
from ui.page.frame import frame
from ui.page.view import View
from ui.sections.space import belief
from ui.words.findings import correlation_text
from ui.words.glossary import linked
from ui.work import cache

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
        f"({APART:g} and above). The median is {np.median(found):.2f}, where 0 is a symmetric matrix and 1 one where no "
        "token attends back."
    )
    st.latex(r"\frac{\sum_{i,j} \lvert w_{ij} - w_{ji} \rvert}{\sum_{i,j} (w_{ij} + w_{ji})}")
    figure(view, "symmetric", found, "asymmetry of the weights")
    if np.isnan(claims.score_asymmetry).all():
        st.markdown(
            f"Why: the {linked('Causal mask')} lets only one of two tokens see the other, so one of their two weights is "
            "0 whatever their scores are. Such a matrix is symmetric only as far as tokens attend to themselves."
        )
        return
    is_biased = any(
        belief.is_biased(view.trace.attention(layer, view.kind)) for layer in range(len(claims.positive))
    )
    st.markdown(
        f"Why: a {linked('Query')} and a {linked('Key')} are made by different matrices, so nothing makes their "
        f"{linked('Score', 'scores')} symmetric either: median {np.nanmedian(claims.score_asymmetry):.2f}. Were queries "
        f"and keys the same vectors{' and no bias added' if is_biased else ''}, scores would be symmetric, but the "
        f"{linked('Softmax')} divides every row by its own sum, so the weights need not be: "
        f"{np.nanmedian(claims.tied_asymmetry):.2f} in the median head."
    )


def diagonal(view: View, claims: Claims) -> None:
    """Claim 10."""
    itself = claims.on_itself
    kinds = {"the query's own token": itself, "the token before or after": claims.on_neighbour}
    order = ["own token", "neighbour", "another"]
    if view.trace.key_tokens(view.kind).is_special.any():
        kinds[linked("Special token", "a special token")] = claims.on_special
        order.insert(1, "special token")
    shares = {said: float(found.mean()) for said, found in kinds.items()}
    listed = [
        f"{said} for {share_text(shares[said])}" for said in sorted(shares, key=lambda one: -shares[one])
    ]
    listed[0] += " of the queries"
    first = " The first token, which sees no other, is among the queries." * (view.kind == "decoder")
    st.markdown(
        f"{heads_say(itself > 0.5)} have more than half of their queries attend most to themselves. Over all heads, the "
        f"key with the largest weight is {', '.join(listed)}, and another token for "
        f"{share_text(max(0.0, 1 - sum(shares.values())))}. A query counts once, as the first of these that fits: "
        f"{', '.join(order)}.{first} Compare Clark et al. 2019, arXiv:1906.04341, sections 3.1 and 3.2."
    )
    figure(view, "diagonal", itself, "share of the queries that attend most to themselves")


def full(view: View, claims: Claims) -> None:
    """Claim 11."""
    found = claims.cells_for_most
    masked, rounded = 1 - float(claims.seen.mean()), 1 - float(claims.positive.mean())
    every = bool((claims.positive == 1).all())
    if masked:
        rest = (
            "; each of the others has a weight above 0"
            if every
            else f"; of the others {share_text(rounded)} are so small that float32 rounds them to 0"
        )
        said = f"**Not even to the letter** here: the mask hides {share_text(masked)} of the cells, whose weight is 0{rest}."
    elif every:
        said = "**True to the letter** here: no mask hides a cell, and a softmax gives every one a weight above 0."
    else:
        said = (
            "**Not even to the letter** here: no mask hides a cell, but the weight of "
            f"{share_text(rounded)} of them is so small that float32 rounds it to 0."
        )
    st.markdown(
        f"{said} Of the cells that a query may see, the strongest {share_text(float(np.median(found)))} hold "
        f"{percent_text(MOST_WEIGHT)} of the weight in the median head, and {share_text(float(found.min()))} in the most "
        "concentrated one."
    )
    figure(view, "full", found, f"share of the cells that hold {percent_text(MOST_WEIGHT)} of the weight")


def explanation(view: View, claims: Claims) -> None:
    """Claim 12."""
    if claims.other_strongest is None or claims.rank_agreement is None:
        st.markdown(
            "This family's W\\_O is not known to attnviz, so weights cannot be compared with norm-based weights."
        )
    else:
        found = claims.other_strongest
        st.markdown(
            f"{heads_say(found < 0.1)} have the same strongest key by weight and by {linked('Norm-based weight')}, "
            f"$\\lVert w_{{ij}}\\, v_j W_O \\rVert$, for more than nine queries in ten. Over all heads the two differ for "
            f"{share_text(float(found.mean()))} of the queries; the mean {linked('Rank correlation', 'rank correlation')} of "
            f"the two is {correlation_text(float(np.mean(claims.rank_agreement)))} (1 is the same order). A large weight "
            "contributes little where $v_j W_O$ is short (Kobayashi et al. 2020, arXiv:2004.10102)."
        )
        figure(
            view,
            "explanation",
            found,
            "share of the queries whose strongest key is another by norm-based weight",
        )
    st.markdown(
        "Nor do norms explain an answer: many heads can be removed with little change in accuracy (Michel et al. 2019, "
        "arXiv:1905.10650); other weights can give the same answer (Jain and Wallace 2019, arXiv:1902.10186); whether "
        "that settles it is disputed (Wiegreffe and Pinter 2019, arXiv:1908.04626). Weights say where a head takes its "
        "mixture from, no more."
    )


def as_csv(claims: Claims) -> bytes:
    """A line for each head: all its numbers."""
    measured = {one.name: found for one in fields(claims) if (found := getattr(claims, one.name)) is not None}
    places = list(np.ndindex(claims.positive.shape))
    rows = (
        [*place, *("" if np.isnan(found[place]) else float(found[place]) for found in measured.values())]
        for place in places
    )
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
