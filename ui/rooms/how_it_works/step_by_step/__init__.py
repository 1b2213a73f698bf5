"""How does attention get from the sentence to its output? A head as a film, and every step with the model's own numbers."""

import numpy as np
import streamlit as st

from attnviz.figures.labels import isolated, label_at, shortened
from attnviz.figures.numbers import counted, number_text, share_text
from attnviz.heads import QueryPath, query_path
from ui.choice import state, widgets
from ui.components.head_film import MOST_CELLS, FilmRow, darkest_from, head_film
from ui.part import Block, Part, Picture, Sheet
from ui.rooms.explore.pair import pick_key, pick_query
from ui.rooms.how_it_works.step_by_step.to_output import (
    heads_step,
    mean_step,
    row_step,
    score_step,
    softmax_step,
)
from ui.rooms.how_it_works.step_by_step.to_vectors import projections_step, tokens_step, vectors_step
from ui.rooms.how_it_works.step_by_step.walk import Walk, key_of, listed_keys
from ui.runtime import cache
from ui.shell.export.captions import SIGNED
from ui.shell.view import View

BEGINS = (0, 0, 0, 1, 3, 3, 4, 6, 6)
"""The film's stage for each step of the page; the first entry is for all steps together."""


def film(walk: Walk) -> None:
    """The path of the selected query through the selected head."""
    view = walk.view
    with st.container(key="about_finding", horizontal=True, vertical_alignment="center"):
        st.header("The head as a film", anchor=False)
        pick_key(view, walk.key)
    path = query_path(view.trace, walk.query, *walk.place, view.kind)
    keys, queries = view.key_tokens, view.query_tokens
    hidden, sources = _vectors(walk)
    shown = np.array(listed_keys(path.weights, walk.key).positions)
    exponentials = path.exponentials
    rows = [
        FilmRow(
            label=label_at(shortened(keys.labels[at]), at),
            is_special=bool(keys.is_special[at]),
            is_picked=int(at) == walk.key,
            x=None if sources is None else sources[at],
            key=path.key[at],
            value=path.value[at],
            product=float(path.products[at]),
            score=float(path.scores[at]),
            exponential=float(exponentials[at]),
            weight=float(path.weights[at]),
        )
        for at in shown
    ]
    n_others = len(path.weights) - len(shown)
    if n_others:
        weight, mean = path.others(shown)
        rows.append(
            FilmRow(
                label=counted(n_others, "other"),
                is_special=True,
                value=mean,
                exponential=float(np.delete(exponentials, shown).sum()),
                weight=weight,
            )
        )
    head_film(
        rows,
        name=f"The path of {_quoted(queries.labels[walk.query])} through {walk.place.words}",
        label=label_at(shortened(queries.labels[walk.query]), walk.query),
        x=None if hidden is None else hidden[walk.query],
        query=path.query,
        output=path.output,
        total=float(path.weights.sum(dtype=np.float64)),
        exponentials=float(exponentials.sum()),
        captions=_captions(walk, path, hidden, n_others),
        score=_score(path),
        begin=BEGINS[view.selection.step],
        theme=view.theme,
    )
    darkest = darkest_from([None if hidden is None else hidden[walk.query], *(row.x for row in rows)])
    st.caption(_note(path, hidden, shown, darkest))


def _vectors(walk: Walk) -> tuple[np.ndarray | None, np.ndarray | None]:
    """What the layer reads, for the queries and for the keys; None if unknown.

    In self-attention, queries and keys are made from the same vectors, so either gives the other.
    """
    layer_anatomy = walk.anatomy
    if layer_anatomy is None:
        return None, None
    if walk.view.kind == "cross":
        return layer_anatomy.hidden, layer_anatomy.sources
    read = layer_anatomy.sources if layer_anatomy.hidden is None else layer_anatomy.hidden
    return read, read


