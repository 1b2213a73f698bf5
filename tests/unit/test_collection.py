"""A collection: what is read of a text and what is left out, its vectors, and the joint map of one head."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr

import attnviz
from attnviz.figures.joint_map import TINTS, draw_joint_map, hover_texts
from attnviz.figures.theme import LIGHT
from attnviz.maps.collection import bundled, collect, decoded
from attnviz.maps.joint_map import joint_map

pytestmark = pytest.mark.slow

LINES = "The old door creaked.\n\nShe opened the Door slowly, unbelievably slowly.\nWhy?\n"


@pytest.fixture(scope="module")
def few(embedded):
    return collect(embedded, LINES, 3)


def assert_close(numbers, expected):
    """Equal up to float32 sums: a collection is read with one thread, a trace with all of them."""
    np.testing.assert_allclose(numbers, expected, atol=2e-5, rtol=2e-5)


def scores_of(collection, head):
    return [collection.scores(number, head) for number in range(len(collection.tokens))]


class TestReading:
    def test_each_line_is_read_by_itself_as_a_trace_of_it_is(self, embedded, few):
        lines = [line for line in LINES.split("\n") if line]
        traces = [embedded.trace(line) for line in lines]
        assert [token.text for token in few.tokens] == lines
        assert few.line.tolist() == [1, 3, 4]
        assert (few.kind, few.layer, few.n_heads, few.n_found) == ("encoder", 3, 12, 3)
        for head in (0, 7):
            queries, keys = few.vectors(head)
            assert_close(queries, np.concatenate([trace.query(3, head) for trace in traces]))
            assert_close(keys, np.concatenate([trace.key(3, head) for trace in traces]))
            for number, trace in enumerate(traces):
                assert_close(few.weights(number, head), trace.weights(3, head))
                assert_close(few.scores(number, head), trace.scores(3, head))

    def test_of_one_sentence(self, embedded):
        single = collect(embedded, "Why?", 4)
        assert (single.kind, single.layer, single.n_heads, len(single.tokens)) == ("encoder", 4, 12, 1)
        with pytest.raises(attnviz.SelectionError, match="layer 4 of all-MiniLM-L6-v2 has heads 0 to 11"):
            single.head(0, 12)

    def test_sentences_and_their_attention_fit(self, few):
        for wrong in ({"attention": few.attention[::-1]}, {"line": few.line[:-1]}):
            with pytest.raises(attnviz.ShapeError, match=r"^Collection: "):
                replace(few, **wrong)

    def test_tokens_are_counted_through(self, few):
        lengths = [len(token) for token in few.tokens]
        assert few.n_tokens == sum(lengths) == len(few.sentence) == len(few.position)
        assert few.sentence[few.start(2)] == 2
        assert few.sentence[few.start(2) - 1] == 1
        assert [few.start(number) for number in range(3)] == np.flatnonzero(few.position == 0).tolist()

    def test_values_and_other_layers_are_not_kept(self, few):
        assert all(call.value.size == 0 and call.output_weight is None for call in few.attention)
        kept = sum(call.query.nbytes + call.key.nbytes for call in few.attention)
        assert kept == 2 * few.n_tokens * 384 * 4

    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    def test_line_ends_of_every_system(self, embedded, end):
        collection = collect(embedded, f"\ufeffone{end}{end}  {end}two\u2028three{end}", 0)
        assert [token.labels[1:-1] for token in collection.tokens] == [("one",), ("two", "three")]
        assert collection.line.tolist() == [1, 4]

    def test_what_cannot_be_read_is_left_out_by_number(self, embedded):
        collection = collect(embedded, "door\n\x00\x07\ndoor\n\ud800\n\u200b", 0)
        assert collection.line.tolist() == [1, 3]
        assert collection.dropped == (2, 4, 5)
        assert collection.remarks() == (
            "Lines 2, 4 and 5 are left out: nothing there that the model can read.",
        )
        with pytest.raises(attnviz.EmptyTextError, match="sentence on a line of its own"):
            collect(embedded, "\n\x00\n", 0)

    def test_tokens_above_the_limit_are_left_out_and_said(self, embedded):
        collection = collect(embedded, "the door\n" * 5, 0, most_tokens=13)  # 4 tokens each
        assert len(collection.tokens) == 3
        assert collection.remarks() == (
            "The first 3 of 5 sentences are read: together 12 tokens, and the limit is 13.",
        )
        assert collect(embedded, "the door\n" * 3, 0, most_tokens=12).remarks() == ()

    def test_a_line_over_the_limit_of_the_model_is_cut_and_said(self, embedded):
        collection = collect(embedded, "a\n" + "door " * 200_000 + "\n" + "it " * 600, 0)
        assert [len(token) for token in collection.tokens] == [3, 512, 512]
        assert collection.remarks() == ("Lines 2 and 3 are longer than 512 tokens, and cut there.",)

    @pytest.mark.parametrize(
        ("numbers", "words"),
        [
            ((3,), "Line 3 is"),
            ((3, 5), "Lines 3 and 5 are"),
            ((3, 5, 8), "Lines 3, 5 and 8 are"),
            ((3, 5, 8, 9), "Lines 3, 5, 8 and 1 more are"),
            (tuple(range(1, 1238)), "Lines 1, 2, 3 and 1,234 more are"),
        ],
    )
    def test_lines_are_named_in_a_sentence(self, few, numbers, words):
        left_out = replace(few, dropped=numbers).remarks()
        assert left_out == (f"{words} left out: nothing there that the model can read.",)

    def test_the_shortest_line_that_was_cut_says_where(self, few):
        lengths = [len(sentence) for sentence in few.tokens]
        assert lengths[0] < lengths[1]
        sentence = f"Lines 1 and 3 are longer than {lengths[0]} tokens, and cut there."
        assert replace(few, cut=(1, 3)).remarks() == (sentence,)

    def test_progress_grows_and_may_stop_the_reading(self, embedded):
        told = []
        collect(embedded, LINES, 0, progress=told.append)
        assert told == [0, 1 / 3, 2 / 3]

        def stop(share):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            collect(embedded, LINES, 0, progress=stop)

    def test_causal_and_grouped_attention(self, tiny_model):
        collection = collect(tiny_model("llama"), "a cat sat\nthe door", 1)
        trace = tiny_model("llama").trace("the door")
        assert collection.kind == "decoder"
        head = collection.n_heads - 1
        assert_close(collection.scores(1, head), trace.scores(1, head))
        assert_close(collection.vectors(head)[1][-len(trace.tokens) :], trace.key(1, head))
        assert np.isneginf(collection.scores(1, head)[0, 1])

    def test_positions_that_are_added_to_the_scores(self, tiny_model):
        collection = collect(tiny_model("t5"), "a cat sat\nthe door", 0, kind="encoder")
        trace = tiny_model("t5").trace("the door")
        for head in range(collection.n_heads):
            assert_close(collection.weights(1, head), trace.weights(0, head, "encoder"))

    def test_only_an_encoder_reads_one_line(self, tiny_model):
        with pytest.raises(attnviz.SelectionError, match="Select encoder attention"):
            collect(tiny_model("bart"), "the door", 0, kind="cross")

    def test_layers_heads_and_sentences_that_are_not_there(self, embedded, few):
        with pytest.raises(attnviz.SelectionError, match="Layer 6"):
            collect(embedded, "door", 6)
        with pytest.raises(attnviz.SelectionError, match="Head 12"):
            few.vectors(12)
        with pytest.raises(attnviz.SelectionError, match="Sentence 3"):
            few.scores(3, 0)


class TestFile:
    def test_of_text(self):
        assert decoded("\ufeffTür\r\nשלום".encode()) == "Tür\r\nשלום"
        assert len(decoded(b"a" * 1_000_000)) == 1_000_000

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (b"ab\xff\xfe", "byte 3 is 0xFF"),
            ("door".encode("utf-16"), "byte 1 is 0xFF"),
            (b"\x89PNG\r\n\x1a\n\x00", "byte 1 is 0x89"),
            (b"a" * 1_000_001, "1,000,001 bytes; at most 1,000,000"),
        ],
    )
    def test_that_is_none(self, data, message):
        with pytest.raises(attnviz.InvalidTextError) as caught:
            decoded(data)
        assert message in str(caught.value)

    def test_bundled_sentences_are_different_short_and_many(self):
        lines = bundled().splitlines()
        assert 195 <= len(lines) == len(set(lines)) <= 215
        assert all(4 <= len(line.split()) <= 26 and line == line.strip() for line in lines)


class TestFind:
    @pytest.mark.parametrize("text", ["door", "DOOR", " Door "])
    def test_upper_and_lower_case_are_one(self, few, text):
        labels = [label for token in few.tokens for label in token.labels]
        assert few.find(text).tolist() == [n for n, label in enumerate(labels) if label == "door"]
        assert len(few.find(text)) == 2

    def test_pieces_and_whole_words(self, few):
        labels = [label for token in few.tokens for label in token.labels]
        pieces = [n for n, label in enumerate(labels) if label in ("un", "##bel", "##ie", "##va", "##bly")]
        assert few.find("unbelievably").tolist() == pieces
        assert few.find("##bly").tolist() == few.find("bly").tolist() == pieces[-1:]

    @pytest.mark.parametrize("text", ["doo", "the door", "<b>", "", "  "])
    def test_of_nothing(self, few, text):
        assert few.find(text).tolist() == []


class TestJointMap:
    def test_points_are_queries_then_keys(self, few):
        map_ = joint_map(*few.vectors(1), scores_of(few, 1), method="pca", space="raw")
        vectors = np.concatenate(few.vectors(1)).astype(np.float64)
        centred = vectors - vectors.mean(axis=0)
        _, axes = np.linalg.eigh(centred.T @ centred)
        expected = centred @ axes[:, :-3:-1]
        np.testing.assert_allclose(np.abs(map_.points), np.abs(expected), atol=1e-3)
        assert (map_.method, map_.n_compared, dict(map_.parameters)) == ("pca", 2 * few.n_tokens, {})

    def test_faithfulness_is_the_mean_over_the_queries_of_all_sentences(self, few):
        map_ = joint_map(*few.vectors(4), scores_of(few, 4), method="pca", space="centred")
        n, correlations, nearest = few.n_tokens, [], []
        for number, start in enumerate(np.flatnonzero(few.position == 0)):
            here = slice(start, start + len(few.tokens[number]))
            for query, row in zip(map_.points[:n][here], few.weights(number, 4), strict=True):
                distance = np.linalg.norm(query - map_.points[n:][here], axis=1)
                correlations.append(spearmanr(row, distance).statistic)
                nearest.append(row.argmax() == distance.argmin())
        assert map_.in_map.order_correlation == pytest.approx(np.mean(correlations), abs=1e-6)
        assert map_.in_map.worst_correlation == pytest.approx(max(correlations), abs=1e-6)
        assert map_.in_map.nearest_agreement == pytest.approx(np.mean(nearest))

    @pytest.mark.nightly
    def test_key_points_are_permuted_within_their_sentence(self, few):
        """Three sentences: both quantiles and both p-values, against 400 draws of the test's own."""
        map_ = joint_map(*few.vectors(4), scores_of(few, 4), method="pca", space="raw")
        n, draw = few.n_tokens, np.random.default_rng(1)
        correlations, shares = [], []
        for _ in range(400):
            rows, nearest = [], []
            for number, start in enumerate(np.flatnonzero(few.position == 0)):
                size = len(few.tokens[number])
                keys = map_.points[n + start + draw.permutation(size)]
                distance = cdist(map_.points[start : start + size], keys)
                weights = few.weights(number, 4)
                rows += [spearmanr(*pair).statistic for pair in zip(weights, distance, strict=True)]
                nearest += (weights.argmax(axis=1) == distance.argmin(axis=1)).tolist()
            correlations.append(np.mean(rows))
            shares.append(np.mean(nearest))
        assert map_.chance.n_permutations == 999
        assert map_.chance.correlation == pytest.approx(np.quantile(correlations, 0.05), abs=0.04)
        assert map_.chance.nearest == pytest.approx(np.quantile(shares, 0.95), abs=2 / n)
        p = np.mean(np.array(correlations) <= map_.in_map.order_correlation + 1e-9)
        assert map_.chance.correlation_p == pytest.approx(p, abs=0.08)
        p = np.mean(np.array(shares) >= map_.in_map.nearest_agreement - 1e-9)
        assert map_.chance.nearest_p == pytest.approx(p, abs=0.08)

    def test_a_shift_over_the_whole_collection_leaves_order_exact_when_lifted(self, few):
        map_ = joint_map(*few.vectors(2), scores_of(few, 2), method="pca", space="lifted")
        assert map_.in_space.order_correlation == pytest.approx(-1, abs=1e-3)  # float32 ties
        assert map_.in_space.nearest_agreement == pytest.approx(1)
        raw = joint_map(*few.vectors(2), scores_of(few, 2), method="pca", space="raw")
        assert raw.in_space.order_correlation > -0.999

    def test_weights_stay_when_all_keys_are_centred_together(self, few):
        queries, keys = few.vectors(5)
        first, stop = few.start(1), few.start(2)
        moved = queries[first:stop] @ (keys - keys.mean(axis=0))[first:stop].T / np.sqrt(32)
        weights = np.exp(moved - moved.max(axis=1, keepdims=True))
        np.testing.assert_allclose(weights / weights.sum(axis=1, keepdims=True), few.weights(1, 5), atol=2e-6)

    @pytest.mark.parametrize("method", ["tsne", "umap"])
    def test_same_settings_same_picture_and_progress(self, few, method):
        told = []
        first = joint_map(*few.vectors(1), scores_of(few, 1), method=method, seed=7, progress=told.append)
        again = joint_map(*few.vectors(1), scores_of(few, 1), method=method, seed=7)
        other = joint_map(*few.vectors(1), scores_of(few, 1), method=method, seed=8)
        np.testing.assert_array_equal(first.points, again.points)
        assert not np.allclose(first.points, other.points)
        assert told == sorted(told)
        assert 0 < told[0] <= told[-1] <= 1

    def test_where_no_query_sees_two_keys_nothing_is_judged(self):
        vectors = np.random.default_rng(0).standard_normal((2, 5, 3)).astype(np.float32)
        alone = np.where(np.eye(5, dtype=bool), 0.0, -np.inf).astype(np.float32)
        map_ = joint_map(*vectors, [alone], method="pca")
        assert (map_.in_map.n_query, map_.in_space.n_query, map_.chance.n_permutations) == (0, 0, 0)
        assert np.isnan(map_.in_map.order_correlation)

    def test_what_too_few_points_ask_for(self, embedded):
        few = collect(embedded, "door\nthe", 0)
        map_ = joint_map(*few.vectors(0), scores_of(few, 0), method="tsne", perplexity=30.0)
        assert map_.parameters["perplexity"] == pytest.approx(
            7 / 3
        )  # [CLS] of both texts is the same in layer 0, and [SEP]
        assert map_.remark == "Perplexity 30 is lowered to 2.3: there are only 12 points at 8 places."

    def test_a_sample_is_compared_where_points_are_many(self, few, monkeypatch):
        monkeypatch.setattr("attnviz.maps.joint_map.MOST_COMPARED", 17)
        map_ = joint_map(*few.vectors(1), scores_of(few, 1), method="pca")
        assert map_.n_compared == 17
        assert 0.5 < map_.trustworthiness <= 1

    @pytest.mark.parametrize(
        "asked",
        [
            {"method": "mds"},
            {"method": "attention"},
            {"method": "tsne", "perplexity": 0.5},
            {"method": "tsne", "perplexity": float("nan")},
            {"method": "umap", "neighbours": 1},
            {"method": "umap", "seed": -1},
            {"space": "cosine"},
        ],
    )
    def test_what_a_map_cannot_be_asked(self, few, asked, types_unchecked):
        with pytest.raises((attnviz.ProjectionError, attnviz.SelectionError)):
            joint_map(*few.vectors(1), scores_of(few, 1), **asked)

    def test_goes_to_another_process_and_back(self, few):
        map_ = joint_map(*few.vectors(1), scores_of(few, 1), method="pca")
        back = pickle.loads(pickle.dumps(map_))
        np.testing.assert_array_equal(back.points, map_.points)
        assert back.in_map.order_correlation == map_.in_map.order_correlation


