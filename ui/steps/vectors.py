"""From the text to queries, keys and values: the first three steps."""

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from attnviz.figures.theme import isolated
from ui.steps.walk import Walk, anatomy, check, goes, labels, leads_on, picture, size
from ui.text import literal

if TYPE_CHECKING:
    from attnviz.anatomy import LayerAnatomy


def tokens_step(walk: Walk) -> None:
    """Text to tokens."""
    tokens = walk.view.trace.query_tokens(walk.view.kind)
    added = dict.fromkeys(tokens.labels[at] for at in np.flatnonzero(tokens.is_special))
    goes("the text", f"{len(tokens)} tokens, each with its id")
    st.markdown(
        "A model computes with numbers, so the text is cut into pieces from a fixed vocabulary, each known by its id. "
        "A word that the vocabulary lacks is written as several pieces; in BERT, “\\#\\#” marks one that goes on with a "
        "word." + (f" The tokenizer itself adds {literal(' and '.join(added))}." if added else "")
    )
    st.dataframe(
        {
            "position": np.arange(len(tokens)),
            "token": [isolated(one) for one in tokens.labels],
            "id": tokens.ids,
            "word": ["" if one < 0 else str(one) for one in tokens.word],
        },
        hide_index=True,
        width="content",
        height=min(36 * (len(tokens) + 1), 460),
        key="step_tokens_table",
    )


def vectors_step(walk: Walk) -> None:
    """Tokens to vectors."""
    found = anatomy(walk)
    if found is None:
        return
    layer, _ = walk.place
    names = list(found.ingredients)
    n_token = len(walk.view.trace.query_tokens(walk.view.kind))
    goes(
        f"{n_token} ids",
        f"{n_token} vectors of {_width(found)} numbers"
        if found.hidden is None
        else f"a matrix M, {size(found.hidden)}",
    )
    st.markdown(
        f"Each token is looked up in a table and becomes a vector of {_width(found)} numbers, whatever its length. "
        + (
            f"To it the vectors of its {' and '.join(one for one in names if one != 'token')} are added, or the "
            "model could not tell one order of the words from another. "
            if len(names) > 1
            else "This family adds no position here; it brings positions in elsewhere. "
        )
        + (
            f"Layer {layer} reads what layer {layer - 1} has made of these sums."
            if layer
            else "Normalised, the sum is what layer 0 reads."
        )
    )
    st.latex(r"\mathbf{m}_i = " + " + ".join(rf"\mathbf{{e}}^{{\text{{{one}}}}}_i" for one in names))
    rows = [*names, "sum"]
    own = [found.ingredients[one][walk.query] for one in names]
    parts = np.stack([*own, np.sum(own, axis=0)])
    picture(
        walk,
        "ingredients",
        parts,
        title=f"token {walk.query}, part by part",
        rows=("part", len(rows) - 1),
        columns=("dimension", None),
        labels=rows,
    )
    lengths = ", ".join(
        f"{one} {np.linalg.norm(vector):.2f}" for one, vector in zip(rows, parts, strict=True)
    )
    st.caption(f"Lengths for {walk.label(walk.query, of='query')}: {lengths}.")
    if "position" in names:
        leads_on(walk, "pages/positions.py", "Where the position vectors come from")
    if found.hidden is not None:
        picture(
            walk,
            "hidden",
            found.hidden,
            title=f"M, what layer {layer} reads",
            rows=("token", walk.query),
            columns=("dimension", None),
            labels=labels(walk, "query"),
        )


def projections_step(walk: Walk) -> None:
    """Vectors to queries, keys and values."""
    found = anatomy(walk)
    if found is None:
        return
    layer, head = walk.place
    trace, kind = walk.view.trace, walk.view.kind
    if not found.projections or found.hidden is None or found.sources is None:
        st.info(
            "This family turns queries and keys by their positions after they are made (rotary positions), so they "
            "are not a plain product here; the next steps take them as the attention got them."
        )
        return
    queries, keys, values = (getattr(trace, part)(layer, head, kind) for part in ("query", "key", "value"))
    d_head = queries.shape[1]
    goes(
        f"M, {size(found.hidden)}"
        + (f", and the encoder's output, {size(found.sources)}" if kind == "cross" else ""),
        f"Q, {size(queries)}, K, {size(keys)}, and V, {size(values)}",
    )
    st.markdown(
        f"Three learned matrices make three vectors of {d_head} numbers of every token: a **query**, what it looks "
        "for; a **key**, what it can be found by; a **value**, what it hands on. "
        f"Each of the {trace.n_heads(kind)} heads has its own three, and so sees its own {d_head} numbers. "
        "All three are made from the same text here."
        if kind != "cross"
        else f"Three learned matrices make vectors of {d_head} numbers: queries, what a token looks for, from the decoder's "
        "tokens; keys, what a token can be found by, and values, what it hands on, from the encoder's."
    )
    st.latex(r"Q = M W_Q + b_Q, \quad K = M W_K + b_K, \quad V = M W_V + b_V")
    of_keys = "the encoder's output" if kind == "cross" else "M"
    sides = (
        ("query", "Q", "M", found.hidden, walk.query),
        ("key", "K", of_keys, found.sources, walk.key),
        ("value", "V", of_keys, found.sources, walk.key),
    )
    for part, letter, source, given, picked in sides:
        linear = found.projections.get(part)  # type: ignore[call-overload]
        if linear is None:
            continue
        made = given @ linear.weight[head]
        made = made if linear.bias is None else made + linear.bias[head]
        expected = {"query": queries, "key": keys, "value": values}[part]
        columns = st.columns(3)
        with columns[0]:
            picture(
                walk,
                f"{part}_given",
                given,
                title=source,
                rows=("token", picked),
                columns=("dimension", None),
            )
        with columns[1]:
            picture(
                walk,
                f"{part}_weight",
                linear.weight[head],
                title=f"W<sub>{letter}</sub>",
                rows=("dimension", None),
                columns=("dimension", None),
            )
        with columns[2]:
            picture(
                walk,
                f"{part}_made",
                expected,
                title=letter,
                rows=("token", picked),
                columns=("dimension", None),
            )
        check(made, expected, f"{letter} multiplied out here equals the model's")


def _width(found: "LayerAnatomy") -> int:
    return int(next(iter(found.ingredients.values())).shape[1])
