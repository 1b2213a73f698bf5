"""How reliable a map is: the figures on the page are the map's, and its verdict follows from them."""

import re
from dataclasses import replace
from html import unescape
from urllib.parse import parse_qsl

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr

import attnviz
from attnviz.maps.attention_map import implied_weights
from attnviz.maps.faithfulness import chance_correlation
from attnviz.maps.spaces import fed
from attnviz.records import Axis, Faithfulness, Projection
from tests.app.screen import assert_no_exception, charts, figure, numbers, open_page, unescaped
from tests.hand_made import tokens
from ui.sections.query_key_map import belief
from ui.words.findings import map_note
from ui.words.judgement import FAIR, judge

PAGE = "pages/query_key_map.py"
DOOR = {"text": "I was watching the door when it opened.", "layer": 3, "head": 1, "query": 7, "key": 5}
LOST = "Attention lost"


def verdict(at) -> str:
    [found] = [
        one.value for one in at.markdown if re.search(r"This .* map (can|is|misleads)|to judge", one.value)
    ]
    return unescaped(found)


def table(at) -> dict[str, list[str]]:
    """What stands in the columns of each row of the figures."""
    [html] = [one.proto.body for one in at.get("html") if 'class="belief"' in one.proto.body]
    rows = re.findall(r"<tr><th scope=\"row\">.*?<summary>(.*?)</summary>.*?</th>(.*?)</tr>", html)
    return {
        unescape(title): [
            unescape(re.sub("<.*?>", "", cell)).replace("−", "-")
            for cell in re.findall("<td>(.*?)</td>", cells)
        ]
        for title, cells in rows
    }


def written(found: Faithfulness, labels) -> list[str]:
    return [
        f"{found.order_correlation:+.2f}",
        f"{labels[found.worst_query]} {found.worst_correlation:+.2f}",
        f"{100 * found.nearest_agreement:.0f}%",
    ]


class TestPanel:
    def test_of_the_attention_map(self, door_trace):
        at = open_page(PAGE, **DOOR)
        assert_no_exception(at)
        map_ = attnviz.project(door_trace, 3, 1, method="attention")
        found = table(at)
        assert [cells[0] for cells in found.values()] == [
            *written(map_.in_map, door_trace.tokens.labels),
            f"{map_.trustworthiness:.2f}",
            f"{map_.divergence:.2f} nats",
        ]
        assert {len(cells) for cells in found.values()} == {1}  # no vectors were fed in
        weights = door_trace.weights(3, 1).astype(np.float64)
        lost = np.log(11) + (weights * np.log(weights)).sum(axis=1).mean()
        assert f"equal weights on all keys would lose {lost:.2f} nats" in str(
            [one.proto.body for one in at.get("html")]
        )

    def test_of_another_map_beside_the_vectors_fed_in(self, door_trace):
        at = open_page(PAGE, **DOOR, method="tsne", space="centred", metric="cosine", seed=5)
        assert_no_exception(at)
        map_ = attnviz.project(door_trace, 3, 1, method="tsne", space="centred", metric="cosine", seed=5)
        labels = door_trace.tokens.labels
        found = list(table(at).values())
        assert [cells[0] for cells in found[:3]] == written(map_.in_map, labels)
        assert [cells[1] for cells in found[:3]] == written(map_.in_space, labels)
        assert found[3] == [f"{map_.trustworthiness:.2f}", ""]
        assert LOST not in table(at)

    def test_the_lift_keeps_every_order(self):
        at = open_page(PAGE, **DOOR, method="pca", space="lifted")
        assert [cells[1] for cells in list(table(at).values())[:3]][0::2] == ["-1.00", "100%"]

    def test_a_token_is_shown_as_it_is(self):
        at = open_page(PAGE, text="<b>$x$</b> & <b>*y*</b> over", method="pca")
        assert_no_exception(at)
        queries = attnviz.load_model().trace("<b>$x$</b> & <b>*y*</b> over").tokens.labels
        worst = table(at)["… of the worst query"][0].rpartition(" ")[0]
        assert worst in queries

    def test_one_token_alone_cannot_be_judged(self):
        at = open_page(PAGE, text="a")
        assert_no_exception(at)
        assert "too few tokens to judge" in verdict(at)


def projection(
    mean: float, worst: float = -0.9, nearest: float = 1.0, before: float | None = None
) -> Projection:
    """A map with these figures; its queries are those of `QUERIES`."""
    one = tokens(["[CLS]", "door", "*it*"])

    def figures(correlation: float) -> Faithfulness:
        return Faithfulness(
            order_correlation=correlation, worst_correlation=worst, worst_query=2, nearest_agreement=nearest
        )

    return Projection(
        points=np.zeros((6, 2), dtype=np.float32),
        method="tsne",
        space="raw",
        parameters={},
        in_map=figures(mean),
        in_space=None if before is None else figures(before),
        trustworthiness=0.9,
        role=("query",) * 3 + ("key",) * 3,
        position=np.array([0, 1, 2, 0, 1, 2]),
        query_tokens=one,
        key_tokens=one,
        kind="encoder",
        layer=0,
        head=0,
        provenance=attnviz.Provenance(model="none", revision="none", dtype="float32", versions={}),
    )


