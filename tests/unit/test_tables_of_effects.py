"""The tables that effects are saved as, row by row, and what their records say of themselves: sums, ranks and orders on paper."""

import csv
import io
import math

import numpy as np
import pytest

from attnviz.effects.ablation import HeadEffects, LayerEffects
from attnviz.effects.deletion import ChanceBand, Deletion
from attnviz.effects.input_attribution import InputAttribution, without_rounding
from attnviz.effects.lens import FollowedTokens, LayerSimilarities, Lens
from attnviz.effects.logit_attribution import DirectParts
from attnviz.effects.patching import PatchEffects
from attnviz.effects.score_sources import ScoreSources, Source
from attnviz.errors import ShapeError
from attnviz.records import Head
from tests.hand_made import tokens

NAN = math.nan


def read(data: bytes) -> list[list[str]]:
    return [*csv.reader(io.StringIO(data.decode("utf-8-sig")))]


def rows(data: bytes) -> list[list[object]]:
    """The rows below the header, numbers as numbers."""

    def cell(text: str) -> object:
        try:
            return float(text)
        except ValueError:
            return text

    return [[cell(text) for text in row] for row in read(data)[1:]]


class TestHeadsOff:
    """Two layers, the first of two heads and the second of one."""

    HEADS = HeadEffects(
        kind="encoder", ablation="zero", base=1.0, heads=np.array([[0.5, 3.0], [-2.0, NAN]], dtype=np.float32)
    )
    LAYERS = LayerEffects(
        kind="encoder", ablation="zero", base=1.0, layers=np.array([0.25, 1.5], dtype=np.float32)
    )

    def test_effects_are_changes_and_the_largest_of_either_sign_comes_first(self):
        np.testing.assert_array_equal(self.HEADS.effects, [[-0.5, 2.0], [-3.0, NAN]])
        np.testing.assert_array_equal(self.LAYERS.effects, [-0.75, 0.5])
        assert self.HEADS.ranked() == [Head(1, 0), Head(0, 1), Head(0, 0)]

    def test_the_table_has_a_line_for_each_head_and_layer(self):
        of_heads = [[0, 0, 0.5, -0.5], [0, 1, 3.0, 2.0], [1, 0, -2.0, -3.0]]
        assert read(self.HEADS.csv())[0] == ["layer", "head", "outcome", "effect"]
        assert rows(self.HEADS.csv()) == of_heads
        with_layers = [*of_heads[:2], [0, "all", 0.25, -0.75], of_heads[2], [1, "all", 1.5, 0.5]]
        assert rows(self.HEADS.csv(self.LAYERS)) == with_layers

    def test_parts_of_a_run_are_joined(self):
        parts = [
            HeadEffects(kind="encoder", ablation="zero", base=1.0, heads=np.array(heads, dtype=np.float32))
            for heads in ([[0.5, 3.0], [NAN, NAN]], [[NAN, NAN], [-2.0, NAN]])
        ]
        for first, other in (parts, parts[::-1]):
            np.testing.assert_array_equal(first.joined(other).heads, self.HEADS.heads)


