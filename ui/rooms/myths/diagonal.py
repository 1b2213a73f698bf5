"""The claim that a token attends most to itself, measured."""

import streamlit as st

from attnviz.figures.numbers import share_text
from attnviz.heads import claim_facts
from attnviz.heads.claim_facts import Diagonal
from attnviz.heads.claims import Claims
from ui.rooms.myths.picture import figure, heads_say
from ui.shell.view import View
from ui.words.glossary import linked


def diagonal(view: View, claims: Claims) -> None:
    """Whether the claim holds, where queries attend instead, and the heads."""
    is_special = view.key_tokens.is_special
    is_decoder = view.kind == "decoder"
    facts = claim_facts.diagonal(
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
