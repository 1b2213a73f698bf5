"""Numbers of all heads: by hand on paper, by loops over single cells, and by scipy."""

import math
import unicodedata
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy, spearmanr

from attnviz import heads
from attnviz.errors import SelectionError, ShapeError
from attnviz.model.trace import Trace
from attnviz.records import AttentionPattern, Axis, Head, Measure
from tests import hand_made

pytestmark = pytest.mark.slow

LABELS = ("[CLS]", "cat", ",", "cat", "[SEP]")
N = len(LABELS)


def moved(step: int) -> np.ndarray:
    """All weight on the token a step away; at the ends on the token itself."""
    matrix = np.eye(N, k=step)
    matrix[matrix.sum(axis=1) == 0] = np.eye(N)[matrix.sum(axis=1) == 0]
    return matrix


SWAPPED = np.eye(N)[[0, 3, 2, 1, 4]]  # each "cat" looks at the other
HALF_FIRST = 0.5 * np.eye(N) + 0.5 * np.eye(N)[[0] * N]  # half on itself, half on [CLS]
WEIGHTS = np.array(  # [layer head query key]
    [[np.full((N, N), 1 / N), np.eye(N), moved(-1)], [moved(1), SWAPPED, HALF_FIRST]]
)


def on_paper() -> dict[str, list[list[float]]]:
    """The numbers of WEIGHTS: a head a column, uniform, self, previous | next, swapped, half on [CLS]."""
    return {
        # 4 of 5 rows of the last head hold two halves: entropy ln 2
        "entropy": [[1, 0, 0], [0, 0, 0.8 * math.log(2) / math.log(5)]],
        # uniform: 2 x (4 x 1 + 3 x 2 + 2 x 3 + 1 x 4) = 40 of 25 cells; half first: (0 + 1 + 2 + 3 + 4) / 2 of 5 rows
        "distance": [[1.6, 0, 0.8], [0.8, 0.8, 1]],
        "self": [[0.2, 1, 0.2], [0.2, 0.6, 0.6]],
        "previous": [[0.2, 0, 1], [0, 0, 0.125]],
        "next": [[0.2, 0, 0], [1, 0, 0]],
        "cls": [[0.2, 0.2, 0.4], [0, 0.2, 0.6]],
        "sep": [[0.2, 0.2, 0], [0.4, 0.2, 0.1]],
        "punctuation": [[0.2, 0.2, 0.2], [0.2, 0.2, 0.1]],
        "same_token": [[0.2, 0, 0], [0, 1, 0]],
        # the second "cat" at the comma, which followed the first: only "previous" looks there
        "induction": [[0.2, 0, 1], [0, 0, 0]],
        "first": [[0.2, 0.2, 0.4], [0, 0.2, 0.6]],
        # previous: 4 of 5 weights are not returned; half first: 4 halves of 5
        "asymmetry": [[0, 0, 0.8], [0.8, 0, 0.4]],
        # 3 of 25 cells; half first: 1 and two halves of 5
        "top_tenth": [[0.12, 0.6, 0.6], [0.6, 0.6, 0.4]],
    }


@pytest.fixture(scope="module")
def made() -> Trace:
    return hand_made.trace(WEIGHTS, LABELS)


def of_all(trace: Trace, kind=None, **options) -> dict[str, np.ndarray]:
    queries, keys = Axis.of(trace.query_tokens(kind)), Axis.of(trace.key_tokens(kind))
    return heads.statistics_on(trace, kind, queries, keys, **options)


def ids_of(axis: Axis, entry: int) -> list[int]:
    """The ids of the tokens of an entry."""
    return axis.tokens.ids[slice(*axis.spans[entry])].tolist()


