"""How reliable a map of queries and keys is: in numbers, in words, and by the weights that it implies."""

from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Literal

import numpy as np
import streamlit as st

from attnviz.figures.comparison import Part
from attnviz.figures.labels import isolated
from attnviz.figures.numbers import percent_text, share_text
from attnviz.heads.comparison import Comparison, compare
from attnviz.maps.attention_map import implied_weights
from attnviz.maps.layouts import METHOD_NAMES
from attnviz.records import AttentionPattern, Axis, Projection, Reliability
from ui.rooms.compare.partner import PartnerB
from ui.rooms.compare.zoom import matrix, zoom_buttons, zoom_note
from ui.runtime import cache
from ui.shell.view import View, hidden_note
from ui.words.findings import correlation_text, judged_queries, name
from ui.words.literal import literal
from ui.words.reliability import FAIR, Reading, reading_of

_MAP_NAMES = {"attention": "attention map", "mds": "classical MDS map"}

_STYLE = Path(__file__).parent / "trusted.css"


@dataclass(frozen=True, slots=True, kw_only=True)
class MapFacts:
    """Facts about a map besides its own figures."""

    reading: Reading
    worst_query: int | None
    """Position of the query with the worst correlation, if the map is fair as a whole but not for this query."""
    lost: Literal["", "in the layout", "in the vectors"]
    """Where a map that is not fair lost the order: in the layout, or already in the input vectors."""
    lift_helps: bool
    """Whether the input was something other than lifted vectors by Euclidean distance, which have the order of q·k."""


def map_facts(projection: Projection) -> MapFacts:
    """Facts about a map from its figures and those of permuted key points."""
    in_map, before = projection.in_map, projection.in_space
    reading = reading_of(in_map, projection.chance)
    lost: Literal["", "in the layout", "in the vectors"] = ""
    if before is not None and reading.order in ("chance", "weak", "rough"):
        lost = "in the layout" if before.order_correlation <= FAIR else "in the vectors"
    fed_with = projection.space, projection.parameters.get("metric", "euclidean")
    return MapFacts(
        reading=reading,
        worst_query=in_map.worst_query
        if reading.order == "fair" and in_map.worst_correlation > FAIR
        else None,
        lost=lost,
        lift_helps=lost == "in the vectors" and fed_with != ("lifted", "euclidean"),
    )


def conclusion(projection: Projection, *, has_bias: bool = False) -> str:
    """What can be read off this map, in Markdown.

    Args:
        has_bias: whether the scores contain more than scaled q . k, as in T5.
    """
    facts, in_map, chance = map_facts(projection), projection.in_map, projection.chance
    this = f"This {_MAP_NAMES.get(projection.method, METHOD_NAMES[projection.method] + ' map')}"
    match facts.reading.order:
        case "unknown" if not in_map.n_query:
            return "**There is nothing to judge:** no query sees two keys, so no order can be right or wrong."
        case "unknown":
            return "**There are too few keys to judge this map:** any map of so few may look right by chance."
        case "chance":
            sentence = f":red[**{this} cannot be told from chance.**]"
        case "weak":
            sentence = f"**{this} follows the scores only weakly.**"
        case "rough":
            sentence = f"**{this} is rough:** nearer keys only tend to have higher scores."
        case "fair":
            sentence = f"**{this} can be read:** of two keys that a query sees, the nearer mostly has the higher score."
    parts = [
        sentence,
        f"The mean correlation of distance and score is {correlation_text(in_map.order_correlation)} (−1 is perfect); with "
        f"the key points permuted, at most one map in twenty goes below {correlation_text(chance.correlation)} "
        f"(p = {chance.correlation_p:.3f}).",
        f"The nearest key has the largest weight for {percent_text(in_map.nearest_agreement)} of "
        f"{judged_queries(projection)}; permuted, at most one map in twenty exceeds {percent_text(chance.nearest)} "
        f"(p = {chance.nearest_p:.3f}).",
        _advice(facts.reading),
        _cause(projection, facts, has_bias),
    ]
    if facts.worst_query is not None:
        queries = Axis.of(projection.query_tokens)
        parts.append(
            f"The order is worst for the query {literal(name(queries, facts.worst_query))} "
            f"({correlation_text(in_map.worst_correlation)})."
        )
    return " ".join(filter(None, parts))


def _advice(reading: Reading) -> str:
    if reading.but_nearest:
        return (
            "So read its distances as a whole: the nearest key is often not the one with the largest weight."
        )
    if reading.order not in ("chance", "weak"):
        return ""
    return (
        "Trust only its nearest keys." if reading.only_nearest else "Do not read attention off its distances."
    )


def _cause(projection: Projection, facts: MapFacts, has_bias: bool) -> str:
    """Where the order was lost: in the input vectors, or in the layout."""
    if projection.in_space is None or not facts.lost:
        return ""
    before = correlation_text(projection.in_space.order_correlation)
    if facts.lost == "in the layout":
        return (
            f"Among the vectors fed in the correlation is {before}; this {METHOD_NAMES[projection.method]} map in "
            f"{projection.points.shape[1]} dimensions does not keep it."
        )
    sentence = f"Among the vectors fed in the correlation is no better than {before}"
    if not facts.lift_helps:
        return f"{sentence}."
    if has_bias:
        return f"{sentence}; among lifted vectors Euclidean distance follows q·k, but not the bias that this layer adds to it."
    return f"{sentence}; among lifted vectors Euclidean distance follows the score."


