"""How reliable a map is: the figures on the page are the map's, and what is said follows from them."""

import re
from html import unescape
from urllib.parse import parse_qsl

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr

import attnviz
from attnviz.maps.attention_map import implied_weights
from attnviz.maps.spaces import fed
from attnviz.records import Axis, Reliability
from tests.app.screen import DOOR as TEXT
from tests.app.screen import (
    Facts,
    assert_no_exception,
    captions,
    charts,
    facts,
    figure,
    numbers,
    open_page,
)
from ui.part import part_named
from ui.rooms.explore.other_maps.reliability import conclusion
from ui.words.findings import BIASED, SPACE_WORDS
from ui.words.reliability import reading_of

PAGE = "pages/query_key_map.py"
DOOR = {"text": TEXT, "layer": 3, "head": 1, "query": 7, "key": 5}


def table(at) -> dict[str, list[str]]:
    """What stands in the columns of each row of the figures."""
    [html] = [element.proto.body for element in at.get("html") if 'class="reliability"' in element.proto.body]
    rows = re.findall(r"<tr><th scope=\"row\">.*?<summary>(.*?)</summary>.*?</th>(.*?)</tr>", html)
    return {
        unescape(title): [
            unescape(re.sub("<.*?>", "", cell)).replace("−", "-")
            for cell in re.findall("<td>(.*?)</td>", cells)
        ]
        for title, cells in rows
    }


def written(reliability: Reliability, labels) -> list[str]:
    return [
        f"{reliability.order_correlation:+.2f}",
        f"{labels[reliability.worst_query]} {reliability.worst_correlation:+.2f}",
        f"{100 * reliability.nearest_agreement:.0f}%",
    ]


class TestPanel:
    def test_of_the_attention_map(self, door_trace):
        at = open_page(PAGE, **DOOR)
        assert_no_exception(at)
        map_ = attnviz.project(door_trace, 3, 1, method="attention")
        rows = table(at)
        assert [cells[0] for cells in rows.values()] == [
            *written(map_.in_map, door_trace.tokens.labels),
            f"{map_.trustworthiness:.2f}",
            f"{map_.divergence:.2f} nats",
        ]
        assert {len(cells) for cells in rows.values()} == {1}  # no vectors were fed in
        weights = door_trace.weights(3, 1).astype(np.float64)
        lost = np.log(11) + (weights * np.log(weights)).sum(axis=1).mean()
        [html] = [part.proto.body for part in at.get("html") if 'class="reliability"' in part.proto.body]
        assert f"{lost:.2f}" in facts(re.sub("<.*?>", " ", html)).numbers  # by equal weights on all keys

    def test_of_another_map_beside_the_vectors_fed_in(self, door_trace):
        at = open_page(PAGE, **DOOR, method="tsne", space="centred", metric="cosine", seed=5)
        assert_no_exception(at)
        map_ = attnviz.project(door_trace, 3, 1, method="tsne", space="centred", metric="cosine", seed=5)
        labels = door_trace.tokens.labels
        rows = list(table(at).values())
        assert [cells[0] for cells in rows[:3]] == written(map_.in_map, labels)
        assert [cells[1] for cells in rows[:3]] == written(map_.in_space, labels)
        assert rows[3] == [f"{map_.trustworthiness:.2f}", ""]
        assert len(rows) == 4  # the fifth, the attention lost, is that of attention maps

    def test_the_lift_keeps_every_order(self):
        at = open_page(PAGE, **DOOR, method="pca", space="lifted")
        assert [cells[1] for cells in list(table(at).values())[:3]][0::2] == ["-1.00", "100%"]

    def test_a_token_is_shown_as_it_is(self):
        at = open_page(PAGE, text="<b>$x$</b> & <b>*y*</b> over", method="pca")
        assert_no_exception(at)
        queries = attnviz.load_model().trace("<b>$x$</b> & <b>*y*</b> over").tokens.labels
        worst = list(table(at).values())[1][0].rpartition(" ")[0]
        assert worst in queries

    def test_one_token_alone_cannot_be_judged(self, embedded):
        at = open_page(PAGE, text="a")
        assert_no_exception(at)
        trace = embedded.trace("a")
        map_ = attnviz.project(trace, 3, 1, method="attention")
        assert reading_of(map_.in_map, map_.chance).order == "unknown"
        assert conclusion(map_) in [line.value for line in at.markdown]