def by_cell(pattern: AttentionPattern, whole: AttentionPattern) -> dict[str, float]:
    """The numbers of one head, cell by cell, from their definitions; NaN where there is none.

    ``pattern`` is ``whole`` with fewer entries, or words, on its axes.
    """
    rows, columns = pattern.queries, pattern.keys
    inside = {
        position
        for axis in (rows, columns)
        for first, stop in axis.spans
        for position in range(first + 1, stop)
    }
    rank, number = {}, -1
    for position in range(len(whole.queries.tokens)):
        number += position not in inside
        rank[position] = number
    one_text = rows.tokens is columns.tokens
    weight, allowed = pattern.weights.astype(np.float64), pattern.allowed
    targets: dict[str, list[float]] = {
        name: [] for name in heads.STATISTICS if name not in ("entropy", "distance", "asymmetry", "top_tenth")
    }
    entropies, spanned, cells = [], 0.0, []
    ids = rows.tokens.ids

    def entry(axis: Axis, at: int) -> list[int]:
        return ids[slice(*axis.spans[at])].tolist()

    def twins_before(i: int, j: int) -> bool:
        """Whether the entry right before that of column j, shown or not, is an earlier one with the ids of row i."""
        *before, stop = (at for at in range(int(columns.spans[j, 0]) + 1) if at not in inside)
        if not before or rows.is_special[i] or rows.tokens.is_special[before[-1]]:
            return False
        earlier = before[-1] < rows.spans[i, 0]
        return earlier and ids[before[-1] : stop].tolist() == entry(rows, i)

    for i in range(len(rows)):
        sums: dict[str, list[float]] = {name: [] for name in targets}
        for j in range(len(columns)):
            if not allowed[i, j]:
                continue
            w, label, special = weight[i, j], columns.labels[j], columns.is_special[j]
            cells.append(w)
            at = int(columns.positions[j])
            step = rank[at] - rank[int(rows.positions[i])] if one_text else None
            spanned += w * abs(step or 0)
            held = {
                "self": step == 0,
                "previous": step == -1,
                "next": step == 1,
                "cls": special and at == 0,
                "sep": special and at > 0,
                "punctuation": not special
                and all(unicodedata.category(character)[0] == "P" for character in label.removeprefix("##")),
                "same_token": ids_of(columns, j) == ids_of(rows, i)
                and step != 0
                and not special
                and not rows.is_special[i],
                "induction": one_text and twins_before(i, j),
                "first": at == 0,
            }
            for name, holds in held.items():
                if holds:
                    sums[name].append(w)
        for name, held_weights in sums.items():
            if held_weights:
                targets[name].append(sum(held_weights))
        seen = weight[i, allowed[i]]
        if len(seen) > 1 and seen.sum() > 0:
            entropies.append(entropy(seen) / np.log(len(seen)))
    numbers = {name: np.mean(shares) if shares else np.nan for name, shares in targets.items()}
    numbers["entropy"] = np.mean(entropies) if entropies else np.nan
    total = sum(cells)
    numbers["top_tenth"] = sum(sorted(cells)[-math.ceil(len(cells) / 10) :]) / total
    numbers["distance"] = spanned / total if one_text else np.nan
    numbers["asymmetry"] = np.nan
    shared = sorted(
        {int(position) for position in rows.positions} & {int(position) for position in columns.positions}
    )
    if shared and pattern.kind == "encoder":
        above = below = 0.0
        for a in shared:
            for b in shared:
                there = weight[rows.index(a), columns.index(b)]
                back = weight[rows.index(b), columns.index(a)]
                above, below = above + abs(there - back), below + there + back
        numbers["asymmetry"] = above / below
    return numbers