def figures_of_map(view: View, projection: Projection) -> None:
    """The map's figures, beside those of its input vectors; a click or Enter on a name opens its explanation."""
    if not projection.in_map.n_query:
        return
    queries = Axis.of(projection.query_tokens)
    in_map, in_space = projection.in_map, projection.in_space
    sides = [in_map] if in_space is None else [in_map, in_space]

    def worst(reliability: Reliability) -> str:
        token = "" if reliability.worst_query is None else isolated(queries.labels[reliability.worst_query])
        return f"<code>{escape(token)}</code> {correlation_text(reliability.worst_correlation)}"

    is_judged = map_facts(projection).reading.order != "unknown"
    by_chance = (
        f" The p value above is the share of {1 + projection.chance.n_permutations:,} maps, this one and those with permuted "
        "key points, that are as good as this one in this figure." * is_judged
    )
    rows = [
        (
            "Correlation of distance and score",
            "Spearman’s rank correlation over the keys of a query, mean over the queries: −1 when a nearer key always "
            "has the higher score, 0 when the ranks of distance and score do not go together." + by_chance,
            [correlation_text(side.order_correlation) for side in sides],
        ),
        (
            "… of the worst query",
            "The query with the worst correlation, and that correlation.",
            [worst(side) for side in sides],
        ),
        (
            "Nearest key has the largest weight",
            "Share of the queries whose nearest key has the largest weight." + by_chance,
            [percent_text(side.nearest_agreement) for side in sides],
        ),
    ]
    if not np.isnan(projection.trustworthiness):
        against = "the lifted vectors" if in_space is None else "the vectors fed in"
        rows.append(
            (
                "Trustworthiness",
                f"Whether neighbours on the map are neighbours among {against} too: 1 when all are; a wrong "
                "neighbour costs more, the farther away it is there; about 0.5 by chance.",
                [f"{projection.trustworthiness:.2f}"],
            )
        )
    if projection.divergence is not None:
        rows.append(
            (
                "Attention lost",
                "Kullback–Leibler divergence of the model's weights from those that the map implies, mean over the "
                f"queries: 0 for none; equal weights on all keys would lose {lost_by_equal_weights(_pattern(view, projection.layer, projection.head)):.2f} nats.",
                [f"{projection.divergence:.2f} nats"],
            )
        )
    header = "".join(
        f'<th scope="col">{heading}</th>'
        for heading in ["", "in the map", "in the vectors"][: 1 + len(sides)]
    )
    body = "".join(
        f'<tr><th scope="row"><details><summary>{title}</summary><span>{sentence}</span></details></th>'
        + "".join(f"<td>{number}</td>" for number in [*numbers, *[""] * (len(sides) - len(numbers))])
        + "</tr>"
        for title, sentence, numbers in rows
    )
    st.html(
        f"<style>{_STYLE.read_text(encoding='utf-8')}</style>"
        f'<table class="reliability"><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>'
    )


def lost_by_equal_weights(pattern: AttentionPattern) -> float:
    """Loss of a map with all keys equally far away, in nats: mean of ln n - entropy, n the keys that a query may see."""
    weights = pattern.weights.astype(np.float64)
    logs = np.log(weights, where=weights > 0, out=np.zeros_like(weights))
    n_key = pattern.allowed.sum(axis=1).clip(min=1)
    return float((np.log(n_key) + (weights * logs).sum(axis=1)).mean())


def implied(view: View, projection: Projection | None, picked: tuple[int, int]) -> None:
    """The weights implied by an attention map's distances beside the model's, and their difference; none for other maps."""
    if projection is None or projection.divergence is None:
        return
    comparison = _model_and_map(view, projection)
    st.markdown(_missed(comparison))
    parts: dict[Part, str] = {
        "first": "A: the model",
        "second": "B: implied by the map",
        "difference": "B − A",
    }
    for column, (part, title) in zip(st.columns(3), parts.items(), strict=True):
        with column:
            st.markdown(f"**{title}**")
            alt = f"{title}: weights from queries to keys"
            matrix(view, comparison, part, picked, alt=alt, key="implied")
    note = (
        "What the map implies: weights in proportion to exp(−distance²) over the keys that a query may see."
    )
    zoom_buttons(comparison, view.selection.of(PartnerB).zoom, key="implied")
    sentences = note, hidden_note(view), zoom_note(comparison, view.selection.of(PartnerB).zoom)
    st.caption(" ".join(filter(None, sentences)))


def _model_and_map(view: View, projection: Projection) -> Comparison:
    """The model's weights (A) and those that the map implies (B), with the selected rows and columns."""
    whole = _pattern(view, projection.layer, projection.head)
    ends = [projection.points[projection.rows(role)] for role in ("query", "key")]
    of_map = replace(whole, weights=implied_weights(ends[0], ends[1], whole.allowed), scores=None)
    queries = replace(view.queries, tokens=whole.queries.tokens)
    keys = replace(view.keys, tokens=whole.keys.tokens)
    first, second = (
        pattern.arranged(queries, keys, renormalise=view.is_renormalised) for pattern in (whole, of_map)
    )
    return compare(first, second)


def _missed(comparison: Comparison) -> str:
    """How much of a query's attention the map (B) puts on other shown keys than the model (A), in Markdown."""
    elsewhere, queries = (
        np.nansum(comparison.difference.clip(min=0), axis=1, dtype=np.float64),
        comparison.first.queries,
    )
    most = float(elsewhere.max())
    sentence = f"**On average the map puts {share_text(float(elsewhere.mean()))} of a query's attention on keys where the model does not"
    if not most:
        return f"{sentence}.**"
    first, *others = np.flatnonzero(elsewhere == most).tolist()
    worst = literal(name(queries, int(queries.positions[first])))
    more = f" and {len(others)} more" * bool(others)
    return f"{sentence}; most for {worst}{more}, {share_text(most)}.**"


def _pattern(view: View, layer: int, head: int) -> AttentionPattern:
    """A head's weights and scores for all tokens, whatever cells show."""
    return cache.pattern(view.selection.source, layer, head, view.kind, "weights")