class TestImplied:
    def test_the_weights_of_the_map_beside_the_model_s(self, door_trace):
        at = open_page(PAGE, **DOOR)
        map_ = attnviz.project(door_trace, 3, 1, method="attention")
        ends = [map_.points[map_.rows(role)].astype(np.float64) for role in ("query", "key")]
        logits = -((ends[0][:, None] - ends[1][None]) ** 2).sum(axis=-1)
        of_map = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        model = door_trace.weights(3, 1)
        cells = {part: figure(at, f"implied_{part}")["data"][0] for part in ("first", "second", "difference")}
        np.testing.assert_array_equal(numbers(cells["first"]["z"]), model)
        np.testing.assert_allclose(numbers(cells["second"]["z"]), of_map, atol=1e-5)
        np.testing.assert_allclose(numbers(cells["difference"]["z"]), of_map - model, atol=1e-5)
        assert cells["first"]["zmax"] == cells["second"]["zmax"]
        elsewhere = np.abs(of_map - model).sum(axis=1) / 2
        shares = f"{100 * elsewhere.mean():.1f}%", f"{100 * elsewhere.max():.1f}%"
        worst = door_trace.tokens.labels[elsewhere.argmax()]
        assert Facts((worst,), numbers=shares) in [facts(line.value) for line in at.markdown]

    def test_rows_and_columns_are_those_that_are_chosen(self, embedded):
        text = "Unbelievably odd."
        at = open_page(PAGE, text=text, unit="words", special="hidden", layer=3, head=1)
        assert_no_exception(at)
        trace = embedded.trace(text)
        map_ = attnviz.project(trace, 3, 1, method="attention")
        ends = [map_.points[map_.rows(role)] for role in ("query", "key")]
        of_map = implied_weights(ends[0], ends[1], np.ones((len(trace.tokens),) * 2, dtype=bool))
        spans = Axis.of(trace.tokens, "words").without_special().spans
        words = [list(range(first, stop)) for first, stop in spans]
        expected = [[of_map[np.ix_(row, column)].sum(axis=1).mean() for column in words] for row in words]
        assert max(map(len, words)) > 1
        np.testing.assert_allclose(numbers(figure(at, "implied_second")["data"][0]["z"]), expected, atol=1e-5)

    def test_in_three_dimensions_too(self, door_trace):
        at = open_page(PAGE, **DOOR, dimensions=3)
        map_ = attnviz.project(door_trace, 3, 1, method="attention", dimensions=3)
        ends = [map_.points[map_.rows(role)] for role in ("query", "key")]
        expected = implied_weights(ends[0], ends[1], np.ones((11, 11), dtype=bool))
        np.testing.assert_allclose(numbers(figure(at, "implied_second")["data"][0]["z"]), expected, atol=1e-6)

    def test_other_maps_imply_no_weights(self):
        at = open_page(PAGE, **DOOR, method="pca")
        assert not [key for key in charts(at) if key.startswith("implied")]


@pytest.mark.parametrize(("kind", "is_biased"), [("encoder", True), ("decoder", True), ("cross", False)])
def test_lifted_vectors_know_nothing_of_a_bias(kind, is_biased, checkpoint, tiny_model, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint("t5")))
    text, target = "the cat sat on a mat", "a door opened when it sat"
    at = open_page(
        PAGE, model="t5", text=text, second=target, kind=kind, layer=1, method="pca", space="lifted"
    )
    assert_no_exception(at)
    notes = captions(at)
    assert SPACE_WORDS["lifted"] in notes
    assert (BIASED in notes) == is_biased
    trace = tiny_model("t5").trace(text, target)
    queries, keys = fed(trace.query(1, 0, kind), trace.key(1, 0, kind), "lifted")
    distances, scores = cdist(queries, keys), trace.scores(1, 0, kind)
    products = trace.query(1, 0, kind) @ trace.key(1, 0, kind).T
    seen = np.isfinite(scores)
    follow = {
        name: all(
            spearmanr(row[s], distance[s]).statistic < -0.999
            for row, distance, s in zip(numbers_, distances, seen, strict=True)
            if s.sum() > 1
        )
        for name, numbers_ in (("q·k", products), ("score", scores))
    }
    assert follow == {"q·k": True, "score": not is_biased}


def test_both_figures_stand_beside_those_of_permuted_key_points(door_trace):
    at = open_page(PAGE, **DOOR, method="tsne", space="raw", metric="cosine")
    map_ = attnviz.project(door_trace, 3, 1)
    of_order = f"{map_.chance.correlation:.2f}".replace("-", "−"), f"{map_.chance.correlation_p:.3f}"
    own = f"{100 * map_.in_map.nearest_agreement:.0f}%", "11"
    of_nearest = f"{100 * map_.chance.nearest:.0f}%", f"{map_.chance.nearest_p:.3f}"
    assert any(facts(line.value).has(*of_order, *own, *of_nearest) for line in at.markdown)


@pytest.mark.parametrize("page", ["attention.py", "pages/door_experiment.py"])
def test_a_t_sne_map_leads_to_the_map_that_is_fitted_to_the_attention(page):
    at = open_page(page)
    links = [part.proto for part in at.main.get("page_link") if part.proto.page == "query_key_map"]
    # the other ones split a score, or are the room's row
    of_row = part_named("Other maps").question
    [link] = [link for link in links if "sources=1" not in link.query_string and link.help != of_row]
    there = open_page("pages/query_key_map.py", **dict(parse_qsl(link.query_string)))
    assert there.selectbox(key="field_method").value == "attention"
