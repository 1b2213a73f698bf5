"""The selected pair: how the products of its vectors add up to its score, and what that score's query and key are made of."""

import numpy as np
import streamlit as st

from attnviz.effects.score_sources import ScoreSources, Source
from attnviz.effects.score_sources import score_sources as split
from attnviz.figures import draw_pair
from attnviz.figures.numbers import power_text, share_text, signed_text, sum_text
from attnviz.figures.score_sources import draw_score_sources
from attnviz.heads.score import Score, score_of
from attnviz.records import Axis
from ui.choice import state, widgets
from ui.components.ranked_list import Row, ranked_list
from ui.rooms.cause.own_run import OwnRun, check_can_run
from ui.rooms.explore.map_settings import MapSettings
from ui.runtime import with_model
from ui.shell.chart import chart
from ui.shell.view import View
from ui.shell.waiting import is_there
from ui.words.extremes import equals, places_of_largest
from ui.words.findings import name
from ui.words.literal import literal

_MOST_ROWS = 8
_PASSES = 4
"""Forward passes for one split."""


def picked_pair(view: View, query: int, key: int) -> None:
    """The vectors of one query and one key as bars, and the products that add up to their score."""
    selection = view.selection
    score = score_of(view.trace, *selection.place, query, key, kind=view.kind)
    names = name(Axis.of(view.query_tokens), query), name(Axis.of(view.key_tokens), key)
    weight = float(view.trace.weights(*selection.place, view.kind)[query, key])
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**Score of {literal(names[0])} and {literal(names[1])}: {literal(_sum(score))}**")
        st.toggle(**widgets.field("largest_first"))
    chart(
        draw_pair(score, largest_first=selection.of(MapSettings).largest_first, theme=view.theme),
        key="pair",
        alt=f"Query {names[0]} and key {names[1]}, dimension by dimension: {_sum(score)}",
    )
    sentence = f"{largest_terms(score)} {_outcome(score, weight)}"
    if selection.unit == "words":
        sentence += " Vectors are of single tokens, even where rows and columns show words."
    st.caption(literal(sentence))


def _sum(score: Score) -> str:
    """The score written as a sum."""
    bias = f" + bias {sum_text(score.bias)}" if score.bias else ""
    total = float(score.terms.sum()) / score.scale if score.scale else 0.0
    product = f"{sum_text(total)} × {score.scale:.3g}"
    if score.softcap is not None:
        product = f"{score.softcap:g} tanh({product} / {score.softcap:g})"
    return f"{product}{bias} = {sum_text(score.value)}"


def largest_terms(score: Score) -> str:
    """How the products make the score, and the dimensions that add and subtract the most; several if tied."""
    most, least = max(0.0, float(score.terms.max())), min(0.0, float(score.terms.min()))
    and_bias = ", and the bias are the score" if score.bias else ", is the score"
    capped = "" if score.softcap is None else f", softcapped to {score.softcap:g} at most"
    sentences = [f"The sum of {len(score.terms)} products, times the scale{capped}{and_bias}."]
    for term, does in ((most, "add"), (least, "subtract")):
        if term:
            which = tuple(np.flatnonzero(score.terms == term).tolist())
            verb = f"{does}s" if len(which) == 1 else f"each {does}"
            sentences.append(f"{_dimensions(which)} {verb} the most, {sum_text(abs(term))}.")
    return " ".join(sentences)


def _dimensions(numbers: tuple[int, ...]) -> str:
    """Dimensions by number, at most two of them."""
    match numbers:
        case (first,):
            return f"Dimension {first}"
        case (first, second):
            return f"Dimensions {first} and {second}"
        case (first, second, *more):
            return f"Dimensions {first}, {second} and {len(more)} more"
    raise AssertionError(numbers)


def _outcome(score: Score, weight: float) -> str:
    if score.allowed:
        return f"The softmax over all keys of the query makes it a weight of {share_text(weight)}."
    return (
        "But the query may not see this key: the mask takes minus infinity in its place, and the weight is 0."
    )


def score_sources(view: View, query: int, key: int) -> tuple[str, ...]:
    """A switch, and if it is on why the head looks there: the score, split by the sources of its query and key."""
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.subheader("Why does the head look there?", anchor=False, width="content")
        st.toggle(**widgets.field("sources"))
    if not view.selection.of(MapSettings).sources:
        return ()
    check_can_run(view, "What the query and the key are made of was asked for")
    run, asked = OwnRun(view=view), (*view.selection.place, query, key)
    work = run.job(
        "score_sources",
        (view.kind, *asked),
        lambda: [(with_model.call, (split, run.model, view.trace, *asked), {"kind": view.kind})],
    )
    if not is_there(work, _PASSES * len(view.query_tokens), "Splitting the score", key="sources_act"):
        return ()
    _show(view, work.results[0])
    return ("score_sources",)