def _score(path: QueryPath) -> str:
    """The formula of a score."""
    scaled = (
        f"q · k / √{len(path.query)}"
        if path.divides_by_root
        else f"q · k × {path.scale:.3g}"
        if path.scale != 1
        else "q · k"
    )
    if path.softcap is not None:
        scaled = f"{path.softcap:g} tanh({scaled} / {path.softcap:g})"
    return scaled if path.bias is None else f"{scaled} + bias"


def _captions(walk: Walk, path: QueryPath, hidden: np.ndarray | None, n_others: int) -> list[str]:
    """What each stage shows, in a sentence or two with a number."""
    place = walk.place
    query = _quoted(walk.view.query_tokens.labels[walk.query])
    key = _quoted(walk.view.key_tokens.labels[walk.key])
    product, score, weight = (float(stage[walk.key]) for stage in (path.products, path.scores, path.weights))
    n_keys = len(path.weights)
    return [
        ""
        if hidden is None
        else f"Layer {place.layer} reads {query} as a vector x of {hidden.shape[1]:,} numbers. The first is "
        f"{number_text(float(hidden[walk.query, 0]))}.",
        _made(walk, path, query, hidden),
        f"q · k of {query} and {key} = {number_text(product)}: their numbers are multiplied one by one and added up. The "
        f"same for every key gives {counted(n_keys, 'product')}.",
        _scaled(path, query, key, product, score, walk.key),
        f"Softmax turns the scores into weights that sum to {number_text(float(path.weights.sum(dtype=np.float64)))}: "
        f"{query} gives {share_text(weight)} of its attention to {key}.",
        f"Each value is multiplied by its weight: that of {key} by {number_text(weight)}. The larger its "
        "weight, the more opaque a strip.",
        f"The sum of {counted(n_keys, 'weighted value')} is the output of {place.words} for {query}: {len(path.output)} "
        f"numbers. The first is {number_text(float(path.output[0]))}."
        + (f" What is not listed, {counted(n_others, 'key')}, is part of it." if n_others else ""),
    ]


def _made(walk: Walk, path: QueryPath, query: str, hidden: np.ndarray | None) -> str:
    """How query, keys and values are computed, as far as known."""
    first = number_text(float(path.query[0]))
    numbers = f"{len(path.query)} numbers. The first is {first}."
    layer_anatomy = walk.anatomy
    if layer_anatomy is not None and "query" in layer_anatomy.projections:
        linear = layer_anatomy.projections["query"]
        formula = "x W_Q" if linear.bias is None else "x W_Q + b_Q"
        return f"q = {formula}, the query of {query}, has {numbers} Every token has a key k and a value v as well."
    sentence = f"The query q of {query}, as the attention gets it, has {numbers} Every token has a key k and a value v as well."
    return (
        sentence
        if hidden is None
        else f"{sentence} This family does more than multiply x by a matrix to make them."
    )


def _scaled(path: QueryPath, query: str, key: str, product: float, score: float, at: int) -> str:
    """How scores are computed from products."""
    if not np.isfinite(score):
        return (
            f"{query} may not see {key}: this key is masked, whatever its product. A masked key has weight 0."
        )
    root = number_text(len(path.query) ** 0.5)
    scaled = number_text(product * path.scale)
    does = (
        f"Divided by √{len(path.query)} = {root}"
        if path.divides_by_root
        else f"Multiplied by this model's scale, {path.scale:.3g}"
    )
    if path.bias is None and path.softcap is None:
        return f"{does}, the product of {query} and {key} becomes the score {number_text(score)}."
    more = [] if path.softcap is None else [f"softcapped to {path.softcap:g} at most"]
    if path.bias is not None:
        of = "their distance" if path.bias_is_of_distance else "their distance and contents"
        more.append(f"with the bias for {of}, {number_text(float(path.bias[at]))}")
    return f"{does}, the product of {query} and {key} becomes {scaled}; {', '.join(more)}, the score is {number_text(score)}."