class TestFigure:
    @pytest.fixture
    def points(self, few):
        return np.random.default_rng(3).normal(size=(2 * few.n_tokens, 2)).astype(np.float32)

    def drawn(self, few, points, **own):
        lengths = np.arange(len(points), dtype=np.float32)
        return draw_joint_map(points, few.tokens, hover_texts(few.tokens), lengths=lengths, **own)

    def points_of(self, figure):
        """The traces that have points; the others are marks of the legend."""
        return [trace for trace in figure.data if trace.hoverinfo != "skip"]

    @pytest.mark.parametrize("tint", TINTS)
    def test_every_point_is_drawn_once_where_it_lies(self, few, points, tint):
        placed = {}
        for trace in self.points_of(self.drawn(few, points, tint=tint)):
            assert trace.type == "scattergl"
            for x, y, (side, token) in zip(trace.x, trace.y, trace.customdata, strict=True):
                assert trace.marker.symbol == ("circle", "diamond")[side]
                assert (side, token) not in placed
                placed[side, token] = (x, y)
        assert len(placed) == len(points)
        for (side, token), place in placed.items():
            np.testing.assert_array_equal(place, points[side * few.n_tokens + token])

    def test_the_plane_has_no_axes_and_one_scale(self, few, points):
        layout = self.drawn(few, points).layout
        assert not layout.xaxis.visible and not layout.yaxis.visible and layout.showlegend
        assert (layout.yaxis.scaleanchor, layout.yaxis.scaleratio) == ("x", 1)

    def test_many_points_are_smaller(self, few, points, monkeypatch):
        sizes = []
        for most in (len(points), len(points) - 1):
            monkeypatch.setattr("attnviz.figures.joint_map._MANY", most)
            sizes.append({trace.marker.size for trace in self.points_of(self.drawn(few, points))})
        assert sizes == [{6}, {4}]

    def test_numbers_are_those_of_the_tokens(self, few, points):
        for tint, expected in (
            ("position", few.position),
            ("sentence", few.sentence + 1),
            ("norm", None),
        ):
            queries, keys = self.points_of(self.drawn(few, points, tint=tint))
            n = few.n_tokens
            np.testing.assert_array_equal(
                queries.marker.color, np.arange(n) if expected is None else expected
            )
            np.testing.assert_array_equal(
                keys.marker.color, np.arange(n, 2 * n) if expected is None else expected
            )

    @pytest.mark.parametrize("tint", TINTS)
    def test_marks_of_the_legend_have_the_form_of_their_side_where_they_stand_for_one(
        self, few, points, tint
    ):
        marks = {
            trace_of_figure.name: trace_of_figure.marker.symbol
            for trace_of_figure in self.drawn(few, points, tint=tint).data
            if trace_of_figure.hoverinfo == "skip"
        }
        sides = {"queries": "circle", "keys": "diamond"}
        assert marks.items() <= sides.items() if sides.keys() & marks else set(marks.values()) == {"circle"}

    def test_frequent_tokens_are_counted(self, few, points):
        names = [trace.name for trace in self.drawn(few, points, tint="token").data]
        assert {"[CLS] (3)", "[SEP] (3)", "door (2)", "slowly (2)"} <= set(names)

    def test_what_is_found_stands_out_and_the_rest_fades(self, few, points):
        figure = self.drawn(few, points, matches=few.find("door"))
        highlighted = [trace for trace in figure.data if trace.name.startswith("found")]
        assert [sorted(token for _, token in result.customdata) for result in highlighted] == [
            few.find("door").tolist()
        ] * 2
        assert all(trace.marker.opacity < 0.2 for trace in self.points_of(figure) if trace not in highlighted)
        assert {result.marker.line.color for result in highlighted} == {LIGHT.text}

    @pytest.mark.parametrize("tint", TINTS)
    def test_marks_of_the_legend_are_as_strong_as_their_colour(self, few, points, tint):
        for matches in (None, few.find("door")):
            figure = self.drawn(few, points, tint=tint, matches=matches)
            in_legend = [trace for trace in figure.data if trace.showlegend is not False]
            assert len({trace.name for trace in in_legend}) == len(in_legend) >= 2
            assert all(trace.marker.opacity in (None, 1) for trace in in_legend)
            groups = {trace.legendgroup for trace in in_legend}  # a click on a mark hides its points
            assert all(trace.legendgroup in groups for trace in self.points_of(figure) if matches is None)

    def test_special_tokens_are_left_out(self, few, points):
        shown = ~np.concatenate([token.is_special for token in few.tokens])
        for tint in ("role", "position"):
            figure = self.drawn(few, points, tint=tint, shown=shown)
            assert [len(trace.x) for trace in self.points_of(figure)] == [shown.sum()] * 2
            tokens = figure.data[0].customdata[:, 1]
            np.testing.assert_array_equal(tokens, np.flatnonzero(shown))
        np.testing.assert_array_equal(figure.data[1].marker.color, few.position[shown])

    def test_hover_says_token_and_sentence_literally(self, embedded):
        tokens = collect(embedded, "see <b>$x$</b> & run home now", 0).tokens
        texts = hover_texts(tokens)
        assert texts[1].startswith("see·1, sentence 1<br>[CLS] ‹see› &lt; b &gt; &#36; …")
        assert all(text.count("<") == 1 for text in texts)
