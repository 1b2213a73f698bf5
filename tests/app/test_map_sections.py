"""The page Other maps, with maps and scores drawn at random: notes, tables and lists are worked out again."""

import math
import re
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attnviz.effects.score_sources import ScoreSources, Source
from attnviz.figures.numbers import percent_text, share_text, signed_text, sum_text
from attnviz.maps.layouts import METHOD_NAMES
from attnviz.maps.ranking import MAPS, MapChoice, RatedMap
from attnviz.records import Chance, Head, Reliability
from tests import small_records
from tests.app.screen import component, drawn, facts, figure, numbers
from tests.app.views import LABELS, drawn_of, trace_of, view_of, whole
from tests.drawn_parts import drawn as noted
from ui.choice.selection import Selection
from ui.rooms.explore.other_maps import layout, picked_pair, ranked_maps, score_sources
from ui.rooms.explore.other_maps import reliability as reliability
from ui.rooms.explore.other_maps.drawing import EVERY_TOKEN, lengths, map_figure, map_note
from ui.words import findings as words

N = len(LABELS)


def reliability_of(seed: int) -> Reliability:
    rng = np.random.default_rng(seed)
    order, worst, nearest = (float(number) for number in rng.integers(-9, 9, 3) / 16)
    return Reliability(
        n_query=3,
        order_correlation=order,
        worst_correlation=worst,
        worst_query=int(rng.integers(0, N)),
        nearest_agreement=abs(nearest),
    )


def map_of(seed: int, **changes: Any) -> Any:
    """Of all queries and keys of the five tokens."""
    rng = np.random.default_rng(seed)
    tokens = trace_of(0).tokens
    given = {
        "points": whole(rng, 2 * N, 2),
        "role": ("query",) * N + ("key",) * N,
        "position": np.array([*range(N), *range(N)]),
        "query_tokens": tokens,
        "key_tokens": tokens,
        "layer": 1,
        "head": 2,
        "in_map": reliability_of(seed),
        "in_space": reliability_of(seed + 50),
        "trustworthiness": 0.8125,
        "chance": Chance(
            n_permutations=998, correlation=-0.5, correlation_p=0.001, nearest=0.25, nearest_p=0.001
        ),
    }
    return small_records.projection(2 * N, **given | changes)


@pytest.mark.parametrize(
    ("is_attention", "has_bias", "aligned", "side", "choice"),
    [
        *product([False, True], [False, True], [None], ["query"], [{}]),
        *product([True], [False], [Head(0, 1), Head(1, 2)], ["query", "key"], [{}]),
        (False, False, None, "query", {"unit": "words"}),
        (False, False, None, "query", {"special": "hidden"}),
        (False, False, None, "query", {"without_first": True}),
        (False, False, None, "query", {"sentences": "A → B"}),
    ],
)
@pytest.mark.parametrize("n_axis", [2, 3])
@pytest.mark.parametrize("remark", ["", "Too few points."])
def test_what_is_said_of_a_map(is_attention, has_bias, aligned, side, choice, n_axis, remark):
    bias = whole(np.random.default_rng(0), 1, N, N) if has_bias else None
    view = view_of(trace_of(0, bias=bias), aligned_with=aligned, **choice)
    shown = map_of(
        0,
        points=whole(np.random.default_rng(1), 2 * N, n_axis),
        method="attention" if is_attention else "tsne",
        divergence=0.5 if is_attention else None,
        remark=remark,
    )
    note = map_note(view, shown, side)
    assert note.startswith(words.map_settings(shown))
    assert (words.SPACE_WORDS["raw"] in note) == (not is_attention and not remark)
    assert (words.BIASED in note) == (has_bias and not is_attention)
    assert ("Aligned with the map of layer 0, head 1." in note) == (aligned == Head(0, 1))
    assert ("Aligned" in note) == (aligned == Head(0, 1))
    has_circles = is_attention and n_axis == 2 and side == "query"
    assert ("a key has ½, 1/10 or 1/100 of the weight" in note) == has_circles
    assert (EVERY_TOKEN in note) == bool(choice)


