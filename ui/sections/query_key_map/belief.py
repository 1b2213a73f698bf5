"""How reliable a map of queries and keys is: in numbers, in words, and by the weights that it implies."""

from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
import streamlit as st

from attnviz.figures.comparison import Part
from attnviz.figures.labels import isolated
from attnviz.figures.numbers import percent_text, share_text
from attnviz.heads.comparison import Comparison, compare
from attnviz.maps.attention_map import implied_weights
from attnviz.maps.faithfulness import chance_correlation
from attnviz.maps.layouts import METHOD_NAMES
from attnviz.records import AttentionPattern, Axis, Faithfulness, LayerAttention, Projection
from ui.page.view import View, hidden_note
from ui.sections.compare.zoom import matrix, zoom_buttons, zoom_note
from ui.words.findings import correlation_text, name
from ui.words.judgement import FAIR, judge
from ui.words.literal import literal
from ui.work import cache

MOSTLY = 0.5
"""Share of the queries whose nearest key has to be the strongest, for nearest keys to be read off."""

_MAP_NAMES = {"attention": "attention map", "mds": "classical MDS map"}

_STYLE = Path(__file__).parent / "belief.css"


def panel(view: View, projection: Projection) -> None:
    """Whether this map can be read, and the figures that say so, beside those of the vectors it was made from."""
    chance = chance_of(view, projection)
    queries = Axis.of(view.trace.query_tokens(view.kind))
    has_bias = is_biased(view.trace.attention(projection.layer, view.kind))
    st.markdown(verdict(projection, chance, queries, has_bias=has_bias))
    if not np.isnan(projection.in_map.order_correlation):
        st.html(
            f"<style>{_STYLE.read_text(encoding='utf-8')}</style>"
            + _figures(view, projection, chance, queries)
        )


def chance_of(view: View, projection: Projection) -> float:
    """The correlation that at most one shuffled map in twenty falls below."""
    scores = _pattern(view, projection.layer, projection.head).scores
    assert scores is not None  # weights come with their scores
    return chance_correlation(scores)


def verdict(projection: Projection, chance: float, queries: Axis, *, has_bias: bool = False) -> str:
    """What may be read off this map, in Markdown.

    Args:
        has_bias: whether the scores are more than scaled q . k, as in T5.
    """
    found = projection.in_map
    this = f"This {_MAP_NAMES.get(projection.method, METHOD_NAMES[projection.method] + ' map')}"
    mean, nearest = correlation_text(found.order_correlation), percent_text(found.nearest_agreement)
    match judge(found, chance):
        case "unknown" if np.isnan(found.order_correlation):
            return "**There is nothing to judge:** no query sees two keys, so no order can be right or wrong."
        case "unknown":
            return "**There are too few tokens to judge this map:** any map of so few keys may look right by chance."
        case "misleads":
            return (
                f":red[**{this} misleads:**] its distances match the scores no better than chance. The correlation "
                f"of distance and score is {mean} (−1 is perfect); at most one shuffled map in twenty goes below "
                f"{correlation_text(chance)}. Do not read attention off it. {_cause(projection, has_bias)}"
            ).rstrip()
        case "rough":
            read = (
                f"the nearest key, which has the largest weight for {nearest} of the queries"
                if found.nearest_agreement >= MOSTLY
                else f"a tendency, and not single keys: the nearest has the largest weight for only {nearest} of the queries"
            )
            return (
                f"**{this} is rough:** nearer keys tend to have higher scores (correlation {mean}), but their order is "
                f"often wrong. What may be read off is {read}. {_cause(projection, has_bias)}"
            ).rstrip()
        case "fair":
            said = f"**{this} can be read:** nearer keys mostly have higher scores (correlation {mean})"
            if found.nearest_agreement >= MOSTLY:
                said += f", and the nearest has the largest weight for {nearest} of the queries."
            else:
                said += f"; but the nearest has the largest weight for only {nearest} of the queries."
            if found.worst_query is not None and found.worst_correlation >= chance:
                worst = literal(name(queries, found.worst_query))
                said += f" The distances of the query {worst} say little, though ({correlation_text(found.worst_correlation)})."
            return said


def is_biased(attention: LayerAttention) -> bool:
    """Whether a layer's scores hold something beside q . k, such as T5's relative positions.

    A softcap changes no order of scores, so it is none.
    """
    return attention.bias is not None and bool(attention.bias.any())


def _cause(projection: Projection, has_bias: bool) -> str:
    """Where the order was lost: in the vectors that were fed in, or on the way to the map."""
    if projection.in_space is None:
        return ""
    before = projection.in_space.order_correlation
    if before <= FAIR:
        return (
            f"Among the vectors fed in distance does follow the score (correlation {correlation_text(before)}); this "
            f"{METHOD_NAMES[projection.method]} map in {projection.points.shape[1]} dimensions does not keep that."
        )
    lifted = (
        "among lifted ones Euclidean distance follows q·k, but not the bias that this layer adds to it."
        if has_bias
        else "among lifted ones Euclidean distance does."
    )
    return (
        "Distance does not follow the score among the vectors fed in either (correlation "
        f"{correlation_text(before)}); {lifted}"
    )