class TestLens:
    """Three layers, two tokens, of each the two most likely answers."""

    LENS = Lens(
        kind="decoder",
        tokens=tokens(["x", "1"]),
        ids=np.arange(12).reshape(3, 2, 2),
        labels=((("a", "b"), ("c", "d")), (("e", "f"), ("g", "h")), (("i", "j"), ("k", "l"))),
        probabilities=np.arange(1, 13, dtype=np.float32).reshape(3, 2, 2) / 16,
        answers=("i", "k"),
        answer_probabilities=np.array([[0.25, 0.5], [0.125, 0.75], [0.375, 0.625]], dtype=np.float32),
        answer_ranks=np.array([[0, 3], [2, 0], [0, 0]]),
    )

    def test_the_layer_from_which_on_an_answer_stays(self):
        assert self.LENS.settled.tolist() == [2, 1]
        early = np.array([[0, 0, 1], [0, 0, 0], [0, 1, 0]])
        ids = np.zeros((3, 3, 1), dtype=np.int64)
        lens = Lens(
            kind="decoder",
            tokens=tokens(["x"] * 3),
            ids=ids,
            labels=((("a",),) * 3,) * 3,
            probabilities=ids.astype(np.float32),
            answers=("a",) * 3,
            answer_probabilities=early.astype(np.float32),
            answer_ranks=early,
        )
        assert lens.settled.tolist() == [0, 3, 1]

    def test_the_table_has_a_line_for_each_layer_and_token(self):
        data = self.LENS.csv()
        assert read(data)[0] == (
            [
                "layer",
                "position",
                "token",
                "most likely",
                "probability",
                "answer",
                "answer probability",
                "answer rank",
            ]
        )
        assert rows(data) == [
            [0, 0, "0 x", "a", 1 / 16, "i", 0.25, 0],
            [0, 1, "1 1", "c", 3 / 16, "k", 0.5, 3],
            [1, 0, "0 x", "e", 5 / 16, "i", 0.125, 2],
            [1, 1, "1 1", "g", 7 / 16, "k", 0.75, 0],
            [2, 0, "0 x", "i", 9 / 16, "i", 0.375, 0],
            [2, 1, "1 1", "k", 11 / 16, "k", 0.625, 0],
        ]

    @pytest.mark.parametrize("labels", [((("a",),),), ((("a",),),) * 3, ((("a",), ("b",)),) * 2])
    def test_labels_are_of_every_layer_and_token(self, labels):
        ids = np.zeros((2, 1, 1), dtype=np.int64)
        with pytest.raises(ShapeError, match="2 layers and 1 tokens, but labels of"):
            Lens(
                kind="decoder",
                tokens=tokens(["x"]),
                ids=ids,
                labels=labels,
                probabilities=ids.astype(np.float32),
                answers=("a",) * len(labels[0]),
                answer_probabilities=ids[..., 0].astype(np.float32),
                answer_ranks=ids[..., 0],
            )

    def test_tokens_that_are_followed(self):
        followed = FollowedTokens(
            kind="decoder",
            position=1,
            labels=("a", "b", "c"),
            logits=np.array([[1, 3, 9], [7, 2, 9]], dtype=np.float32),
            probabilities=np.array([[0.25, 0.5, 0.125], [0.75, 0.0625, 0.5]], dtype=np.float32),
            ranks=np.array([[2, 1, 5], [1, 4, 6]]),
        )
        assert followed.differences.tolist() == [-2, 5]
        assert read(followed.csv())[0] == ["layer", "answer", "logit", "probability", "rank"]
        assert rows(followed.csv()) == [
            [0, "a", 1, 0.25, 2],
            [0, "b", 3, 0.5, 1],
            [0, "c", 9, 0.125, 5],
            [1, "a", 7, 0.75, 1],
            [1, "b", 2, 0.0625, 4],
            [1, "c", 9, 0.5, 6],
        ]
        for n, differences in ((2, [-2, 5]), (1, None)):
            fewer = FollowedTokens(
                kind="decoder",
                position=1,
                labels=followed.labels[:n],
                logits=followed.logits[:, :n],
                probabilities=followed.probabilities[:, :n],
                ranks=followed.ranks[:, :n],
            )
            given = fewer.differences
            assert (None if given is None else given.tolist()) == differences

    def test_similarities(self):
        similar = LayerSimilarities(
            kind="encoder",
            tokens=tokens(["x", "y"]),
            similarities=np.array([[0.25, -0.5], [0.75, 1.0]], dtype=np.float32),
        )
        assert read(similar.csv())[0] == ["layer", "position", "token", "similarity"]
        assert rows(similar.csv()) == [
            [0, 0, "0 x", 0.25],
            [0, 1, "1 y", -0.5],
            [1, 0, "0 x", 0.75],
            [1, 1, "1 y", 1.0],
        ]


def parts_of(total: float) -> DirectParts:
    """Parts that sum to 0.5 + (1 - 4 + 2) + (8 - 16) + (0.25 - 2) + 32 = 21.75, and in size to 65.75."""
    return DirectParts(
        unit="logit",
        total=total,
        embedding=0.5,
        heads=np.array([[1.0, -4.0], [2.0, NAN]], dtype=np.float32),
        mlps=np.array([8.0, -16.0], dtype=np.float32),
        biases=np.array([0.25, -2.0], dtype=np.float32),
        bias=32.0,
    )


