"""From the text to queries, keys and values: the first three steps."""

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from jaxtyping import Float

from attnviz.figures.labels import isolated
from attnviz.figures.numbers import counted, number_text
from ui.rooms.how_it_works.step_by_step.walk import Walk, anatomy, compare, goes, picture, size, source
from ui.runtime import cache
from ui.shell.navigation import link_to
from ui.shell.table import whole_rows
from ui.words.literal import literal

if TYPE_CHECKING:
    from attnviz.model.anatomy import LayerAnatomy
    from attnviz.model.normalisation import NormalisationMethod

_NORM_NAMES: "dict[NormalisationMethod, str]" = {"layer": "LayerNorm", "rms": "RMSNorm"}
_NORM_SOURCES: "dict[NormalisationMethod, str]" = {
    "layer": "Ba et al. 2016, arXiv:1607.06450, section 3",
    "rms": "Zhang and Sennrich 2019, arXiv:1910.07467, equation 4",
}


def tokens_step(walk: Walk) -> None:
    """Text to tokens."""
    tokens = walk.view.query_tokens
    added = dict.fromkeys(tokens.labels[at] for at in np.flatnonzero(tokens.is_added))
    goes("the text", f"{counted(len(tokens), 'token')}, each with its id")
    st.markdown(
        f"A model computes with numbers, so the text is cut into {walk.term('Token', 'tokens')} from a fixed "
        "vocabulary, each known by its id. A word that the vocabulary lacks is written as several pieces; in BERT, "
        "“\\#\\#” marks a piece that continues a word. “␣” is a space that belongs to a token."
        + (
            f" The {walk.term('Special token', 'special tokens')} {literal(' and '.join(added))} are not part of "
            "the text: the tokenizer adds them."
            if len(added) > 1
            else f" The {walk.term('Special token')} {literal(*added)} is not part of the text: the tokenizer adds it."
            if added
            else ""
        )
    )
    st.dataframe(
        {
            "position": np.arange(len(tokens)),
            "token": [isolated(label) for label in tokens.labels],
            "id": tokens.ids,
            "word": ["" if word < 0 else str(word) for word in tokens.word],
        },
        hide_index=True,
        width="content",
        height=whole_rows(len(tokens)),
        key="step_tokens_table",
    )
    source(
        "Words in pieces: Sennrich et al. 2016, arXiv:1508.07909; as BERT does it: Wu et al. 2016, arXiv:1609.08144, "
        "section 4.1",
        "[CLS], [SEP] and [MASK]: Devlin et al. 2018, arXiv:1810.04805, section 3",
    )


def vectors_step(walk: Walk) -> None:
    """Tokens to vectors."""
    layer_anatomy = anatomy(walk)
    if layer_anatomy is None:
        return
    layer, _ = walk.place
    read = _read(walk, layer_anatomy)
    own = list(layer_anatomy.ingredients.values())
    # RoBERTa keeps a segment table with a single row, which distinguishes no tokens.
    names = [
        "constant" if ingredient == "segment" and _has_one_segment(walk) else ingredient
        for ingredient in layer_anatomy.ingredients
    ]
    summed = np.sum(own, axis=0)
    n_token, width = summed.shape
    goes(
        counted(n_token, "id"),
        f"{counted(n_token, 'vector')} of {width} numbers" if read is None else f"a matrix M, {size(read)}",
    )
    st.markdown(" ".join(of_vectors(walk, layer_anatomy)))
    st.latex(r"\mathbf{x}_i = " + " + ".join(rf"\mathbf{{e}}^{{\text{{{name}}}}}_i" for name in names))
    rows = [*names, "sum"]
    parts = np.stack([*(vectors[walk.query] for vectors in own), summed[walk.query]])
    title = f"token {walk.query}, part by part"
    picture(walk, "ingredients", parts, title, ("part", len(rows) - 1), labels=rows)
    lengths = ", ".join(
        f"{name} {number_text(float(np.linalg.norm(vector)))}"
        for name, vector in zip(rows, parts, strict=True)
    )
    st.caption(f"Lengths for {walk.label(walk.query, of='query')}: {lengths}.")
    if "position" in names:
        link_to("Positions", label="Where the position vectors come from")
    _normalised(walk, layer_anatomy, summed, read)
    if read is not None:
        title = f"M, what layer {layer} reads"
        picture(walk, "hidden", read, title, ("token", walk.query), labels=walk.labels("query"))
    source(
        "Vaswani et al. 2017, arXiv:1706.03762, "
        + ("sections 3.4 and 3.5" if "position" in names else "section 3.4"),
        *(["segments: Devlin et al. 2018, arXiv:1810.04805, section 3"] if "segment" in names else []),
        *([f"normalisation: {_NORM_SOURCES[layer_anatomy.norm.method]}"] if layer_anatomy.norm else []),
    )


