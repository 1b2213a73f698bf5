"""What is often said of attention, and what this model says to it for this sentence."""

from dataclasses import dataclass, fields

import numpy as np
import streamlit as st
from jaxtyping import Float

from attnviz.figures.heads import draw_heads
from attnviz.figures.layer_grid import runs_across
from attnviz.figures.numbers import cell_text, percent_text, share_text
from attnviz.heads.claim_facts import (
    ALIKE,
    APART,
    CORRELATED,
    DIFFERING,
    Contribution,
    Diagonal,
    Filling,
    Showing,
    filling,
    symmetry,
)
from attnviz.heads.claim_facts import contribution as facts_of_contribution
from attnviz.heads.claim_facts import diagonal as facts_of_diagonal
from attnviz.heads.claims import MOST_WEIGHT, Claims
from attnviz.heads.facts import Extremes, extremes
from attnviz.records import Head, heads_in
from attnviz.records.table import table_csv
from ui.part import Part, Picture, Sheet
from ui.runtime import cache
from ui.shell.chart import chart
from ui.shell.view import View
from ui.words.findings import correlation_text, together
from ui.words.glossary import linked

_WORDS = {
    "holds": "**Holds** here",
    "half true": "**Half true** here",
    "does not hold": "**Does not hold** here",
}


def heads_say(facts: Showing) -> str:
    """How many heads agree with a claim, and whether it holds."""
    return f"{_WORDS[facts.standing]}: {facts.n_showing} of {facts.n_heads} heads"


def figure(view: View, key: str, numbers: Float[np.ndarray, "layer head"], what: str) -> None:
    """One number of every head, from 0 to 1."""
    picked = view.selection.place
    chart(
        draw_heads(numbers, what=what, picked=picked, theme=view.theme),
        key=f"claim_{key}",
        alt=f"{what}, one point for each head; {picked.words}: {cell_text(float(numbers[picked]))}",
    )
    st.caption(ends_words(picked, float(numbers[picked]), extremes(numbers, cell_text)))


def ends_words(picked: Head, number: float, facts: Extremes) -> str:
    """The number of the selected head, and the largest of all."""
    most = together([head.words for head in facts.most])
    return f"The selected head, {picked.words}: {cell_text(number)}; the largest, {most}: {cell_text(facts.largest)}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The claims, measured in every head."""

    view: View
    claims: Claims


def lead(told: Told) -> None:
    """What counts as holding."""
    st.caption(
        f"Four common claims, tested in all {len(told.view.trace.heads(told.view.kind))} {linked('Head', 'heads')} on this sentence. A claim holds "
        "where at least two heads in three show it, and does not where at most one in three does; that every cell is filled "
        "is true only where every cell of every head is. Another sentence has other numbers, and perhaps other answers."
    )


def symmetric(told: Told) -> None:
    """Whether the claim holds, the formula, the heads, and why."""
    st.subheader("“The attention matrix is symmetric”")
    view, claims = told.view, told.claims
    facts = symmetry(claims)
    st.markdown(
        f"{heads_say(facts.heads)} are symmetric to within {ALIKE:g}; {facts.n_far} are far from it "
        f"({APART:g} and above). The median is {facts.median:.2f}, where 0 is a symmetric matrix and 1 is one where no "
        "token attends back."
    )
    st.latex(r"\frac{\sum_{i,j} \lvert w_{ij} - w_{ji} \rvert}{\sum_{i,j} (w_{ij} + w_{ji})}")
    figure(view, "symmetric", claims.weight_asymmetry, "asymmetry of the weights")
    if facts.scores is None:
        st.markdown(
            f"Why: the {linked('Causal mask')} lets only one of two tokens see the other, so one of their two weights is "
            "0 whatever their scores are. Such a matrix is symmetric only as far as tokens attend to themselves."
        )
        return
    layers = [view.trace.attention(layer, view.kind) for layer in range(len(claims.positive))]
    is_biased = any(layer.bias is not None and layer.bias.any() for layer in layers)
    st.markdown(
        f"Why: a {linked('Query')} and a {linked('Key')} are made by different matrices, so nothing makes their "
        f"{linked('Score', 'scores')} symmetric either: median {facts.scores:.2f}. Were queries "
        f"and keys the same vectors{' and no bias added' if is_biased else ''}, scores would be symmetric, but the "
        f"{linked('Softmax')} divides every row by its own sum, so the weights need not be: "
        f"{facts.tied:.2f} in the median head."
    )


def diagonal(told: Told) -> None:
    """Whether the claim holds, where queries attend instead, and the heads."""
    st.subheader("“Tokens attend to themselves most”")
    view, claims = told.view, told.claims
    is_special = view.key_tokens.is_special
    is_decoder = view.kind == "decoder"
    facts = facts_of_diagonal(
        claims, has_special=bool(is_special.any()), rests_on_first=is_decoder and not is_special[0]
    )
    shares = {"the query's own token": facts.own, "the token before or after": facts.neighbour}
    if facts.special is not None:
        shares[linked("Special token", "a special token")] = facts.special
    if facts.first is not None:
        shares["the first token, where many heads rest,"] = facts.first
    listed = [
        f"{share} for {share_text(shares[share])}"
        for share in sorted(shares, key=lambda column: -shares[column])
    ]
    listed[0] += " of the queries"
    first = " The first token, which sees no other, is among the queries." * is_decoder
    st.markdown(
        f"{heads_say(facts.heads)} have more than half of their queries attend most to themselves. Over all heads, the "
        f"key with the largest weight is {', '.join(listed)}, and another token for "
        f"{share_text(facts.other)}. A query counts once, as the first of these that fits: "
        f"{', '.join(precedence(facts))}.{first} Compare Clark et al. 2019, arXiv:1906.04341, sections 3.1 and 3.2."
    )
    figure(view, "diagonal", claims.on_itself, "share of the queries that attend most to themselves")