def _figures(view: View, projection: Projection, chance: float, queries: Axis) -> str:
    """The figures as an HTML table; a name opens the sentence that explains it, by click or key."""
    in_map, in_space = projection.in_map, projection.in_space
    sides = [in_map] if in_space is None else [in_map, in_space]

    def worst(found: Faithfulness) -> str:
        token = "" if found.worst_query is None else isolated(queries.labels[found.worst_query])
        return f"<code>{escape(token)}</code> {correlation_text(found.worst_correlation)}"

    rows = [
        (
            "Correlation of distance and score",
            "Spearman’s rank correlation over the keys of a query, mean over the queries: −1 when a nearer key always "
            "has the higher score, 0 when distance says nothing. Of maps of this text whose points are shuffled, at "
            f"most one in twenty goes below {correlation_text(chance)}.",
            [correlation_text(one.order_correlation) for one in sides],
        ),
        (
            "… of the worst query",
            "The query with the worst correlation, and that correlation.",
            [worst(one) for one in sides],
        ),
        (
            "Nearest key has the largest weight",
            "For how many of the queries the nearest key has the largest weight.",
            [percent_text(one.nearest_agreement) for one in sides],
        ),
    ]
    if not np.isnan(projection.trustworthiness):
        against = "the lifted vectors" if in_space is None else "the vectors fed in"
        rows.append(
            (
                "Trustworthiness",
                f"Whether neighbours on the map are neighbours among {against} too: 1 when all are; one that is not "
                "costs the more, the farther it is there; about 0.5 by chance.",
                [f"{projection.trustworthiness:.2f}"],
            )
        )
    if projection.divergence is not None:
        rows.append(
            (
                "Attention lost",
                "Kullback–Leibler divergence of the model's weights from those that the map implies, mean over the "
                f"queries: 0 for none; equal weights on all keys would lose {_lost_by_equal_weights(view, projection):.2f} nats.",
                [f"{projection.divergence:.2f} nats"],
            )
        )
    header = "".join(
        f'<th scope="col">{one}</th>' for one in ["", "in the map", "in the vectors"][: 1 + len(sides)]
    )
    body = "".join(
        f'<tr><th scope="row"><details><summary>{title}</summary><span>{sentence}</span></details></th>'
        + "".join(f"<td>{number}</td>" for number in [*numbers, *[""] * (len(sides) - len(numbers))])
        + "</tr>"
        for title, sentence, numbers in rows
    )
    return f'<table class="belief"><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>'


def _lost_by_equal_weights(view: View, projection: Projection) -> float:
    """What a map that puts every key equally far away would lose, in nats: mean of ln n - entropy."""
    pattern = _pattern(view, projection.layer, projection.head)
    weights = pattern.weights.astype(np.float64)
    logs = np.log(weights, where=weights > 0, out=np.zeros_like(weights))
    n_key = pattern.allowed.sum(axis=1).clip(min=1)
    return float((np.log(n_key) + (weights * logs).sum(axis=1)).mean())


def implied(view: View, projection: Projection, picked: tuple[int, int]) -> None:
    """The weights that an attention map says by its distances beside the model's, and what differs.

    Rows and columns are as they are chosen for all pages.

    Args:
        picked: positions of the query and key that are outlined.
    """
    if projection.divergence is None:
        return  # the distances of other maps are not meant as weights
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
    zoom_buttons(comparison, view.selection.b.zoom, key="implied")
    said = note, hidden_note(view), zoom_note(comparison, view.selection.b.zoom)
    st.caption(" ".join(filter(None, said)))


def _model_and_map(view: View, projection: Projection) -> Comparison:
    """The model's weights (A) and those that the map implies (B), rows and columns as they are chosen."""
    whole = _pattern(view, projection.layer, projection.head)
    ends = [projection.points[projection.rows(role)] for role in ("query", "key")]
    of_map = replace(whole, weights=implied_weights(ends[0], ends[1], whole.allowed), scores=None)
    queries = replace(view.queries, tokens=whole.queries.tokens)
    keys = replace(view.keys, tokens=whole.keys.tokens)
    first, second = (one.arranged(queries, keys, renormalise=view.is_renormalised) for one in (whole, of_map))
    return compare(first, second)


def _missed(comparison: Comparison) -> str:
    """How much of the attention the map puts elsewhere, in Markdown."""
    elsewhere = comparison.row_change
    worst = int(elsewhere.argmax())
    queries = comparison.first.queries
    said = f"**The map puts {share_text(float(elsewhere.mean()))} of a query's attention on keys where the model does not"
    worst_name = literal(name(queries, int(queries.positions[worst])))
    return f"{said}; most for {worst_name}, {share_text(float(elsewhere[worst]))}.**"


def _pattern(view: View, layer: int, head: int) -> AttentionPattern:
    """The weights of a head and their scores, all tokens, whatever cells show."""
    return cache.pattern(view.selection.source, layer, head, view.kind, "weights")
