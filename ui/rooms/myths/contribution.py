"""The claim that a key with a larger weight adds more to the output, measured."""

import streamlit as st

from attnviz.figures.numbers import percent_text, share_text
from attnviz.heads import claim_facts
from attnviz.heads.claim_facts import CORRELATED, DIFFERING, Contribution
from attnviz.heads.claims import Claims
from ui.rooms.myths.picture import figure, heads_say
from ui.shell.view import View
from ui.words.findings import correlation_text
from ui.words.glossary import linked


def contribution(view: View, claims: Claims) -> None:
    """Whether the claim holds, the heads, and what neither weights nor norms show."""
    facts = claim_facts.contribution(claims)
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