def _read(walk: Walk, layer_anatomy: "LayerAnatomy") -> np.ndarray | None:
    """M, the layer's input for the text that the queries come from; None if unknown."""
    return (
        layer_anatomy.sources
        if layer_anatomy.hidden is None and walk.view.kind != "cross"
        else layer_anatomy.hidden
    )


def of_vectors(walk: Walk, layer_anatomy: "LayerAnatomy") -> list[str]:
    """What the step does, a sentence each."""
    layer, _ = walk.place
    width = next(iter(layer_anatomy.ingredients.values())).shape[1]
    sentences = [
        f"Each token is looked up in a table and becomes a {walk.term('Vector')} of {width} numbers, whatever its length."
    ]
    if "position" in layer_anatomy.ingredients:
        added = f"To it a {walk.term('Position vector', 'vector for its position')} is added"
        if "segment" in layer_anatomy.ingredients and _has_one_segment(walk):
            added += ", and one that is the same for every token"
        elif "segment" in layer_anatomy.ingredients:
            added += f", and one for its {walk.term('Segment')}, the sentence of a pair that it is in"
        without = (
            "an encoder could not tell one order of the words from another"
            if walk.view.kind == "encoder"
            else "only the causal mask would tell one order of the words from another"
        )
        sentences.append(f"{added}; without positions {without}.")
    elif layer_anatomy.leads_to_first_layer is not None:
        sentences.append(
            "This family adds no vector for the position here; it brings positions in where queries meet keys."
        )
    if layer_anatomy.norm is not None:
        learned = (
            "$\\gamma$ stretch each dimension"
            if layer_anatomy.norm.bias is None
            else "$\\gamma$ and $\\beta$ stretch and move each dimension"
        )
        sentences.append(
            "The sum is normalised, so that every token starts from the same spread: its mean $\\mu$ is subtracted, it is "
            f"divided by its standard deviation $\\sigma$, and learned numbers {learned}."
            if layer_anatomy.norm.method == "layer"
            else "It is divided by the root of the mean of its squares, so that every token starts from the same size, and "
            f"learned numbers {learned}."
        )
    if layer or walk.view.kind == "cross":
        before = (
            "layer 0"
            if layer == 1
            else f"layers 0 to {layer - 1}"
            if layer
            else "the self-attention before it"
        )
        sentences.append(f"M, which layer {layer} reads, is what {before} made of this.")
    elif layer_anatomy.leads_to_first_layer == "by a matrix":  # ALBERT, ELECTRA
        sentences.append("A matrix makes M of these, which layer 0 reads.")
    elif layer_anatomy.leads_to_first_layer == "as it is":
        sentences.append("That is M, which layer 0 reads.")
    else:
        sentences.append("What the model does to this before layer 0 reads it, as M, is not followed here.")
    return sentences


def _has_one_segment(walk: Walk) -> bool:
    return getattr(cache.model(walk.view.selection.model).network.config, "type_vocab_size", 0) == 1


def _normalised(
    walk: Walk, layer_anatomy: "LayerAnatomy", summed: np.ndarray, read: np.ndarray | None
) -> None:
    """Each token's sum, normalised, compared with the model's own result."""
    norm, query = layer_anatomy.norm, walk.query
    sums = f"the sums of all {len(summed):,} tokens"
    if norm is None:
        is_read = (
            walk.view.kind != "cross"
            and not walk.place[0]
            and layer_anatomy.leads_to_first_layer == "as it is"
        )
        if is_read and read is not None:
            compare(summed, read, sums, to="what the model gave layer 0")
        return
    vectors = summed.astype(np.float64)
    added = "" if norm.bias is None else r" + \beta"
    if norm.method == "layer":
        st.latex(
            r"\mathrm{norm}(\mathbf{x}_i) = \gamma \odot \frac{\mathbf{x}_i - \mu_i}{\sqrt{\sigma_i^2 + \epsilon}}"
            + rf"{added}, \qquad {mean_and_spread(vectors[query], query)}"
        )
    else:
        st.latex(
            r"\mathrm{norm}(\mathbf{x}_i) = \gamma \odot \frac{\mathbf{x}_i}{\sqrt{r_i^2 + \epsilon}}"
            + rf"{added}, \qquad r_i = \sqrt{{\tfrac{{1}}{{{summed.shape[1]}}} \sum_d x_{{i,d}}^2}},"
            + rf" \quad {root(vectors[query], query)}"
        )
    compare(
        norm.of(summed),
        norm.made,
        f"{sums}, normalised",
        to=f"what the model's own {_NORM_NAMES[norm.method]} gave",
    )