def _show(view: View, score_parts: ScoreSources) -> None:
    names = (
        name(Axis.of(view.query_tokens), score_parts.query),
        name(Axis.of(view.key_tokens), score_parts.key),
    )
    st.markdown(f"**{finding(score_parts, *map(literal, names))}**")
    left, right = st.columns([3, 2], gap="medium")
    with left:
        chart(
            draw_score_sources(score_parts.by_layer(), theme=view.theme),
            key="score_sources",
            alt=f"Parts of the score of {names[0]} and {names[1]}, sources of the query down and of the key across",
        )
    with right:
        for side, parts, title in (
            ("key", score_parts.of_key, "Sources of the key, each with the whole query"),
            ("query", score_parts.of_query, "Sources of the query, each with the whole key"),
        ):
            alone = [(source,) for source in score_parts.sources]
            _list(view, list(zip(alone, parts, strict=True)), side, title)
        ranked: list[tuple[tuple[Source, ...], float]] = [
            ((first, other), part) for first, other, part in score_parts.ranked()[:_MOST_ROWS]
        ]
        _list(view, ranked, "pair", "Largest parts")
    st.caption(literal(note(score_parts)))


def _list(view: View, parts: list[tuple[tuple[Source, ...], float]], side: str, title: str) -> None:
    """The largest parts of one side; a click on a head's row selects the head."""
    shown = sorted(parts, key=lambda row: -abs(row[1]))[:_MOST_ROWS]
    largest = abs(shown[0][1]) or 1.0

    def pick(row: int) -> None:
        match shown[row][0]:
            case (Source(name="head", layer=int(layer), head=int(head)),):
                state.change(layer=layer, head=head)
            case _:
                state.hold()

    st.markdown(f"**{title}**")
    ranked_list(
        [
            Row(
                text=_title(sources[0]),
                key=_title(sources[1]) if len(sources) > 1 else "",
                amount=signed_text(part),
                length=part / largest,
                picked=False,
            )
            for sources, part in shown
        ],
        name=f"{title}, ranked by their part of the score" + "; select a head" * (side != "pair"),
        on_pick=pick,
        theme=view.theme,
        key=f"sources_{side}",
    )


def _title(source: Source) -> str:
    """A source's name, for the beginning of a row."""
    words = source.words.removeprefix("the ")
    return words[0].upper() + words[1:]


def finding(score_parts: ScoreSources, query: str, key: str) -> str:
    """The sources of key and query with the largest part of the score, up or down; the tokens are Markdown."""
    of_sides = []
    for parts in (score_parts.of_key, score_parts.of_query):
        places = places_of_largest(np.abs(parts), sum_text)
        at = places[0][0]
        of_sides.append((score_parts.sources[at], f"{sum_text(float(parts[at]))}{equals(len(places) - 1)}"))
    (of_key, key_part), (of_query, query_part) = of_sides
    has = "have" if of_key.name == "biases" else "has"
    return (
        f"Score {sum_text(score_parts.product)} of {query} and {key}: of the key’s sources {of_key.words} {has} the largest "
        f"part, {key_part}; of the query’s sources {of_query.words}, {query_part}"
    )


def note(score_parts: ScoreSources) -> str:
    """The sum of the parts compared with the model's own number, what the parts contain, and what they do not show."""
    gap = power_text(abs(score_parts.gap))
    sentences = [
        f"All parts sum to {sum_text(score_parts.summed)}, {gap} from the {sum_text(score_parts.product)} that the model used."
        if score_parts.passed
        else f"The parts sum to {sum_text(score_parts.summed)}, which is {gap} from the {sum_text(score_parts.product)} that the model used: more than "
        "rounding.",
        "A part, up or down, is what a source of the query and a source of the key add to q · k, times the scale; norms keep the scale that they had "
        "at these tokens, which makes the split exact.",
    ]
    if any(source.name == "position" for source in score_parts.sources):
        sentences.append("Learned positions are a source, “position”.")
    else:
        sentences.append(
            "What the model does to queries and keys by position, such as a rotation, is included in every part; it is no source of its own."
        )
    if score_parts.softcap is not None:
        sentences.append(f"The softcap of {score_parts.softcap:g} comes after the sum.")
    if score_parts.bias:
        sentences.append(
            f"The bias of the two positions, {sum_text(score_parts.bias)}, is added after the sum."
        )
    if not score_parts.allowed:
        sentences.append("The query may not see this key, so that the product does not count.")
    sentences.append(
        "A softmax compares the scores of one row: a part that is equally large for every key changes no weight. Elhage et al. 2021, "
        "transformer-circuits.pub/2021/framework; frozen norms: Wang et al. 2022, arXiv:2211.00593."
    )
    return " ".join(sentences)
