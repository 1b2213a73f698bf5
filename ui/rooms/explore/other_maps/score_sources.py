"""Why the head attends there: the selected pair's score, split by the sources of its query and key."""

from dataclasses import dataclass

import numpy as np
import streamlit as st

from attnviz.effects.score_sources import ScoreSources, Source
from attnviz.figures.numbers import power_text, signed_text, sum_text
from attnviz.figures.pair import draw_score_sources
from attnviz.records import Axis
from ui.choice import state, widgets
from ui.components.ranked_list import Row, ranked_list
from ui.rooms.cause.own_run import OwnRun, check_can_run
from ui.rooms.explore.other_maps import jobs
from ui.rooms.explore.other_maps.choices import MapSettings
from ui.shell import errors
from ui.shell.chart import chart
from ui.shell.view import View
from ui.shell.waiting import is_there
from ui.words.extremes import equals, places_of_largest
from ui.words.findings import name
from ui.words.literal import literal

_MOST_ROWS = 8
_PASSES = 4
"""Forward passes for one split."""


def score_sources(view: View, query: int, key: int) -> ScoreSources | None:
    """Draws a switch, and if it is on the split of one score; returns the split, None until there is one."""
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.subheader("Why does the head look there?", anchor=False, width="content")
        st.toggle(**widgets.field("sources"))
    if not view.selection.of(MapSettings).sources:
        return None
    with errors.explained(key="cut_sources"):
        check_can_run(view, "What the query and the key are made of was asked for")
        run, place = OwnRun(view=view), view.selection.place
        work = run.job(
            "score_sources",
            (place, view.kind, query, key),
            lambda: [(jobs.split_score, (*run.given, place, query, key), {"kind": view.kind})],
        )
        n_tokens = _PASSES * len(view.query_tokens)
        if is_there(work, n_tokens, "Splitting the score", key="sources_act"):
            parts: ScoreSources = work.results[0]
            _show(view, parts)
            return parts
    return None


def _show(view: View, score_parts: ScoreSources) -> None:
    tokens = view.trace.query_tokens(score_parts.kind), view.trace.key_tokens(score_parts.kind)
    names = [
        name(Axis.of(tokens_of_axis), at)
        for tokens_of_axis, at in zip(tokens, (score_parts.query, score_parts.key), strict=True)
    ]
    st.markdown(f"**{finding(leading(score_parts), *map(literal, names))}**")
    left, right = st.columns([3, 2], gap="medium")
    with left:
        chart(
            draw_score_sources(score_parts.by_layer(), theme=view.theme),
            key="score_sources",
            alt=f"Parts of the score of {names[0]} and {names[1]}, sources of the query down and of the key across",
        )
    with right:
        sides = [
            ("key", score_parts.of_key, "Sources of the key, each with the whole query"),
            ("query", score_parts.of_query, "Sources of the query, each with the whole key"),
        ]
        for side, parts, title in sides:
            _list(
                view,
                [((source,), part) for source, part in zip(score_parts.sources, parts, strict=True)],
                side,
                title,
            )
        _list(
            view,
            [((first, other), part) for first, other, part in score_parts.ranked()[:_MOST_ROWS]],
            "pair",
            "Largest parts",
        )
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Leading:
    """The sources with the largest part of a score, up or down."""

    product: float
    """Sum of the parts."""
    key: Source
    of_key: float
    n_as_large_of_key: int
    """Other sources with as large a part."""
    query: Source
    of_query: float
    n_as_large_of_query: int


def leading(score_parts: ScoreSources) -> Leading:
    """The sources of key and query with the largest part of the score, up or down."""
    ends = [places_of_largest(np.abs(part), sum_text) for part in (score_parts.of_key, score_parts.of_query)]
    of_key, of_query = (places[0][0] for places in ends)
    return Leading(
        product=score_parts.product,
        key=score_parts.sources[of_key],
        of_key=float(score_parts.of_key[of_key]),
        n_as_large_of_key=len(ends[0]) - 1,
        query=score_parts.sources[of_query],
        of_query=float(score_parts.of_query[of_query]),
        n_as_large_of_query=len(ends[1]) - 1,
    )


def finding(facts: Leading, query: str, key: str) -> str:
    """The largest source on each side, in words.

    Args:
        query, key: the tokens, as Markdown.
    """
    return (
        f"Score {sum_text(facts.product)} of {query} and {key}: of the key’s sources {facts.key.words} {_has(facts.key)} the largest "
        f"part, {sum_text(facts.of_key)}{equals(facts.n_as_large_of_key)}; of the query’s sources {facts.query.words}, "
        f"{sum_text(facts.of_query)}{equals(facts.n_as_large_of_query)}"
    )


def _has(source: Source) -> str:
    return "have" if source.name == "biases" else "has"


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