def test_lengths_are_those_of_the_points():
    trace = trace_of(3)
    view = view_of(trace)
    sides = [trace.query(1, 2), trace.key(1, 2), trace.value(1, 2)]
    for n_side in (2, 3):
        role = sum(((name,) * N for name in ("query", "key", "value")[:n_side]), ())
        shown = map_of(
            0,
            points=np.zeros((n_side * N, 2), dtype=np.float32),
            role=role,
            position=np.array([*range(N)] * n_side),
        )
        expected = [math.hypot(*map(float, row)) for side in sides[:n_side] for row in side]
        assert lengths(view, shown).tolist() == pytest.approx(expected)
        drawn_ = map_figure(view_of(trace, tint="norm"), shown, (2, 1))
        bars = [cloud for cloud in drawn_.data if cloud.marker.cmax is not None]
        assert bars[0].marker.cmax == pytest.approx(max(expected))


def cells(html: str) -> list[tuple[str, list[str]]]:
    """The titles of the rows, and their numbers."""
    rows = re.findall(r"<tr><th scope=\"row\">.*?</tr>", html)
    return [
        (re.search("<summary>(.*?)</summary>", row).group(1), re.findall("<td>(.*?)</td>", row))
        for row in rows
    ]


@pytest.mark.parametrize("has_space", [True, False])
@pytest.mark.parametrize("divergence", [None, 0.375])
@pytest.mark.parametrize("trustworthiness", [0.8125, math.nan])
def test_the_figures_of_a_map(has_space, divergence, trustworthiness, monkeypatch):
    trace = trace_of(1)
    monkeypatch.setattr(
        reliability.cache, "pattern", lambda source, layer, head, kind, measure: trace.pattern(layer, head)
    )
    shown = map_of(2, trustworthiness=trustworthiness, divergence=divergence)
    if not has_space:
        shown = replace(shown, in_space=None)
    view = view_of(trace)
    html = reliability._figures(view, shown)
    sides = [shown.in_map, shown.in_space][: 1 + has_space]
    heads = re.findall('<th scope="col">(.*?)</th>', html)
    assert heads == ["", "in the map", "in the vectors"][: 1 + len(sides)]
    blank = [""] * (len(sides) - 1)
    expected = [
        [words.correlation_text(side.order_correlation) for side in sides],
        [
            f"<code>{LABELS[side.worst_query]}</code> {words.correlation_text(side.worst_correlation)}"
            for side in sides
        ],
        [percent_text(side.nearest_agreement) for side in sides],
    ]
    expected += [] if math.isnan(trustworthiness) else [["0.81", *blank]]
    expected += [] if divergence is None else [["0.38 nats", *blank]]
    assert [numbers_ for _, numbers_ in cells(html)] == expected
    assert ("the vectors fed in too" in html) == (has_space and not math.isnan(trustworthiness))
    is_judged = reliability.map_facts(shown).reading.order != "unknown"
    assert html.count("share of 999 maps") == 2 * is_judged
    if divergence is not None:
        nats = []
        for row in trace.weights(1, 2):
            nats.append(
                math.log(N) + math.fsum(float(value) * math.log(float(value)) for value in row if value > 0)
            )
        assert f"would lose {math.fsum(nats) / N:.2f} nats" in html


def test_nothing_is_judged_of_a_map_of_few_keys():
    shown = map_of(2, chance=replace(small_records.BY_CHANCE, n_permutations=5), divergence=None)
    html = reliability._figures(view_of(trace_of(1)), shown)
    assert ("maps, this one" in html) == (reliability.map_facts(shown).reading.order != "unknown")


def test_a_table_of_nothing_is_not_drawn():
    nothing = Reliability(
        n_query=0, order_correlation=math.nan, worst_correlation=math.nan, nearest_agreement=math.nan
    )
    view = view_of(trace_of(0))
    assert len(drawn(lambda: reliability.table(view, map_of(0, in_map=nothing))).get("html")) == 0
    assert len(drawn(lambda: reliability.table(view, map_of(0))).get("html")) == 1


