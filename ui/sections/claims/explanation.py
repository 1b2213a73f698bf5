"""The claim that weights explain the answer, measured."""

import numpy as np
import streamlit as st

from attnviz.figures.numbers import share_text
from attnviz.heads.claims import Claims
from attnviz.records import known
from ui.page.view import View
from ui.sections.claims.picture import figure, heads_say
from ui.words.findings import correlation_text
from ui.words.glossary import linked


def explanation(view: View, claims: Claims) -> None:
    """Claim 12."""
    if claims.other_strongest is None or claims.rank_agreement is None:
        st.markdown(
            "This family's W\\_O is not known to attnviz, so weights cannot be compared with norm-based weights."
        )
    else:
        found = claims.other_strongest
        st.markdown(
            f"{heads_say(known(found) < 0.1)} have the same strongest key by weight and by {linked('Norm-based weight')}, "
            f"$\\lVert w_{{ij}}\\, v_j W_O \\rVert$, for more than nine queries in ten. Over all heads the two differ for "
            f"{share_text(float(np.nanmean(found)))} of the queries; the mean {linked('Rank correlation', 'rank correlation')} of "
            f"the two is {correlation_text(float(np.nanmean(claims.rank_agreement)))} (1 is the same order). A large weight "
            "contributes little where $v_j W_O$ is short (Kobayashi et al. 2020, arXiv:2004.10102)."
        )
        figure(
            view,
            "explanation",
            found,
            "share of the queries with another strongest key by norm",
        )
    st.markdown(
        "Nor do norms explain an answer: many heads can be removed with little change in accuracy (Michel et al. 2019, "
        "arXiv:1905.10650); other weights can give the same answer (Jain and Wallace 2019, arXiv:1902.10186); whether "
        "that settles it is disputed (Wiegreffe and Pinter 2019, arXiv:1908.04626). Weights say where a head takes its "
        "mixture from, no more."
    )