class TestDirectParts:
    def test_sums_and_ranks(self):
        parts = parts_of(22.0)
        assert parts.of_attention.tolist() == [-3.0, 2.0]
        assert (parts.summed, parts.gap, parts.size) == (21.75, 0.25, 65.75)
        assert parts.ranked() == [Head(0, 1), Head(1, 0), Head(0, 0)]
        negative = DirectParts(
            unit="logit",
            total=0.0,
            embedding=-3.0,
            heads=parts.heads,
            mlps=parts.mlps,
            biases=parts.biases,
            bias=-32.0,
        )
        assert (negative.summed, negative.size) == (-45.75, 68.25)

    @pytest.mark.parametrize(
        ("apart", "passed"), [(0, True), (6.5e-4, True), (-6.5e-4, True), (6.6e-4, False), (-6.6e-4, False)]
    )
    def test_the_sum_is_the_model_s_number_within_a_hundred_thousandth_of_the_sizes(self, apart, passed):
        assert parts_of(21.75 + apart).passed is passed
        assert not parts_of(NAN).passed

    def test_the_table_has_a_line_for_each_part(self):
        data = parts_of(22.0).csv()
        assert read(data)[0] == ["layer", "part", "logit"]
        assert rows(data) == [
            ["", "embedding", 0.5],
            [0, "head 0", 1.0],
            [0, "head 1", -4.0],
            [0, "MLP", 8.0],
            [0, "biases", 0.25],
            [1, "head 0", 2.0],
            [1, "MLP", -16.0],
            [1, "biases", -2.0],
            ["", "final biases", 32.0],
            ["", "sum", 21.75],
            ["", "model", 22.0],
        ]


SOURCES = (
    Source(name="token"),
    Source(name="head", layer=0, head=0),
    Source(name="head", layer=0, head=1),
    Source(name="mlp", layer=0),
    Source(name="biases"),
)


def sources_of(product: float) -> ScoreSources:
    return ScoreSources(
        kind="encoder",
        layer=1,
        head=3,
        query=2,
        key=4,
        sources=SOURCES,
        query_vectors=np.array([[1.0, 0], [0, 2], [3, 0], [0, 0], [1, 1]]),
        key_vectors=np.array([[2.0, 0], [0, -1], [0, 0], [5, 0], [0, 1]]),
        scale=0.5,
        product=product,
        softcap=None,
        bias=0.0,
        allowed=True,
    )