def assert_as_by_cell(trace: Trace, kind, queries: Axis, keys: Axis, measure: Measure = "weights") -> None:
    tables = heads.statistics_on(trace, kind, queries, keys, measure=measure)
    layers = {0, trace.n_layers(kind) // 2, trace.n_layers(kind) - 1}
    for layer, head in product(
        sorted(layers), range(0, trace.n_heads(0, kind), 3)
    ):  # Python is slow cell by cell
        whole = trace.pattern(layer, head, kind, measure=measure)
        expected = by_cell(whole.arranged(queries, keys), whole)
        for name in heads.STATISTICS:
            here = tables[name][layer, head] if name in tables else np.nan
            # float32: sums of at most 40 x 40 weights
            assert here == pytest.approx(expected[name], abs=1e-5, nan_ok=True), (name, layer, head)


class TestStatistics:
    def test_on_paper(self, made):
        tables = of_all(made)
        assert list(tables) == list(heads.STATISTICS)
        for name, expected in on_paper().items():
            np.testing.assert_allclose(tables[name], expected, atol=1e-6, err_msg=name)  # float32

    def test_cell_by_cell(self, door_trace):
        axis = Axis.of(door_trace.tokens)
        assert_as_by_cell(door_trace, None, axis, axis)

    def test_of_words_without_special_tokens(self, embedded):
        trace = embedded.trace("The unwatched door, the untrodden doorstep: unwatched!")
        words = Axis.of(trace.tokens, "words")
        assert words.is_merged
        assert_as_by_cell(trace, None, words, words)
        assert_as_by_cell(trace, None, words.without_special(), words.without_special())
        assert_as_by_cell(trace, None, words, Axis.of(trace.tokens))

    @pytest.mark.parametrize("most_held", [500, 2000])
    def test_some_rows_at_a_time(self, embedded, tiny_model, monkeypatch, most_held):
        """The same numbers as in one block; some layers are held whole."""
        trace = embedded.trace("The unwatched door, the untrodden doorstep: unwatched!")
        causal = tiny_model("llama").trace("the cat sat on the cat on the mat")
        tokens, words = Axis.of(trace.tokens), Axis.of(trace.tokens, "words")
        assert words.is_merged
        asked = [(trace, None, words, words), (trace, None, words.where(words.positions % 5 != 2), tokens)]
        asked += [(of, None, *of.axes()) for of in (trace, causal)]
        at_once = [
            [heads.statistics_on(*of, measure=measure) for measure in ("weights", "norms")] for of in asked
        ]
        monkeypatch.setattr("attnviz.maths.blocks.QUERY_BLOCK", 3)
        monkeypatch.setattr("attnviz.heads.cells._FAR", 2)
        monkeypatch.setattr("attnviz.heads.layer_cells.MOST_HELD", most_held)
        for of, wholes in zip(asked, at_once, strict=True):
            for measure, whole in zip(("weights", "norms"), wholes, strict=True):
                in_blocks = heads.statistics_on(*of, measure=measure)
                assert list(in_blocks) == list(whole)
                for name, table in whole.items():
                    np.testing.assert_allclose(in_blocks[name], table, atol=1e-5, err_msg=name)

    def test_from_one_sentence_to_the_other(self, embedded):
        trace = embedded.trace("The cat saw the door.", "It opened the door, slowly.")
        axis = Axis.of(trace.tokens)
        assert_as_by_cell(trace, None, axis.of_segment(0), axis.of_segment(1))
        tables = heads.statistics_on(trace, None, axis.of_segment(0), axis.of_segment(1))
        assert not {"self", "previous", "cls", "asymmetry"} & set(tables)  # nothing of this is in these cells
        assert {"distance", "sep", "same_token"} <= set(tables)

    @pytest.mark.parametrize("family", ["roberta", "modernbert", "llama", "gpt2", "t5", "bart"])
    def test_of_every_kind(self, family, tiny_model):
        second = "it was watching" if family in ("t5", "bart") else None
        trace = tiny_model(family).trace("the cat, the door.", second)
        for kind in trace.kinds:
            queries, keys = Axis.of(trace.query_tokens(kind)), Axis.of(trace.key_tokens(kind))
            assert_as_by_cell(trace, kind, queries, keys)

    def test_what_a_decoder_has_not(self, tiny_model):
        tables = of_all(tiny_model("gpt2").trace("the cat, the door."))
        assert set(heads.STATISTICS) - set(tables) == {"next", "cls", "sep", "asymmetry"}  # "the" comes twice

    def test_what_cross_attention_has_not(self, tiny_model):
        tables = of_all(tiny_model("t5").trace("the cat sat.", "the mat."), "cross")
        missing = {"distance", "self", "previous", "next", "cls", "asymmetry", "induction"}
        assert set(heads.STATISTICS) - set(tables) == missing

    def test_a_causal_row_that_is_even_is_as_even_as_it_can_be(self):
        causal = np.tril(np.ones((N, N)))
        weights = (causal / causal.sum(axis=1, keepdims=True))[None, None]
        tables = of_all(hand_made.trace(weights, LABELS, kind="decoder", allowed=causal > 0))
        assert tables["entropy"] == pytest.approx(1)  # rows of 2 to 5 keys; the first sees itself alone
        assert tables["previous"] == pytest.approx(np.mean([1 / 2, 1 / 3, 1 / 4, 1 / 5]))
        assert tables["cls"] == pytest.approx(np.mean([1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]))
        assert tables["sep"] == pytest.approx(1 / 5)  # seen by itself alone

    def test_a_row_that_sees_no_key_does_not_count(self):
        allowed = np.ones((N, N), dtype=bool)
        allowed[1] = False
        tables = of_all(hand_made.trace(WEIGHTS, LABELS, allowed=allowed))
        assert tables["entropy"][0, 0] == pytest.approx(1)
        assert tables["self"][0, 1] == pytest.approx(1)
        np.testing.assert_allclose(tables["cls"][:, :2], [[0.2, 0.25], [0, 0.25]], atol=1e-6)
        assert tables["same_token"][1, 1] == pytest.approx(1)  # the row of the other "cat"
        assert tables["top_tenth"][0, 0] == pytest.approx(2 / 20)

    def test_a_row_whose_keys_add_nothing_does_not_count(self):
        """Of norm-based weights; the values of the first two keys have no length."""
        causal = np.tril(np.ones((4, 4)))
        weights = (causal / causal.sum(axis=1, keepdims=True))[None, None]
        trace = hand_made.trace(
            weights, "abcd", kind="decoder", allowed=causal > 0, lengths=np.array([[[0.0, 0, 1, 1]]])
        )
        # the third row has one key of three, and the fourth two of four: 0 and ln 2 / ln 4
        assert of_all(trace, measure="norms")["entropy"] == pytest.approx(0.25)

    def test_what_follows_a_token_may_be_its_twin(self):
        """In "a a b a", what followed the first "a" is the second, which itself has an earlier twin."""
        trace = hand_made.trace(np.full((1, 1, 4, 4), 0.25), "aaba")
        # the second "a" at itself, the third at the second and at "b"
        assert of_all(trace)["induction"] == pytest.approx((1 / 4 + 2 / 4) / 2)

    def test_the_same_token_is_one_of_the_same_id(self):
        """In "Mary gave Mary" the second one has a space, and is another token; all labels but one are the same without it."""
        labels = ("Mary", "␣gave", "␣Mary", "␣Mary")
        n = len(labels)
        weights = np.zeros((1, 2, n, n))
        weights[0, 0, :, 0] = 1  # all on "Mary"
        weights[0, 1] = np.eye(n)[[0, 1, 3, 2]]  # each "␣Mary" looks at the other
        trace = hand_made.trace(weights, labels)
        np.testing.assert_allclose(of_all(trace)["same_token"], [[0, 1]], atol=1e-6)
        once = hand_made.trace(weights[..., :3, :3], labels[:3])
        assert "same_token" not in of_all(once)  # no token occurs twice

    def test_words_are_the_same_if_all_their_tokens_are(self):
        labels = ("play", "##ing", "play", "##ed", "play", "##ing")
        trace = hand_made.trace(np.full((1, 1, 6, 6), 1 / 6), labels)
        words = Axis.of(trace.tokens, "words")
        tables = heads.statistics_on(trace, None, words, words)
        assert tables["same_token"][0, 0] == pytest.approx(2 / 6)  # two tokens of the other "playing"

    def test_punctuation_is_what_holds_nothing_else(self):
        labels = ("[CLS]", "a", "##.", "…", "«", "$", "it's", "#")  # a dollar is a symbol, category Sc
        n = len(labels)
        tables = of_all(hand_made.trace(np.full((1, 1, n, n), 1 / n), labels))
        assert tables["punctuation"] == pytest.approx(4 / n)

    def test_a_text_of_one_token(self, tiny_model):
        tables = of_all(tiny_model("gpt2").trace("a"))
        assert {name: numbers[0, 0] for name, numbers in tables.items()} == {
            "first": 1,
            "self": 1,
            "distance": 0,
            "top_tenth": 1,
        }

    def test_norm_based_weights_are_counted_as_shares(self, door_trace):
        tables = of_all(door_trace, measure="norms")
        norms = door_trace.layer_weights(3, measure="norms")
        expected = (norms[1, :, 0] / norms[1].sum(axis=1)).mean()
        assert tables["cls"][3, 1] == pytest.approx(expected, rel=1e-5)  # float32
        assert tables["cls"][3, 1] != pytest.approx(of_all(door_trace)["cls"][3, 1], rel=0.01)

    def test_strongest_of_a_head_in_blocks(self, embedded):
        trace = embedded.trace("The untrodden doorstep was old. " * 40)  # more rows than a block has
        n = len(trace.tokens)
        axes = trace.axes(None)
        assert n > 256
        weights = trace.weights(2, 3)
        pairs = heads.strongest_pairs_of_head(trace, 2, 3, None, *axes, 5, special=False, itself=False)
        cells = [
            (float(weights[row, column]), row, column)
            for row, column in product(range(1, n - 1), repeat=2)
            if row != column
        ]
        assert [pair.weight for pair in pairs] == pytest.approx(
            [cell[0] for cell in sorted(cells)[:-6:-1]], rel=1e-4
        )
        assert [float(weights[pair.row, pair.column]) for pair in pairs] == pytest.approx(
            [pair.weight for pair in pairs], rel=1e-4
        )

    def test_nothing_can_be_written_to(self, made):
        with pytest.raises(ValueError, match="read-only"):
            of_all(made)["cls"][0, 0] = 0

    def test_rollout_has_no_number_for_a_head(self, door_trace):
        with pytest.raises(SelectionError, match="Rollout was asked for head by head"):
            of_all(door_trace, measure="rollout")

    def test_each_says_what_it_is_in_a_sentence(self):
        for name, statistic in heads.STATISTICS.items():
            assert statistic.name == name
            assert statistic.title[0].isupper()
            assert statistic.help.endswith(".")
            assert statistic.source


class TestLabels:
    def test_on_paper(self, made):
        # the uniform head is broad; the last gives just .6 to [CLS] and to itself
        labels = heads.labels(of_all(made))
        assert {label: np.argwhere(of).tolist() for label, of in labels.items()} == {
            "previous": [[0, 2]],
            "next": [[1, 0]],
            "self": [[0, 1], [1, 1], [1, 2]],
            "[CLS]": [],
            "[SEP]": [],
            "punctuation": [],
            "broad": [[0, 0]],
        }

    def test_limits_are_exclusive_and_can_be_moved(self):
        numbers = {
            "previous": np.array([[0.5, 0.51]], dtype=np.float32),
            "cls": np.array([[0.6, 0.7]], dtype=np.float32),
        }
        assert {name: holds.tolist() for name, holds in heads.labels(numbers).items()} == {
            "previous": [[False, True]],
            "[CLS]": [[False, True]],
        }
        moved_limits = heads.labels(numbers, near=0.4, delimiter=0.7)
        assert moved_limits["previous"].all()
        assert not moved_limits["[CLS]"].any()

    def test_of_the_embedded_model(self, door_trace):
        labels = heads.labels(of_all(door_trace))
        assert np.argwhere(labels["previous"]).tolist() == [[0, 2]]
        assert np.argwhere(labels["next"]).tolist() == [[1, 8]]
        assert 5 <= labels["broad"].sum() <= 20  # the few heads of layer 0 that spread, not half of the model


def some_heads(count: int) -> tuple[Head, ...]:
    """Heads of one layer."""
    return tuple(Head(0, head) for head in range(count))


class TestDivergences:
    def test_on_paper(self, made):
        axis = Axis.of(made.tokens)
        divergences = heads.divergences(made, None, axis, axis)
        assert (divergences.n_rows, divergences.n_queries, len(divergences.heads)) == (5, 5, 6)
        # self and previous agree in the first row alone: 1 bit in 4 of 5 rows
        assert divergences.divergence[1, 2] == pytest.approx(0.8, abs=1e-5)
        assert divergences.divergence[1, 4] == pytest.approx(0.4, abs=1e-5)  # swapped: 2 of 5 rows
        # self and half first: 1 against 1/2, 1/2 in 4 rows: H(3/4, 1/4) - 1/2 bits each
        mixed = -(0.75 * math.log2(0.75) + 0.25 * math.log2(0.25))
        assert divergences.divergence[1, 5] == pytest.approx(0.8 * (mixed - 0.5), abs=1e-5)
        np.testing.assert_array_equal(divergences.divergence, divergences.divergence.T)
        assert not np.diag(divergences.divergence).any()

    def test_is_scipy_s(self, embedded):
        trace = embedded.trace("The untrodden doorstep, when it opened.")
        words = Axis.of(trace.tokens, "words").without_special()
        divergences = heads.divergences(trace, None, words, words)
        patterns = [trace.pattern(*divmod(number, 12)).arranged(words, words).weights for number in range(72)]
        for head, other in [(0, 71), (37, 40), (3, 4), (12, 60)]:
            expected = np.mean(jensenshannon(patterns[head], patterns[other], base=2, axis=1) ** 2)
            assert divergences.divergence[head, other] == pytest.approx(expected, abs=1e-5)  # float32

    def test_long_texts_are_compared_in_evenly_spaced_rows(self, embedded):
        trace = embedded.trace("a door and a cat " * 8)
        axis = Axis.of(trace.tokens)
        n_pairs, n_token = 72 * 71 // 2, len(axis)
        divergences = heads.divergences(trace, None, axis, axis, most_compared=3 * n_pairs * n_token + 1)
        assert (divergences.n_rows, divergences.n_queries) == (3, n_token)
        rows = [0, round((n_token - 1) / 2), n_token - 1]
        of_head, other = trace.weights(0, 3)[rows], trace.weights(4, 7)[rows]
        expected = np.mean(jensenshannon(of_head, other, base=2, axis=1) ** 2)
        assert divergences.divergence[3, 4 * 12 + 7] == pytest.approx(expected, abs=1e-5)

    def test_a_row_that_sees_nothing_is_left_out(self):
        allowed = np.ones((N, N), dtype=bool)
        allowed[2] = False
        trace = hand_made.trace(WEIGHTS, LABELS, allowed=allowed)
        axis = Axis.of(trace.tokens)
        divergences = heads.divergences(trace, None, axis, axis)
        assert divergences.n_rows == 4
        assert divergences.divergence[1, 2] == pytest.approx(3 / 4, abs=1e-5)

    def test_a_row_that_one_head_alone_cannot_see_is_left_out(self):
        """Row 2 of head 1; heads 0 and 2 see it, and so does another layer."""
        trace = hand_made.trace(WEIGHTS, LABELS)
        allowed = np.ones((3, N, N), dtype=bool)
        allowed[1, 2] = False
        trace = trace.with_layer(replace(trace.attention(0), allowed=allowed))
        axis = Axis.of(trace.tokens)
        divergences = heads.divergences(trace, None, axis, axis)
        assert divergences.n_rows == 4
        kept = [0, 1, 3, 4]
        rows = WEIGHTS.astype(np.float64)[:, :, kept].reshape(6, 4, N)
        expected = np.mean(jensenshannon(rows[1], rows[2], base=2, axis=1) ** 2)
        assert divergences.divergence[1, 2] == pytest.approx(expected, abs=1e-5)
        assert np.isfinite(divergences.divergence).all()

    def test_without_any_row_nothing_can_be_compared(self):
        trace = hand_made.trace(WEIGHTS, LABELS, allowed=np.zeros((N, N), dtype=bool))
        axis = Axis.of(trace.tokens)
        with pytest.raises(ShapeError, match="show more keys"):
            heads.divergences(trace, None, axis, axis)

    def test_nearest(self, made):
        axis = Axis.of(made.tokens)
        divergences = heads.divergences(made, None, axis, axis)
        nearest = divergences.nearest(
            0, 1, 2
        )  # self: half first (.25 bits), then swapped (.4), previous and next (.8)
        assert [neighbour[:2] for neighbour in nearest] == [(1, 2), (1, 1)]
        assert nearest[1][2] == pytest.approx(0.4, abs=1e-5)
        assert len(divergences.nearest(0, 1, 99)) == 5
        for layer, head, words in ((2, 0, "Layer 2 .* layers 0 to 1"), (0, 3, "Head 3 .* heads 0 to 2")):
            with pytest.raises(SelectionError, match=words):
                divergences.nearest(layer, head, 1)

    def test_nearest_of_the_only_head_of_the_last_layer(self):
        sides = np.array([[0, 0.25, 0.5], [0.25, 0, 0.375], [0.5, 0.375, 0]], dtype=np.float32)
        places = (Head(0, 0), Head(0, 1), Head(1, 0))
        found = heads.Divergences(divergence=sides, heads=places, n_rows=1, n_queries=1)
        assert found.nearest(1, 0, 9) == [(0, 1, 0.375), (0, 0, 0.5)]

    def test_the_map_keeps_the_order_of_the_divergences_and_repeats(self, door_trace):
        axis = Axis.of(door_trace.tokens)
        divergences = heads.divergences(door_trace, None, axis, axis)
        points = divergences.map()
        assert points.shape == (72, 2)
        np.testing.assert_array_equal(points, divergences.map())
        apart = np.linalg.norm(points[:, None] - points, axis=2)
        upper = np.triu_indices(72, 1)
        assert spearmanr(apart[upper], divergences.divergence[upper])[0] > 0.9  # measured .935

    def test_the_map_of_a_triangle_is_a_triangle(self):
        sides = np.array([[0, 0.3, 0.4], [0.3, 0, 0.5], [0.4, 0.5, 0]], dtype=np.float32)
        points = heads.Divergences(divergence=sides, heads=some_heads(3), n_rows=1, n_queries=1).map()
        apart = np.linalg.norm(points[:, None] - points, axis=2)
        np.testing.assert_allclose(apart, sides, atol=1e-3)  # SMACOF stops at a change of 1e-6 of the stress

    @pytest.mark.parametrize("count", [1, 2, 3])
    def test_the_map_of_heads_all_alike_is_one_point(self, count):
        same = heads.Divergences(
            divergence=np.zeros((count, count), dtype=np.float32),
            heads=some_heads(count),
            n_rows=1,
            n_queries=1,
        )
        points = same.map()
        assert points.shape == (count, 2) and not points.any()

    def test_the_map_of_two_heads(self):
        sides = np.array([[0, 0.5], [0.5, 0]], dtype=np.float32)
        points = heads.Divergences(divergence=sides, heads=some_heads(2), n_rows=1, n_queries=1).map()
        assert np.linalg.norm(points[0] - points[1]) == pytest.approx(0.5, abs=1e-3)


class TestPairs:
    def test_the_door_sentence_has_its_head(self, door_trace):
        weights = heads.pair_weights(door_trace, None, (7, 8), (5, 6))
        assert weights.shape == (6, 12)
        assert heads.ranked(weights)[0].tolist() == [3, 1]
        assert weights[3, 1] == pytest.approx(door_trace.weights(3, 1)[7, 5], rel=1e-6)  # its row alone
        assert weights[3, 1] == pytest.approx(0.475, abs=5e-4)

    def test_groups_are_averaged_over_queries_and_summed_over_keys(self, made):
        weights = heads.pair_weights(made, None, (1, 4), (0, 2))
        # rows 1 to 3, columns 0 and 1: uniform 2/5; self and swapped one 1 of 3 rows; previous two; half first
        # one half in each row and another in row 1
        np.testing.assert_allclose(weights, [[2 / 5, 1 / 3, 2 / 3], [0, 1 / 3, 2 / 3]], atol=1e-6)

    def test_of_cross_attention_and_norms(self, tiny_model):
        trace = tiny_model("t5").trace("the cat sat on the mat.", "it was watching")
        for kind, measure in (("cross", "weights"), ("decoder", "norms")):
            of_pair = heads.pair_weights(trace, kind, (1, 3), (0, 2), measure=measure)
            for layer in range(trace.n_layers(kind)):
                cells = trace.layer_weights(layer, kind, measure=measure)
                expected = cells[:, 1:3, 0:2].sum(axis=2).mean(axis=1)
                np.testing.assert_allclose(of_pair[layer], expected, rtol=1e-5)

    @pytest.mark.parametrize("group", [(3, 3), (4, 2), (-1, 2), (4, 6)])
    def test_groups_outside_the_text_are_refused(self, made, group, types_unchecked):
        with pytest.raises(ShapeError):
            heads.pair_weights(made, None, group, (0, 1))
        with pytest.raises(ShapeError):
            heads.pair_weights(made, None, (0, 1), group)

    def test_strongest(self, made):
        pattern = made.pattern(1, 2)  # half first
        assert heads.strongest_pairs(pattern, 3) == [(0, 0, 1.0), (1, 0, 0.5), (1, 1, 0.5)]
        apart = heads.strongest_pairs(pattern, 99, itself=False)
        assert [pair[:2] for pair in apart[:4]] == [(1, 0), (2, 0), (3, 0), (4, 0)]
        inner = heads.strongest_pairs(pattern, 3, special=False)
        assert [pair[:2] for pair in inner] == [(1, 1), (2, 2), (3, 3)]

    def test_strongest_of_words_and_of_a_causal_pattern(self, embedded, tiny_model):
        trace = embedded.trace("The untrodden doorstep.")
        words = Axis.of(trace.tokens, "words")
        pairs = heads.strongest_pairs(
            trace.pattern(2, 3).arranged(words, words), 99, special=False, itself=False
        )
        assert len(pairs) == 4 * 3  # the, untrodden, doorstep and the full stop, each with the others
        assert all(first.weight >= second.weight for first, second in pairwise(pairs))
        causal = tiny_model("gpt2").trace("the cat").pattern(1, 1)
        assert all(pair.row >= pair.column for pair in heads.strongest_pairs(causal, 999))

    def test_itself_is_the_same_token_wherever_it_stands(self, made):
        axis = Axis.of(made.tokens)
        pattern = made.pattern(0, 1).arranged(axis.without_special(), axis)  # self, rows 1 to 3 of 5 columns
        assert [pair[:2] for pair in heads.strongest_pairs(pattern, 3)] == [(0, 1), (1, 2), (2, 3)]
        apart = heads.strongest_pairs(pattern, 99, itself=False)
        assert all(pair.weight < 1e-6 for pair in apart)

    def test_special_tokens_are_left_out_on_either_side(self, made):
        axis = Axis.of(made.tokens)
        first_three = axis.where(np.arange(N) < 3)
        pattern = made.pattern(0, 0).arranged(first_three, axis)  # uniform
        pairs = heads.strongest_pairs(pattern, 99, special=False)
        assert {pair[:2] for pair in pairs} == {(row, column) for row in (1, 2) for column in (1, 2, 3)}

    def test_nothing_can_be_written_to(self, made):
        with pytest.raises(ValueError, match="read-only"):
            heads.pair_weights(made, None, (1, 2), (0, 1))[0, 0] = 0

    def test_cross_attention_has_no_self(self, tiny_model):
        pattern = tiny_model("t5").trace("the cat sat.", "it was").pattern(0, 0, "cross")
        assert heads.strongest_pairs(pattern, 99, itself=False) == heads.strongest_pairs(pattern, 99)


def test_ranked():
    numbers = np.array([[0.2, np.nan, 0.5], [0.5, 0.1, 0.2]], dtype=np.float32)
    assert heads.ranked(numbers).tolist() == [[0, 2], [1, 0], [0, 0], [1, 2], [1, 1]]
    assert heads.ranked(numbers, largest_first=False).tolist() == [
        [1, 1],
        [0, 0],
        [1, 2],
        [0, 2],
        [1, 0],
    ]


@pytest.mark.parametrize(
    ("name", "label", "limit"),
    [
        *((name, name, 0.5) for name in ("previous", "next", "self")),
        *(
            ("cls", "[CLS]", 0.6),
            ("sep", "[SEP]", 0.6),
            ("punctuation", "punctuation", 0.6),
            ("entropy", "broad", 0.8),
        ),
    ],
)
def test_a_pattern_is_matched_above_its_threshold(name, label, limit):
    """Of Clark et al. 2019, section 3.1 and the code of figure 6."""
    numbers = np.array([[limit - 0.01, limit, limit + 0.01, np.nan]])
    assert heads.labels({name: numbers})[label].tolist() == [[False, False, True, False]]