def said(map_: Projection, chance: float = -0.5, *, has_bias: bool = False) -> str:
    return unescaped(belief.verdict(map_, chance, Axis.of(map_.query_tokens), has_bias=has_bias))


class TestVerdict:
    @pytest.mark.parametrize(
        ("mean", "judgement"),
        [
            (-0.1, "misleads"),
            (0.6, "misleads"),
            (-0.49, "misleads"),
            (-0.51, "rough"),
            (-0.69, "rough"),
            (-0.71, "fair"),
        ],
    )
    def test_by_the_correlation_and_what_chance_gives(self, mean, judgement):
        assert judge(projection(mean).in_map, -0.5) == judgement
        start = {
            "misleads": ":red[**This t-SNE map misleads:**]",
            "rough": "**This t-SNE map is rough:**",
            "fair": "**This t-SNE map can be read:**",
        }
        assert said(projection(mean)).startswith(start[judgement])
        read = {"misleads": "Read the lines of", "rough": "Trust the lines", "fair": "Distances can be read"}
        assert read[judgement] in map_note(projection(mean), -0.5)

    def test_a_fair_map_of_few_keys_may_be_chance(self):
        assert judge(projection(-0.71).in_map, -0.8) == "misleads"
        assert judge(projection(-1.0).in_map, -1.2) == "unknown"
        assert "too few tokens" in said(projection(-1.0), -1.2)

    def test_no_order_at_all(self):
        found = replace(projection(float("nan")), trustworthiness=float("nan"))
        assert "no query sees two keys" in said(found, float("nan"))

    def test_the_numbers_are_in_it(self):
        assert (
            "correlation of distance and score is −0.10 (−1 is perfect); at most one shuffled map in twenty goes below "
            "−0.50." in said(projection(-0.1))
        )
        assert "the nearest has the largest weight for 83% of the queries." in said(
            projection(-0.8, nearest=0.83)
        )
        assert "for only 33% of the queries" in said(projection(-0.8, nearest=0.33))
        assert "for only 33% of the queries" in said(projection(-0.6, nearest=0.33))
        assert "largest weight for 67%" in said(projection(-0.6, nearest=0.67))

    def test_a_query_that_is_served_badly_is_left_out_by_name(self):
        assert "The distances of the query “*it*” say little, though (−0.20)." in said(
            projection(-0.8, worst=-0.2)
        )
        assert "Leave out" not in said(projection(-0.8, worst=-0.6))

    def test_where_the_order_was_lost(self):
        lost = said(projection(-0.1, before=-0.95))
        assert lost.endswith("(correlation −0.95); this t-SNE map in 2 dimensions does not keep that.")
        assert "among the vectors fed in either (correlation −0.30)" in said(projection(-0.1, before=-0.3))
        assert said(projection(-0.1, before=-0.3)).endswith("among lifted ones Euclidean distance does.")
        assert "fed in" not in said(projection(-0.1))
        biased = said(projection(-0.1, before=-0.3), has_bias=True)
        assert biased.endswith(
            "among lifted ones Euclidean distance follows q·k, but not the bias that this layer adds to it."
        )

    def test_share_of_pairs_in_order_is_as_its_constant_says(self):
        share = 0.5 + np.arcsin(2 * np.sin(np.pi * -FAIR / 6)) / np.pi
        random = np.random.default_rng(0)
        linear = 2 * np.sin(np.pi * -FAIR / 6)  # of normal numbers whose ranks correlate with 0.7
        one, other = random.multivariate_normal(
            [0, 0], [[1, linear], [linear, 1]], size=(2, 50_000)
        ).transpose(2, 0, 1)
        assert np.mean((one[0] < one[1]) == (other[0] < other[1])) == pytest.approx(share, abs=0.01)
        assert share == pytest.approx(0.75, abs=0.01)


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
        [words] = [
            one.value for one in at.markdown if "attention on keys where the model does not" in one.value
        ]
        assert f"{100 * elsewhere.mean():.1f}%" in words
        assert unescaped(words).endswith(
            f"most for “{door_trace.tokens.labels[elsewhere.argmax()]}”, {100 * elsewhere.max():.1f}%.**"
        )

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
    notes = unescaped(" ".join(one.value for one in at.caption))
    assert "by Euclidean distance the nearer key has the larger q·k for every query" in notes
    assert ("distances follow q·k, not the biased score" in notes) == is_biased
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


def test_chance_is_that_of_this_many_tokens(door_trace):
    at = open_page(PAGE, **DOOR, method="tsne", space="raw", metric="cosine")
    chance = chance_correlation(door_trace.scores(3, 1))
    assert chance == pytest.approx(-1.73 / np.sqrt(10))
    assert f"below {chance:.2f}".replace("-", "−") in verdict(at)


@pytest.mark.parametrize("page", ["attention.py", "pages/door_experiment.py"])
def test_a_t_sne_map_leads_to_the_map_that_is_fitted_to_the_attention(page):
    at = open_page(page)
    [link] = [one.proto for one in at.main.get("page_link") if one.proto.label.startswith("Other maps")]
    assert link.label == "Other maps of these vectors, one fitted to the attention itself"
    there = open_page("pages/query_key_map.py", **dict(parse_qsl(link.query_string)))
    assert any(one.value.startswith("**This attention map ") for one in there.markdown)