@pytest.mark.parametrize("bias", [None, 0.0, 0.5])
def test_a_bias_that_is_everywhere_0_is_none(bias):
    biases = None if bias is None else np.full((1, N, N), bias, dtype=np.float32)
    view = view_of(trace_of(0, bias=biases))
    assert reliability.is_biased(view.trace.attention(1)) == bool(bias)
    at = drawn(lambda: reliability.reliability(view, map_of(0)))
    assert at.markdown[0].value == reliability.conclusion(map_of(0), has_bias=bool(bias))


@pytest.mark.parametrize("special", ["shown", "hidden", "renormalised"])
def test_weights_that_a_map_implies(special, monkeypatch):
    """exp(−distance²) of the keys, as shares; rows and columns as they are chosen for all pages."""
    trace = trace_of(4)
    monkeypatch.setattr(
        reliability.cache, "pattern", lambda source, layer, head, kind, measure: trace.pattern(layer, head)
    )
    view = view_of(trace, special=special)
    shown = map_of(5, divergence=0.25, points=whole(np.random.default_rng(5), 2 * N, 2) / np.float32(4))
    comparison = reliability._model_and_map(view, shown)
    listed = range(N) if special == "shown" else range(1, N - 1)
    for pattern, weights in (
        (comparison.first, trace.weights(1, 2).tolist()),
        (
            comparison.second,
            [[math.exp(-(math.dist(a, b) ** 2)) for b in shown.points[N:]] for a in shown.points[:N]],
        ),
    ):
        rows = [[float(cell) / math.fsum(row) for cell in row] for row in weights]
        rows = [[rows[query][key] for key in listed] for query in listed]
        if special == "renormalised":
            rows = [[cell / math.fsum(row) for cell in row] for row in rows]
        np.testing.assert_allclose(pattern.weights, rows, rtol=1e-4)


def test_the_weights_that_a_map_of_two_texts_implies(monkeypatch):
    trace = trace_of(4, kind="cross", targets=["a", "b", "c"])
    points = whole(np.random.default_rng(2), 3 + N, 2) / 4
    shown = small_records.projection(
        3 + N,
        points=points,
        role=("query",) * 3 + ("key",) * N,
        position=np.array([*range(3), *range(N)]),
        query_tokens=trace.target_tokens,
        key_tokens=trace.tokens,
        kind="cross",
        layer=1,
        head=2,
        method="attention",
        divergence=0.5,
    )
    monkeypatch.setattr(
        reliability.cache,
        "pattern",
        lambda source, layer, head, kind, measure: trace.pattern(layer, head, kind),
    )
    comparison = reliability._model_and_map(view_of(trace), shown)
    implied = [[math.exp(-(math.dist(a, b) ** 2)) for b in points[3:]] for a in points[:3]]
    rows = [[cell / math.fsum(row) for cell in row] for row in implied]
    np.testing.assert_allclose(comparison.second.weights, rows, rtol=1e-4)
    np.testing.assert_array_equal(comparison.first.weights, trace.weights(1, 2, "cross"))
    for pattern in (comparison.first, comparison.second):
        assert (pattern.queries.labels, pattern.keys.labels) == (("a", "b", "c"), tuple(LABELS))


def test_maps_without_weights_imply_none():
    at = drawn(lambda: reliability.implied(view_of(trace_of(0)), map_of(0), (2, 1)))
    assert not at.markdown and not at.get("bidi_component")