class TestScoreSources:
    """Queries sum to (5, 3) and keys to (7, 0), so that half their product is 17.5."""

    PARTS = (1, 0, 0, 2.5, 0), (0, -1, 0, 0, 1), (3, 0, 0, 7.5, 0), (0,) * 5, (1, -0.5, 0, 2.5, 0.5)

    def test_parts_and_sums(self):
        sources = sources_of(18.0)
        np.testing.assert_array_equal(sources.parts, self.PARTS)
        assert sources.of_query.tolist() == [3.5, 0, 10.5, 0, 3.5]
        assert sources.of_key.tolist() == [5, -1.5, 0, 12.5, 1.5]
        assert (sources.summed, sources.gap) == (17.5, 0.5)
        assert sources.size == 0.5 * (5 * 7 + 3 * 2)
        first, second, *_ = ranked = sources.ranked()
        assert first == (SOURCES[2], SOURCES[3], 7.5) and second == (SOURCES[2], SOURCES[0], 3.0)
        assert len(ranked) == 25 and [abs(part) for *_, part in ranked] == sorted(
            (abs(part) for row in self.PARTS for part in row), reverse=True
        )
        # of equal parts the first row is first, and of either sign
        assert [(source.short, other.short) for source, other, part in ranked if abs(part) == 1] == [
            ("token", "token"),
            ("L0 H0", "L0 H0"),
            ("L0 H0", "biases"),
            ("biases", "token"),
        ]

    @pytest.mark.parametrize(
        ("apart", "passed"), [(2.0e-4, True), (-2.0e-4, True), (2.1e-4, False), (-2.1e-4, False)]
    )
    def test_the_sum_is_the_product_within_a_hundred_thousandth_of_the_sizes(self, apart, passed):
        assert sources_of(17.5 + apart).passed is passed
        assert not sources_of(NAN).passed

    def test_heads_of_a_layer_together(self):
        joined = sources_of(18.0).by_layer()
        assert [source.short for source in joined.sources] == ["token", "L0 heads", "L0 MLP", "biases"]
        assert joined.query_vectors.tolist() == [[1, 0], [3, 2], [0, 0], [1, 1]]
        assert joined.key_vectors.tolist() == [[2, 0], [0, -1], [5, 0], [0, 1]]
        for name in (
            "kind",
            "layer",
            "head",
            "query",
            "key",
            "scale",
            "product",
            "softcap",
            "bias",
            "allowed",
        ):
            assert getattr(joined, name) == getattr(sources_of(18.0), name)

    def test_the_table_has_a_row_and_a_column_for_each_source_and_their_sums(self):
        names = ["token", "L0 H0", "L0 H1", "L0 MLP", "biases"]
        data = sources_of(18.0).csv()
        assert read(data)[0] == ["source of the query \\ source of the key", *names, "sum"]
        assert rows(data) == [
            *([name, *row, sum(row)] for name, row in zip(names, self.PARTS, strict=True)),
            ["sum", 5, -1.5, 0, 12.5, 1.5, 17.5],
        ]

    def test_sources_in_words(self):
        assert [source.words for source in SOURCES] == [
            "the token embedding",
            "layer 0, head 0",
            "layer 0, head 1",
            "the MLP of layer 0",
            "the biases",
        ]
        assert Source(name="attention", layer=2).words == "the heads of layer 2"
        assert Source(name="attention", layer=2).short == "L2 heads"
        assert Source(name="embedding").words == "the embedding"
        assert (Source(name="head", layer=3, head=1).short, Source(name="mlp", layer=4).short) == (
            "L3 H1",
            "L4 MLP",
        )


def patched(outcomes, base: float, donor: float, **changes) -> PatchEffects:
    given = {
        "kind": "encoder",
        "receiver_tokens": tokens(["a", "b", "c"]),
        "donor_tokens": tokens(["a", "b", "c"]),
        "carried": "layer",
        "base": base,
        "donor": donor,
    }
    return PatchEffects(**given | changes, outcomes=np.array(outcomes, dtype=np.float32))


class TestPatches:
    @pytest.mark.parametrize(
        ("carried", "layer", "axes"),
        [
            ("layer", None, ("layer", "token")),
            ("mlp", None, ("layer", "token")),
            ("heads", None, ("layer", "head")),
            ("pattern", None, ("layer", "head")),
            ("heads", 0, ("head", "token")),
            ("key", 3, ("head", "token")),
        ],
    )
    def test_what_rows_and_columns_are(self, carried, layer, axes):
        effects = patched([[0.0]], 0.0, 1.0, carried=carried, layer=layer)
        assert (effects.rows, effects.columns) == axes

    @pytest.mark.parametrize(
        ("unit", "base", "donor", "differs"),
        [
            ("", 1.0, 1.0 + 2e-5, True),
            ("", 1.0 + 2e-5, 1.0, True),
            ("", 1.0, 1.0 + 5e-6, False),
            ("", 1.0 + 5e-6, 1.0, False),
            ("probability", 1e-7, 1.1e-7, True),
            ("probability", 1.1e-7, 1e-7, True),
            ("probability", 0.5, 0.5004, False),
            ("probability", 0.5004, 0.5, False),
            ("probability", 0.5, 0.5007, True),
            ("probability", 0.0, 0.0, False),
            ("probability", 1.0, 0.9990005, False),  # of the larger one, 0.001
            ("probability", 0.9990005, 1.0, False),
        ],
    )
    def test_a_difference_is_more_than_rounding(self, unit, base, donor, differs):
        effects = patched([[0.0]], base, donor, unit=unit)
        assert effects.has_difference is differs
        assert np.isfinite(effects.shares).all() == differs

    def test_shares_changes_and_spread(self):
        """Outcomes 1, 2 and 6: mean 3, squares 4 + 1 + 9, so that the standard deviation is the root of 14 / 3."""
        effects = patched([[1.0, 2.0], [6.0, NAN]], 1.0, 6.0)
        assert effects.spread == pytest.approx(math.sqrt(14 / 3))
        np.testing.assert_array_equal(effects.changes, [[0, 1], [5, NAN]])
        np.testing.assert_allclose(effects.shares, [[0, 0.2], [1, NAN]])
        backwards = patched([[1.0, 2.0], [6.0, NAN]], 6.0, 1.0)
        np.testing.assert_allclose(backwards.shares, [[1, 0.8], [0, NAN]])
        assert math.isnan(patched([[NAN]], 0.0, 1.0).spread)

    @pytest.mark.parametrize(
        ("difference", "is_shared"), [(4.0, True), (3.9, False), (-4.0, True), (-3.9, False)]
    )
    def test_no_shares_of_a_difference_below_two_standard_deviations(self, difference, is_shared):
        effects = patched([[1.0, 5.0]], 3.0, 3.0 + difference)  # of 1 and 5 it is 2
        assert effects.can_be_shared is is_shared
        assert np.isfinite(effects.shares).all() == is_shared

    def test_parts_of_a_run_are_joined(self):
        parts = [
            patched(outcomes, 0.0, 1.0) for outcomes in ([[1.0, 2.0], [NAN, NAN]], [[NAN, NAN], [3.0, 4.0]])
        ]
        for first, other in (parts, parts[::-1]):
            np.testing.assert_array_equal(first.joined(other).outcomes, [[1, 2], [3, 4]])