def _note(path: QueryPath, hidden: np.ndarray | None, shown: np.ndarray, darkest: float) -> str:
    """What is shortened, left out or coloured."""
    notes = [
        "Blue-green cells are above 0, orange-brown ones below; x, q, k, v and the output each have their own scale."
    ]
    if hidden is not None:
        notes.append(f"Numbers of x beyond ±{number_text(darkest)}, 1% of them, have the strongest tone.")
    sizes = {"x": 0 if hidden is None else hidden.shape[1], "q and k": len(path.query), "v": len(path.output)}
    reduced = [
        f"{-(-size // MOST_CELLS)} numbers of {name}" for name, size in sizes.items() if size > MOST_CELLS
    ]
    if reduced:
        notes.append(f"Each cell shows the number furthest from 0 of {', of '.join(reduced)}.")
    if n_others := len(path.weights) - len(shown):
        share = share_text(path.others(shown)[0])
        notes.append(
            f"{len(shown)} of {len(path.weights):,} keys are listed, the strongest and the selected one; what is not "
            f"listed, {counted(n_others, 'key')}, has {share} of the weight and is part of the output."
        )
    return " ".join(notes)


def _quoted(label: str) -> str:
    """A token within a sentence that is shown without Markdown."""
    return f"“{isolated(shortened(label, 40))}”"


STEPS = (
    ("Tokens", tokens_step),
    ("Vectors", vectors_step),
    ("Queries, keys, values", projections_step),
    ("One score", score_step),
    ("A row of scores", row_step),
    ("Softmax", softmax_step),
    ("Mean of values", mean_step),
    ("All heads", heads_step),
)
_NAMES = {number: f"{number}. {title}" for number, (title, _) in enumerate(STEPS, 1)}


def walk_of(view: View) -> Walk:
    """The selected pair, and the parts of its layer."""
    selection = view.selection
    has_model = not selection.bundle
    anatomy = cache.anatomy(selection.source, selection.layer, view.kind) if has_model else None
    return Walk(view=view, query=view.query, key=key_of(view), anatomy=anatomy)


def every_step(walk: Walk) -> tuple[str, ...]:
    """The selected step, or all of them; returns the keys of those drawn."""
    step = walk.view.selection.step
    st.header("Every step in detail", anchor=False)
    names = {0: "All"} | _NAMES
    st.pills(**widgets.field("step", format_func=names.__getitem__, options=list(names), required=True))
    if step != 1:  # which has no matrix
        st.caption(
            "In every matrix blue-green cells are above 0, orange-brown ones below, and empty ones 0; frames mark the selected query, key "
            "and head. A matrix too large to show is reduced to the largest value in each block."
        )
    numbers = (step,) if step else tuple(_NAMES)
    for number in numbers:
        st.subheader(_NAMES[number])
        with st.container(key=f"step_part_{number}"):
            STEPS[number - 1][1](walk)
    if 0 < step < len(STEPS):
        st.button(
            f"Next: {STEPS[step][0]}",
            icon=":material/chevron_right:",
            on_click=lambda: state.change(step=state.chosen().step + 1),
            key="step_on",
            help="Shows what happens next.",
        )
    return tuple(f"step_part_{number}" for number in numbers)


PART = Part(
    name="Step by step",
    address="step_by_step",
    question="How does a sentence become a matrix, and the matrix an output?",
    sheets=(
        Sheet(
            strip=pick_query,
            screen=walk_of,
            finding=lambda walk: (
                f"{walk.place.title}, from {walk.label(walk.query, of='query')} to {walk.label(walk.key, of='key')}"
            ),
            rows=(
                Picture("head_film", "The head as a film", SIGNED, film),
                Block(
                    every_step,
                    # the first step has no matrix
                    tuple(Picture(f"step_part_{number}", _NAMES[number], SIGNED) for number in range(2, 9)),
                ),
            ),
        ),
    ),
)