@pytest.mark.parametrize("like", [None, Head(1, 2), Head(0, 1)])
@pytest.mark.parametrize("method", ["pca", "umap"])
@pytest.mark.parametrize("most", [200, 10, 9])
def test_the_map_that_is_laid_out(like, method, most, monkeypatch):
    """Small maps are laid out while the page is drawn, aligned with another head's if asked for; larger ones by jobs."""
    trace, asked, jobs = trace_of(0), [], []

    def projection(source, layer, head, kind, **settings):
        asked.append((layer, head, kind, settings["method"]))
        return map_of(layer + 1)

    def job(name, key, calls):
        jobs.append((name, key, calls()))
        return SimpleNamespace(finished=len(jobs) > 1 or like is None, results=[map_of(len(jobs))])

    monkeypatch.setattr(layout.cache, "projection", projection)
    monkeypatch.setattr(layout, "job", job)
    monkeypatch.setattr(layout, "with_tokens", lambda placed, *rest: placed)
    monkeypatch.setattr(layout, "MOST_AT_ONCE", most)
    view = view_of(trace, method=method, aligned_with=like)
    projected, waiting = layout.laid_out(view)
    places = [(1, 2), (0, 1)] if like == Head(0, 1) else [(1, 2)]
    if method == "pca" and most >= 2 * N:
        assert asked == [(*place, "encoder", "pca") for place in places] and not waiting
    else:
        assert not asked and [key[2:4] for _, key, _ in jobs] == places
        [[(function, arguments, named)]] = [calls for _, _, calls in jobs][:1]
        assert function is layout.place and named["method"] == method and named["value"] is None
        np.testing.assert_array_equal(arguments[0], trace.query(1, 2))
        if like == Head(0, 1) or like == Head(1, 2):
            assert projected is None and len(waiting) == len(places)
            return
    own = map_of(2 if asked else 1)
    if len(places) == 1:
        np.testing.assert_array_equal(projected.points, own.points)
    else:
        assert not np.array_equal(projected.points, own.points)
        centred = projected.points - projected.points.mean(axis=0)
        before = own.points - own.points.mean(axis=0)
        np.testing.assert_allclose(centred @ centred.T, before @ before.T, atol=1e-3)  # turned as a whole


@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("method", ["attention", "tsne", "umap"])
def test_settings_of_a_map(values, method):
    view = view_of(trace_of(0, kind="cross", targets=["a", "b", "c"]), method=method, values=values)
    settings = layout.settings_of(view.selection)
    assert settings["values"] == (values and method != "attention")
    assert (settings["method"], settings["dimensions"]) == (method, 2)
    n = layout.points_of(view, settings)
    assert n == 3 + 5 * (2 if settings["values"] else 1)
    sentence = layout.under_way(view)
    assert f"{METHOD_NAMES[method]} lays out {n} points" in sentence
    assert (words.COMPILED in sentence) == (method == "umap")
    if settings["values"]:
        [(_, _, named)] = layout.calls(view, Head(1, 2), settings)
        np.testing.assert_array_equal(named["value"], view.trace.value(1, 2))
        assert "values" not in named


def test_lines_are_of_the_query_unless_the_key_is_chosen():
    chosen = Selection(model="m", text="t")
    assert layout.side_of(chosen) == "query" and layout.side_of(chosen.but(lines_of="key")) == "key"


@pytest.mark.parametrize(("method", "space", "metric", "same"), [
    ("attention", "raw", "cosine", MapChoice(method="attention")),
    ("mds", "raw", "euclidean", MapChoice(method="pca", space="raw")),
    ("mds", "balanced", "cosine", MapChoice(method="mds", space="centred", metric="cosine")),
    ("mds", "raw", "cosine", MapChoice(method="mds", space="raw", metric="cosine")),
    ("pca", "balanced", "cosine", MapChoice(method="pca", space="balanced")),
    ("tsne", "balanced", "euclidean", MapChoice(method="tsne", space="balanced")),
    ("umap", "lifted", "cosine", MapChoice(method="umap", space="lifted", metric="cosine")),
])  # fmt: skip
def test_the_row_of_the_map_on_screen(method, space, metric, same):
    view = view_of(trace_of(0), method=method, space=space, metric=metric)
    assert ranked_maps._shown(view) == same and same in MAPS


