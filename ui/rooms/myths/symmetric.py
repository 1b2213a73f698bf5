"""The claim that attention is symmetric, measured."""

import streamlit as st

from attnviz.heads.claim_facts import ALIKE, APART, symmetry
from attnviz.heads.claims import Claims
from ui.rooms.myths.picture import figure, heads_say
from ui.shell.view import View
from ui.words.glossary import linked


def symmetric(view: View, claims: Claims) -> None:
    """Whether the claim holds, the formula, the heads, and why."""
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
    is_biased = any(view.trace.attention(layer, view.kind).is_biased for layer in range(len(claims.positive)))
    st.markdown(
        f"Why: a {linked('Query')} and a {linked('Key')} are made by different matrices, so nothing makes their "
        f"{linked('Score', 'scores')} symmetric either: median {facts.scores:.2f}. Were queries "
        f"and keys the same vectors{' and no bias added' if is_biased else ''}, scores would be symmetric, but the "
        f"{linked('Softmax')} divides every row by its own sum, so the weights need not be: "
        f"{facts.tied:.2f} in the median head."
    )
