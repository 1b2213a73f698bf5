"""What do the words mean? The field's terms, each with its number for the reader's own sentence."""

import numpy as np
import streamlit as st
from scipy.special import entr
from sklearn.metrics.pairwise import cosine_similarity

from attnviz.figures.numbers import counted, number_text, share_text
from attnviz.records import LONG
from ui.components.page import anchor
from ui.part import Part, Sheet, pages, room_of
from ui.rooms.how_it_works.step_by_step.walk import key_of
from ui.shell.navigation import link_to
from ui.shell.view import View
from ui.words.glossary import GROUPS, Term
from ui.words.literal import literal, quoted


def numbers_here(view: View) -> dict[str, str]:
    """What some of the terms are for the text, head and pair on screen; nothing of a long text."""
    if len(view.query_tokens) > LONG:
        return {}
    selection, trace = view.selection, view.trace
    (layer, head), query = selection.place, view.query
    pattern = trace.pattern(layer, head, view.kind)
    key = key_of(view)
    call = trace.attention(layer, view.kind)
    queries, keys = view.query_tokens, view.key_tokens
    d_model = trace.last_hidden_state.shape[1]
    row = pattern.weights[query].astype(np.float64)
    vectors = call.query[head, [query]], trace.key(layer, head, view.kind)[[key]]
    pair = f"{quoted(queries.labels[query])} and {quoted(keys.labels[key])}"
    assert pattern.scores is not None
    n_seen = int(pattern.allowed[query].sum())
    special = [label for label, is_special in zip(keys.labels, keys.is_special, strict=True) if is_special]
    return {
        "Token": f"{len(keys)} in this text",
        "Special token": f"{', '.join(map(literal, special)) or 'none'} in this text"
        if len(special) < 9
        else f"{len(special)} in this text",
        "Vector": f"{d_model} numbers for each token",
        "Layer": f"this model has {trace.n_layers(view.kind)}; layer {layer} is selected",
        "Head": f"{trace.n_heads(layer, view.kind)} in layer {layer}; head {head} is selected",
        "Query": f"{len(queries)} × {call.query.shape[2]} numbers; {quoted(queries.labels[query])} is selected",
        "Key": f"{len(keys)} × {call.key.shape[2]} numbers; {quoted(keys.labels[key])} is selected",
        "Value": f"{len(keys)} × {call.value.shape[2]} numbers",
        "Cosine similarity": f"the query and key of {pair}: {number_text(cosine_similarity(*vectors).item())}",
        "Score": f"{pair}: {number_text(float(pattern.scores[query, key]))}",
        "Weight": f"{pair}: {share_text(float(row[key]))}",
        "Softmax": f"the weights of {quoted(queries.labels[query])} sum to {row.sum():.6f}",
        "Attention matrix": f"{len(queries)} × {len(keys)} weights",
        "Mask": f"{int(pattern.allowed.sum()):,} of {pattern.allowed.size:,} cells may be seen",
        "Entropy": f"the row of {quoted(queries.labels[query])}, which sees {counted(n_seen, 'key')}: "
        f"{share_text(float(entr(row).sum() / np.log(max(2, n_seen))))} of ln n",
    }


def _entry(term: Term, here: str) -> None:
    """One entry: the words, the formula, the number, the page that shows it and the source."""
    st.subheader(term.name, anchor=term.anchor)
    st.markdown(literal(term.means))
    if term.formula:
        st.latex(term.formula)
    if here:
        st.markdown(f":material/data_object: Here: {here}.")
    with st.container(horizontal=True, vertical_alignment="center"):
        if term.page:
            part = next(part for part in pages() if part.file == term.page)
            link_to(
                part.name,
                label=part.place,
                help=f"Shows it in {room_of(part).name}, with the current selection.",
            )
        if term.source:
            st.caption(literal(term.source))


def entries(view: View) -> None:
    """All terms, by group."""
    here = numbers_here(view)
    st.markdown(" · ".join(f"[{group}](#{group.lower().replace(' ', '-')})" for group in GROUPS))
    for group, terms in GROUPS.items():
        st.header(group, anchor=group.lower().replace(" ", "-"), divider="gray")
        columns = st.columns(2, gap="large")
        for number, term in enumerate(terms):
            with columns[number * 2 // len(terms)]:
                _entry(term, here.get(term.name, ""))
    anchor()


PART = Part(
    name="Glossary",
    address="glossary",
    question="What do the words mean?",
    longest=8192,
    asks=(),
    sheets=(Sheet(rows=(entries,)),),
)
