"""From the text to queries, keys and values: the first three steps."""

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from attnviz.figures.theme import isolated
from ui.steps.walk import Walk, anatomy, check, goes, labels, leads_on, picture, size, source
from ui.text import literal

if TYPE_CHECKING:
    from attnviz.anatomy import LayerAnatomy


def tokens_step(walk: Walk) -> None:
    """Text to tokens."""
    tokens = walk.view.trace.query_tokens(walk.view.kind)
    added = dict.fromkeys(tokens.labels[at] for at in np.flatnonzero(tokens.is_special & (tokens.word < 0)))
    goes("the text", f"{len(tokens)} tokens, each with its id")
    st.markdown(
        f"A model computes with numbers, so the text is cut into {walk.term('Token', 'tokens')} from a fixed "
        "vocabulary, each known by its id. A word that the vocabulary lacks is written as several pieces; in BERT, "
        "“\\#\\#” marks one that goes on with a word."
        + (
            f" The {walk.term('Special token', 'special tokens')} {literal(' and '.join(added))} are none of the "
            "text's: the tokenizer adds them."
            if len(added) > 1
            else f" The {walk.term('Special token')} {literal(*added)} is none of the text's: the tokenizer adds it."
            if added
            else ""
        )
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
    source(
        "Words in pieces: Sennrich et al. 2016, arXiv:1508.07909; as BERT does it: Wu et al. 2016, arXiv:1609.08144, "
        "section 4.1",
        "[CLS], [SEP] and [MASK]: Devlin et al. 2018, arXiv:1810.04805, section 3",
    )


def vectors_step(walk: Walk) -> None:
    """Tokens to vectors."""
    found = anatomy(walk)
    if found is None:
        return
    layer, _ = walk.place
    names = list(found.ingredients)
    own = [found.ingredients[one] for one in names]
    summed = np.sum(own, axis=0)
    n_token, width = summed.shape
    goes(
        "1 id" if n_token == 1 else f"{n_token} ids",
        f"{n_token} vectors of {width} numbers"
        if found.hidden is None
        else f"a matrix M, {size(found.hidden)}",
    )
    st.markdown(" ".join(_of_vectors(walk, found)))
    st.latex(r"\mathbf{x}_i = " + " + ".join(rf"\mathbf{{e}}^{{\text{{{one}}}}}_i" for one in names))
    rows = [*names, "sum"]
    parts = np.stack([*(one[walk.query] for one in own), summed[walk.query]])
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
    _normalised(walk, found, summed)
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
    source(
        "Vaswani et al. 2017, arXiv:1706.03762, "
        + ("sections 3.4 and 3.5" if "position" in names else "section 3.4"),
        *(["segments: Devlin et al. 2018, arXiv:1810.04805, section 3"] if "segment" in names else []),
        *(["normalisation: Ba et al. 2016, arXiv:1607.06450, section 3"] if found.norm else []),
    )


def _of_vectors(walk: Walk, found: "LayerAnatomy") -> list[str]:
    """What the step does, a sentence each."""
    layer, _ = walk.place
    width = next(iter(found.ingredients.values())).shape[1]
    said = [
        f"Each token is looked up in a table and becomes a {walk.term('Vector')} of {width} numbers, whatever its length."
    ]
    if "position" in found.ingredients:
        added = f"To it a {walk.term('Position vector', 'vector for its position')} is added"
        if "segment" in found.ingredients:
            added += f", and one for its {walk.term('Segment')}, the sentence of a pair that it is in"
        said.append(
            f"{added}; without positions the model could not tell one order of the words from another."
        )
    else:
        said.append(
            "This family adds no vector for the position here; it brings positions in where queries meet keys."
        )
    if found.norm is not None:
        said.append(
            "The sum is normalised, so that every token starts from the same spread: its mean $\\mu$ is taken off, it is "
            "divided by its standard deviation $\\sigma$, and learned numbers $\\gamma$ and $\\beta$ stretch and move "
            "each dimension."
        )
    if layer or walk.view.kind == "cross":
        before = (
            "layer 0"
            if layer == 1
            else f"layers 0 to {layer - 1}"
            if layer
            else "the self-attention before it"
        )
        said.append(f"M, which layer {layer} reads, is what {before} made of this.")
    elif found.hidden is not None and found.hidden.shape[1] != width:  # ALBERT, ELECTRA
        said.append(f"A matrix makes {found.hidden.shape[1]} numbers of these: M, which layer 0 reads.")
    elif found.hidden is not None:
        said.append("That is M, which layer 0 reads.")
    return said


def _normalised(walk: Walk, found: "LayerAnatomy", summed: np.ndarray) -> None:
    """The sum of each token normalised, beside what the model made of it."""
    norm = found.norm
    if norm is None:
        is_read = walk.view.kind != "cross" and not walk.place[0]
        if is_read and found.hidden is not None and found.hidden.shape == summed.shape:
            check(summed, found.hidden, f"the sums of all {len(summed):,} tokens are what layer 0 reads")
        return
    vectors = summed.astype(np.float64)
    mean, variance = vectors.mean(axis=1, keepdims=True), vectors.var(axis=1, keepdims=True)
    made = (vectors - mean) / np.sqrt(variance + norm.eps) * norm.weight + (
        0 if norm.bias is None else norm.bias
    )
    query = walk.query
    st.latex(
        r"\mathrm{norm}(\mathbf{x}_i) = \gamma \odot \frac{\mathbf{x}_i - \mu_i}{\sqrt{\sigma_i^2 + \epsilon}} + \beta,"
        rf" \qquad \mu_{{{query}}} = {mean[query, 0]:.4f}, \quad \sigma_{{{query}}} = {variance[query, 0] ** 0.5:.4f}"
    )
    check(
        made,
        norm.made,
        f"the sums of all {len(made):,} tokens, normalised here, are what the model made of them",
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
    n_heads = trace.n_heads(kind)
    own = f"{head * d_head} to {(head + 1) * d_head - 1}"
    first, second, third = (walk.term(one, f"**{one.lower()}**") for one in ("Query", "Key", "Value"))
    st.markdown(
        f"Three learned matrices make three vectors of {d_head} numbers of every token: a {first}, what it looks "
        f"for; a {second}, what it can be found by; a {third}, what it hands on. "
        + (
            "Queries are made from the decoder's tokens, keys and values from the encoder's. "
            if kind == "cross"
            else "All three are made from the same text here. "
        )
        + f"For all {n_heads} {walk.term('Head', 'heads')} together $W_Q$ has {n_heads} × {d_head} = {n_heads * d_head} "
        f"columns; head {head} sees columns {own} of them, and so has queries, keys and values of its own."
    )
    st.latex(r"Q = M W_Q + b_Q, \quad K = M W_K + b_K, \quad V = M W_V + b_V")
    of_keys = "the encoder's output" if kind == "cross" else "M"
    sides = (
        ("query", "Q", "M", found.hidden, walk.query),
        ("key", "K", of_keys, found.sources, walk.key),
        ("value", "V", of_keys, found.sources, walk.key),
    )
    for part, letter, made_from, given, picked in sides:
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
                title=made_from,
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
    source("Vaswani et al. 2017, arXiv:1706.03762, section 3.2.2")