def precedence(facts: Diagonal) -> list[str]:
    """The categories of a query's strongest key, in the order in which `attnviz.heads.claims.measure` checks them."""
    special = ["special token"] if facts.special is not None else []
    first = ["first token"] if facts.first is not None else []
    return ["own token", *special, *first, "neighbour", "another"]


def full(told: Told) -> None:
    """Whether the claim holds, how few cells have most of the weight, and the heads."""
    st.subheader("“Every cell is filled”")
    view, claims = told.view, told.claims
    facts = filling(claims)
    st.markdown(
        f"{filled_words(facts)} Of the cells that a query may see, the strongest {share_text(facts.median)} hold "
        f"{percent_text(MOST_WEIGHT)} of the weight in the median head, and {share_text(facts.least)} in the most "
        "concentrated one."
    )
    what = f"share of the cells that hold {percent_text(MOST_WEIGHT)} of the weight"
    figure(view, "full", claims.cells_for_most, what)


def filled_words(facts: Filling) -> str:
    """Whether every cell has a positive weight, and if not, why, in Markdown."""
    if facts.is_full:
        return "**Literally true** here: no mask hides a cell, and each has a weight above 0."
    false = "**Not even literally true** here:"
    if not facts.masked:
        return (
            f"{false} no mask hides a cell, but the weight of {share_text(facts.rounded)} of them is so small that "
            "float32 rounds it to 0."
        )
    others = (
        f"of the others {share_text(facts.rounded)} are so small that float32 rounds them to 0"
        if facts.rounded
        else "each of the others has a weight above 0"
    )
    return f"{false} the mask hides {share_text(facts.masked)} of the cells, whose weight is 0; {others}."


def contribution(told: Told) -> tuple[str, ...]:
    """Whether the claim holds, the heads, and what neither weights nor norms show."""
    st.subheader("“The larger the weight, the more a key adds”")
    view, claims = told.view, told.claims
    facts = facts_of_contribution(claims)
    if facts is None or claims.other_strongest is None:
        st.markdown(
            "This family's W\\_O is not known to attnviz, so weights cannot be compared with norm-based weights."
        )
    else:
        st.markdown(measured(facts))
        figure(
            view,
            "contribution",
            claims.other_strongest,
            "share of the queries with another strongest key by norm",
        )
    st.markdown(
        "Nor do norms explain an answer: many heads can be removed with little change in accuracy (Michel et al. 2019, "
        "arXiv:1905.10650); in recurrent networks other weights can give nearly the same answer (Jain and Wallace 2019, "
        "arXiv:1902.10186); whether that settles it is disputed (Wiegreffe and Pinter 2019, arXiv:1908.04626). Weights say "
        "where a head takes its mixture from, no more."
    )
    return () if facts is None else ("claim_contribution",)


def measured(facts: Contribution) -> str:
    """Whether the claim holds, its criterion for a head, and the means over all heads."""
    return (
        f"{heads_say(facts.heads)} put keys in much the same order by weight and by {linked('Norm-based weight')}, "
        f"$\\lVert w_{{ij}}\\, v_j W_O \\rVert$: more than {percent_text(1 - DIFFERING)} of their queries have the same "
        f"strongest key by both, and the {linked('Rank correlation', 'rank correlation')} of the two is above "
        f"{CORRELATED:g}. Over all heads the strongest keys differ for {share_text(facts.differing)} of the queries, and the "
        f"mean correlation is {correlation_text(facts.correlation)} (1 is the same order). A large weight adds little where "
        "$v_j W_O$ is short (Kobayashi et al. 2020, arXiv:2004.10102)."
    )


def as_csv(told: Told) -> bytes:
    """A line for each head: all its numbers."""
    claims = told.claims
    measured = {
        field.name: array for field in fields(claims) if (array := getattr(claims, field.name)) is not None
    }
    places = heads_in(claims.positive)
    rows = (
        [*place, *("" if np.isnan(table[place]) else float(table[place]) for table in measured.values())]
        for place in places
    )
    return table_csv(["layer", "head", *(name.replace("_", " ") for name in measured)], rows)


def _points(view: View) -> str:
    is_across = runs_across(view.trace.n_layers(view.kind))
    return f"a point for each head; {'across: its layer; up: its number' if is_across else 'across: its number; down: its layer'}"


PART = Part(
    name="Myths",
    address="claims",
    question="Which common claims about attention hold for this sentence?",
    sheets=(
        Sheet(
            screen=lambda view: Told(view=view, claims=cache.claims(view.selection.source, view.kind)),
            rows=(
                lead,
                Picture("claim_symmetric", "Symmetric", _points, symmetric),
                Picture("claim_diagonal", "Diagonal", _points, diagonal),
                Picture("claim_full", "Full", _points, full),
                Picture("claim_contribution", "Contribution", _points, contribution),
            ),
            numbers="All heads",
            csv=as_csv,
        ),
    ),
)
