"""The claim that a token looks at itself most, measured."""

import numpy as np
import streamlit as st

from attnviz.figures.numbers import share_text
from attnviz.heads.claims import Claims
from attnviz.records import known
from ui.page.view import View
from ui.sections.claims.picture import figure, heads_say
from ui.words.glossary import linked


def diagonal(view: View, claims: Claims) -> None:
    """Claim 10."""
    itself = claims.on_itself
    kinds = {"the query's own token": itself, "the token before or after": claims.on_neighbour}
    order = ["own token", "neighbour", "another"]
    if view.trace.key_tokens(view.kind).is_special.any():
        kinds[linked("Special token", "a special token")] = claims.on_special
        order.insert(1, "special token")
    shares = {said: float(np.nanmean(found)) for said, found in kinds.items()}
    listed = [
        f"{said} for {share_text(shares[said])}" for said in sorted(shares, key=lambda one: -shares[one])
    ]
    listed[0] += " of the queries"
    first = " The first token, which sees no other, is among the queries." * (view.kind == "decoder")
    st.markdown(
        f"{heads_say(known(itself) > 0.5)} have more than half of their queries attend most to themselves. Over all heads, the "
        f"key with the largest weight is {', '.join(listed)}, and another token for "
        f"{share_text(max(0.0, 1 - sum(shares.values())))}. A query counts once, as the first of these that fits: "
        f"{', '.join(order)}.{first} Compare Clark et al. 2019, arXiv:1906.04341, sections 3.1 and 3.2."
    )
    figure(view, "diagonal", itself, "share of the queries that attend most to themselves")