def mean_and_spread(vector: Float[np.ndarray, " d_model"], query: int) -> str:
    """Mean and standard deviation of a token's numbers, in LaTeX."""
    mean, spread = number_text(float(vector.mean())), number_text(float(vector.std()))
    return rf"\mu_{{{query}}} \approx {mean}, \quad \sigma_{{{query}}} \approx {spread}"


def root(vector: Float[np.ndarray, " d_model"], query: int) -> str:
    """The root of the mean of the squares of a token's numbers, in LaTeX."""
    return rf"r_{{{query}}} \approx {number_text(float(np.sqrt((vector**2).mean())))}"


def projections_step(walk: Walk) -> None:
    """Vectors to queries, keys and values."""
    layer_anatomy = anatomy(walk)
    if layer_anatomy is None:
        return
    layer, head = walk.place
    trace, kind = walk.view.trace, walk.view.kind
    if not layer_anatomy.projections or layer_anatomy.hidden is None or layer_anatomy.sources is None:
        st.info(
            "This family does more than multiply by a matrix to make its queries and keys, such as turning them by "
            "their positions (rotary positions); the next steps take them as the attention got them."
        )
        return
    queries, keys, values = map(walk.of, ("query", "key", "value"))
    d_head = queries.shape[1]
    goes(
        f"M, {size(layer_anatomy.hidden)}"
        + (f", and the encoder's output, {size(layer_anatomy.sources)}" if kind == "cross" else ""),
        f"Q, {size(queries)}, K, {size(keys)}, and V, {size(values)}",
    )
    n_heads = trace.n_heads(layer, kind)
    own = f"{head * d_head} to {(head + 1) * d_head - 1}"
    shared = n_heads // len(trace.attention(layer, kind).key)
    keys_and_values = (
        "and keys and values too" if shared == 1 else f"while {shared} heads share their keys and values"
    )
    first, second, third = (walk.term(role, f"**{role.lower()}**") for role in ("Query", "Key", "Value"))
    st.markdown(
        f"Three learned matrices make three vectors of {d_head} numbers of every token: a {first}, what it looks "
        f"for; a {second}, what it can be found by; a {third}, what it hands on. "
        + (
            "Queries are made from the decoder's tokens, keys and values from the encoder's. "
            if kind == "cross"
            else "All three are made from the same text here. "
        )
        + f"For all {n_heads} {walk.term('Head', 'heads')} together $W_Q$ has {n_heads} × {d_head} = {n_heads * d_head} "
        f"columns; head {head} sees columns {own} of them, and so has queries of its own, {keys_and_values}."
    )
    st.latex(r"Q = M W_Q + b_Q, \quad K = M W_K + b_K, \quad V = M W_V + b_V")
    of_keys = "the encoder's output" if kind == "cross" else "M"
    sides = (
        ("query", "Q", "M", layer_anatomy.hidden, walk.query),
        ("key", "K", of_keys, layer_anatomy.sources, walk.key),
        ("value", "V", of_keys, layer_anatomy.sources, walk.key),
    )
    for part, letter, made_from, given, picked in sides:
        linear = layer_anatomy.projections.get(part)  # type: ignore[call-overload]
        if linear is None:
            continue
        made = given @ linear.weight[head]
        made = made if linear.bias is None else made + linear.bias[head]
        expected = {"query": queries, "key": keys, "value": values}[part]
        for column, name, cells, title, row in zip(
            st.columns(3),
            ("given", "weight", "made"),
            (given, linear.weight[head], expected),
            (made_from, f"W<sub>{letter}</sub>", letter),
            (("token", picked), ("dimension", None), ("token", picked)),
            strict=True,
        ):
            with column:
                picture(walk, f"{part}_{name}", cells, title, row)
        compare(made, expected, f"{letter}, multiplied out")
    source("Vaswani et al. 2017, arXiv:1706.03762, section 3.2.2")