@pytest.mark.parametrize("values", [False, True])
def test_the_table_of_all_maps(values):
    rated = [
        RatedMap(
            choice=choice,
            in_map=replace(reliability_of(at), worst_correlation=math.nan if at == 1 else 0.25),
            chance=small_records.BY_CHANCE,
            trustworthiness=at / 8,
            divergence=0.5 if choice.method == "attention" else None,
            duration_s=at / 16,
        )
        for at, choice in enumerate([MAPS[0], MAPS[2], MAPS[-1]])
    ]
    view = view_of(trace_of(0), method="pca", space=MAPS[2].space, values=values)
    at = drawn_of(view, lambda: ranked_maps._ranked(view, rated))
    table = at.dataframe[0].value
    assert table["Map"].tolist() == [METHOD_NAMES[rated_map.choice.method] for rated_map in rated]
    assert table["Fed with"].tolist() == [
        "the weights",
        words.SPACE_NAMES[MAPS[2].space],
        f"{words.SPACE_NAMES[MAPS[-1].space]}; {MAPS[-1].metric}",
    ]
    assert table["Mean"].tolist() == [rated_map.in_map.order_correlation for rated_map in rated]
    assert [row if row == row else None for row in table["Worst"]] == [0.25, None, 0.25]
    assert table["Nearest"].tolist() == [100 * rated_map.in_map.nearest_agreement for rated_map in rated]
    assert table["Trust"].tolist() == [0.0, 0.125, 0.25]
    assert [row if row == row else None for row in table["Lost"]] == [0.5, None, None]
    assert table["Took"].tolist() == [0.0, 0.0625, 0.125]
    assert at.session_state["ranked_maps"]["selection"]["rows"] == [1]
    assert ("Value vectors are left out" in at.caption[0].value) == values


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("n_done", range(len(MAPS)))
def test_how_far_a_ranking_of_all_maps_is(asked, n_done):
    """Two maps are made at once: UMAP is said to be compiled while the next or the one after it is made by it."""
    view = view_of(trace_of(0))
    key = (view.selection.source, *view.selection.place, view.kind, *ranked_maps._settings(view).values())
    ranking = ranked_maps.Ranking(key=key if asked else (*key, 1))
    work = SimpleNamespace(n_done=n_done, results=[])
    drawn_, shown = [], []

    def show_jobs(jobs, doing, cancelled, *, key, result, pulse):
        shown.append((jobs, doing(), cancelled()))
        result()

    with noted(
        ranked_maps,
        of_session=lambda kind: ranking,
        job=lambda name, key, calls: work,
        waiting=SimpleNamespace(show_jobs=show_jobs),
        _ranking=lambda view, work: drawn_.append(work),
    ) as page:
        ranked_maps.ranked_maps(view)
        if not asked:
            [button] = page.all("button")
            assert not shown and button.named["args"] == (key,)
            assert page.click(button.named["on_click"], *button.named["args"]) == {} and ranking.key == key
            return
    so_far = f"{n_done} of {len(MAPS)} maps done."
    under_way = [choice.method for at, choice in enumerate(MAPS) if at in (n_done, n_done + 1)]
    compiles = f" {words.COMPILED}." if "umap" in under_way else ""
    assert shown == [([work], f"{so_far}{compiles}", f"Cancelled: {so_far}")]
    assert drawn_ == [work] and not page.calls


@pytest.mark.parametrize("was_picked", [True, False])
@pytest.mark.parametrize("known", [(), (0,), (1, 0)])
def test_the_maps_that_are_known_are_ranked(known, was_picked):
    rated = [
        RatedMap(
            choice=MAPS[at],
            in_map=replace(reliability_of(0), order_correlation=(-0.25, -0.75)[at]),
            chance=small_records.BY_CHANCE,
            trustworthiness=0.5,
            divergence=None,
            duration_s=0.1,
        )
        for at in (0, 1)
    ]
    results = [rated[at] if at in known else None for at in (0, 1)]
    ranking, drawn_, redrawn = ranked_maps.Ranking(was_picked=was_picked), [], []
    with noted(
        ranked_maps,
        of_session=lambda kind: ranking,
        waiting=SimpleNamespace(whole_page=lambda: redrawn.append(True)),
        _ranked=lambda view, rated: drawn_.append(rated),
    ):
        ranked_maps._ranking(view_of(trace_of(0)), SimpleNamespace(results=results))
    assert drawn_ == [[rated[at] for at in known]] * bool(known)
    assert redrawn == [True] * was_picked and not ranking.was_picked