class TestAttributions:
    def attribution(self, values, method="token_replaced"):
        return InputAttribution(
            method=method, tokens=tokens(["a"] * len(values)), values=np.array(values, dtype=np.float32)
        )

    def test_the_order_of_tokens(self):
        """The most important first, of equals the earlier; weights have no direction."""
        values, among = [9.0, 1.0, -2.0, 3.0, 3.0, -2.0], np.array([False, True, True, True, True, True])
        signed = self.attribution(values)
        assert signed.order(among).tolist() == [3, 4, 1, 2, 5]
        assert signed.order(among, -1).tolist() == [2, 5, 1, 3, 4]
        assert signed.sum == 12
        for method, has_sign in (
            ("keys_masked", True),
            ("integrated_gradients", True),
            ("norms", False),
            ("rollout", False),
            ("flow", False),
        ):
            attribution = self.attribution(values, method)
            assert attribution.has_sign is has_sign
            assert attribution.order(among, -1).tolist() == ([2, 5, 1, 3, 4] if has_sign else [3, 4, 1, 2, 5])

    @pytest.mark.parametrize(
        ("largest", "is_kept"), [(2.1e-4, True), (-2.1e-4, True), (1.9e-4, False), (0.0, False)]
    )
    def test_gradient_times_input_is_left_out_where_it_is_rounding(self, largest, is_kept):
        """Below a ten-thousandth of the largest of integrated gradients, of either sign."""
        small = self.attribution([1e-5, largest], "gradient_times_input")
        whole = self.attribution([-2.0, 1.0], "integrated_gradients")
        for given in ([small, whole], [whole, small]):
            assert (small in without_rounding(given)) is is_kept
            assert whole in without_rounding(given)
        nothing = self.attribution([0.0, 0.0], "gradient_times_input")
        assert without_rounding([small]) == [small] and without_rounding([nothing]) == [nothing]


@pytest.mark.parametrize(("base", "end", "direction"), [(2.0, 1.0, 1), (1.0, 1.0, 1), (1.0, 2.0, -1)])
def test_the_direction_of_a_deletion_is_that_of_the_text_from_its_baseline(base, end, direction):
    numbers = np.zeros(1, dtype=np.float32)
    deletion = Deletion(
        removal="token_replaced",
        base=base,
        end=end,
        counts=np.zeros(1, dtype=np.int64),
        bins=np.zeros(1, dtype=np.int64),
        curves=(),
        chance=ChanceBand(
            n_orders=1,
            seed=0,
            counts=np.zeros(1, dtype=np.int64),
            removed=np.stack([numbers] * 2),
            kept=np.stack([numbers] * 2),
            comprehensiveness=(0.0, 0.0),
            sufficiency=(0.0, 0.0),
        ),
    )
    assert deletion.direction == direction