def test_a_ticked_map_is_shown():
    rated = [
        RatedMap(
            choice=choice,
            in_map=reliability_of(0),
            chance=small_records.BY_CHANCE,
            trustworthiness=0.5,
            divergence=None,
            duration_s=0.1,
        )
        for choice in (MAPS[-1], MAPS[2])
    ]
    ranking = ranked_maps.Ranking()
    saved = []
    with (
        noted(
            ranked_maps,
            of_session=lambda kind: ranking,
            csv_button=lambda title, make, *, stem, key: saved.append(stem),
        ) as page,
        pytest.MonkeyPatch.context() as patch,
    ):
        of_session, block = SimpleNamespace(), ranked_maps.st
        parts = {name: getattr(block, name) for name in ("column_config", "dataframe", "caption")}
        patch.setattr(ranked_maps, "st", SimpleNamespace(session_state=of_session, **parts))
        ranked_maps._ranked(view_of(trace_of(0)), rated)
        [table] = page.all("dataframe")
        ticked = of_session.ranked_maps["selection"]["rows"]
        assert ticked == [] and saved == ["attnviz-layer1-head2-maps"]
        table.named["on_select"]()
        assert not page.changes and not ranking.was_picked
        ticked.append(1)
        table.named["on_select"]()
    expected = {"method": MAPS[2].method, "space": MAPS[2].space, "metric": MAPS[2].metric}
    assert page.changes == [expected] and ranking.was_picked


SOURCES = (
    Source(name="token"),
    Source(name="head", layer=0, head=3),
    Source(name="mlp", layer=0),
    Source(name="attention", layer=1),
    Source(name="biases"),
    *(Source(name="head", layer=1, head=head) for head in range(4)),
)
TITLES = [
    "Token embedding",
    "Layer 0, head 3",
    "MLP of layer 0",
    "Heads of layer 1",
    "Biases",
    *(f"Layer 1, head {head}" for head in range(4)),
]


@pytest.mark.parametrize("seed", range(2))
def test_the_lists_of_the_sources_of_a_score(seed):
    rng = np.random.default_rng(seed)
    score = ScoreSources(
        kind="encoder",
        layer=1,
        head=2,
        query=2,
        key=1,
        sources=SOURCES,
        query_vectors=whole(rng, 9, 4).astype(float),
        key_vectors=whole(rng, 9, 4).astype(float),
        scale=0.5,
        product=1.0,
        softcap=None,
        bias=0.0,
        allowed=True,
    )
    view = view_of(trace_of(0))
    at = drawn_of(view, lambda: score_sources._show(view, score))
    parts = [
        [
            0.5 * math.fsum(float(a) * float(b) for a, b in zip(of_query, of_key, strict=True))
            for of_key in score.key_vectors
        ]
        for of_query in score.query_vectors
    ]
    of_key = {TITLES[at]: math.fsum(row[at] for row in parts) for at in range(9)}
    of_query = {TITLES[at]: math.fsum(parts[at]) for at in range(9)}
    pairs = {(TITLES[a], TITLES[b]): parts[a][b] for a in range(9) for b in range(9)}
    for side, expected in (
        ("key", {(title, ""): part for title, part in of_key.items()}),
        ("query", {(title, ""): part for title, part in of_query.items()}),
        ("pair", pairs),
    ):
        rows = component(at, f"sources_{side}")["rows"]
        sizes = [abs(expected[row["text"], row["key"]]) for row in rows]
        assert sizes == sorted(sizes, reverse=True) and len({*sizes}) >= 1
        assert sizes == pytest.approx(sorted(map(abs, expected.values()), reverse=True)[:8])
        assert [row["amount"] for row in rows] == [
            signed_text(round(expected[row["text"], row["key"]], 12)) for row in rows
        ]
        assert [row["length"] for row in rows] == pytest.approx(
            [expected[row["text"], row["key"]] / max(sizes) for row in rows]
        )
    heads = [
        row for row, title in enumerate(component(at, "sources_key")["rows"]) if ", head" in title["text"]
    ]
    with noted(score_sources) as page:
        score_sources._show(view, score)
    assert facts(page.keyed("score_sources")["alt"]).quoted == ("door", "cat")
    for row, source in enumerate(page.rows("sources_key")):
        picked = page.click(page.keyed("sources_key")["on_pick"], row)
        assert picked == (
            {"layer": int(source.text[6]), "head": int(source.text[-1])} if row in heads else {}
        )
    assert page.click(page.keyed("sources_pair")["on_pick"], 0) == {}
    has_position = replace(score, sources=(*SOURCES[:-1], Source(name="position")))
    for parts_, is_source in ((score, False), (has_position, True)):
        sentences = score_sources.note(parts_)
        assert ("“position”" in sentences, "no source of its own" in sentences) == (is_source, not is_source)
    in_finding = facts(at.markdown[0].value)
    assert in_finding.quoted == ("door", "cat") and in_finding.numbers[0] == sum_text(1.0)
    [drawn_] = figure(at, "score_sources")["data"]
    assert numbers(drawn_["z"]).shape[0] <= 9
    assert "the biases have" in score_sources.finding(
        replace(score_sources.leading(score), key=SOURCES[4]), "a", "b"
    )
    assert "the token embedding has" in score_sources.finding(
        replace(score_sources.leading(score), key=SOURCES[0]), "a", "b"
    )


@pytest.mark.parametrize("largest_first", [False, True])
@pytest.mark.parametrize("unit", ["tokens", "words"])
@pytest.mark.parametrize("masked", [False, True])
def test_the_selected_pair(largest_first, unit, masked):
    allowed = np.ones((1, N, N), dtype=bool)
    allowed[0, 2, 1] = not masked
    trace = trace_of(6, allowed=allowed)
    view = view_of(trace, largest_first=largest_first, unit=unit)
    at = drawn_of(view, lambda: picked_pair.picked_pair(view, 2, 1))
    query, key = trace.query(1, 2)[2], trace.key(1, 2)[1]
    terms = [0.5 * float(a) * float(b) for a, b in zip(query, key, strict=True)]
    title = facts(at.markdown[0].value)
    assert title.quoted == ("door", "cat")
    assert title.numbers[-1] == sum_text(math.fsum(terms))
    order = sorted(range(4), key=lambda index: -abs(terms[index])) if largest_first else [*range(4)]
    drawn_ = figure(at, "pair")
    heights = [numbers(series["y"]).tolist() for series in drawn_["data"]]
    assert heights[0] == [float(query[index]) for index in order]
    assert heights[1] == [float(key[index]) for index in order]
    assert heights[2] == pytest.approx([terms[index] for index in order])
    sums = [math.fsum(terms[index] for index in order[: n + 1]) for n in range(4)]
    assert heights[3] == pytest.approx(sums)
    assert numbers(drawn_["data"][3]["marker"]["size"]).tolist() == [0, 0, 0, 10]
    low, high = drawn_["layout"]["yaxis"]["range"]
    assert low == -high and high >= max(map(abs, [*map(float, query), *map(float, key)]))
    axis = drawn_["layout"]["xaxis"]
    assert axis["ticktext"] == [str(index) for index in order]
    assert ("largest" in axis["title"]["text"]) == largest_first
    with noted(picked_pair) as page:
        picked_pair.picked_pair(view, 2, 1)
    assert facts(page.keyed("pair")["alt"]).quoted == ("door", "cat")
    caption = at.caption[0].value
    assert ("Vectors are of single tokens" in caption) == (unit == "words")
    weight = float(trace.weights(1, 2)[2, 1])
    assert ("may not see" in caption) == masked
    assert masked or share_text(weight) in caption.replace("\\", "")
