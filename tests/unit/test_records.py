"""Records: what they refuse, and that they cannot be changed."""

import operator
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest

import attnviz
from attnviz.errors import ArgumentError, SelectionError, ShapeError
from attnviz.records import (
    Axis,
    Provenance,
    check_index,
    progress_within,
    resting_places,
)
from attnviz.records.record import brief
from tests.findings import assert_none
from tests.small_records import PROVENANCE, check, layer, pattern, projection, report, tokens


@pytest.mark.usefixtures("types_unchecked")
class TestFieldsThatDoNotFit:
    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("labels", ("a", "b", "c")),
            ("is_special", np.zeros(3, dtype=bool)),
            ("segment", np.zeros(5, dtype=int)),
            ("word", np.zeros(5, dtype=int)),
        ],
    )
    def test_tokens(self, field, value):
        with pytest.raises(ShapeError, match=f"4 ids, but {len(value)} entries in {field}"):
            tokens(**{field: value})

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"key": np.zeros((2, 5, 8), np.float32)}, "queries have d_head 7, keys 8"),
            ({"key": np.zeros((2, 5, 6), np.float32)}, "queries have d_head 7, keys 6"),
            ({"value": np.zeros((2, 4, 11), np.float32)}, "keys are 2 kv_head x 5 key, values 2 x 4"),
            ({"value": np.zeros((3, 5, 11), np.float32)}, "keys are 2 kv_head x 5 key, values 3 x 5"),
            ({"query": np.zeros((5, 3, 7), np.float32)}, "5 heads cannot share 2 key-value heads"),
            ({"allowed": np.ones((2, 3, 5), bool)}, "allowed is"),
            ({"allowed": np.ones((1, 5, 3), bool)}, "allowed is"),
            ({"bias": np.zeros((6, 3, 4), np.float32)}, "bias is"),
        ],
    )
    def test_a_layer(self, changes, message):
        with pytest.raises(ShapeError, match=message):
            layer(**changes)

    @pytest.mark.parametrize("shape", [(1, 1, 5), (1, 3, 5), (6, 1, 5), (6, 3, 5)], ids=str)
    def test_a_mask_may_be_shared_by_heads_and_queries(self, shape):
        assert layer(allowed=np.ones(shape, bool), bias=np.zeros(shape, np.float32)).bias.shape == shape

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"scores": np.zeros((3, 4), np.float32)}, r"query key are \(3, 3\), scores \(3, 4\)"),
            ({"allowed": np.ones((2, 3), bool)}, r"query key are \(3, 3\), allowed \(2, 3\)"),
            ({"queries": Axis.of(tokens(2))}, r"query key are \(2, 3\), weights \(3, 3\)"),
            ({"keys": Axis.of(tokens(2))}, r"query key are \(3, 2\), weights \(3, 3\)"),
            ({"hidden_weight": np.zeros(2, np.float32)}, "3 queries, but 2 hidden weights"),
        ],
    )
    def test_a_pattern(self, changes, message):
        with pytest.raises(ShapeError, match=message):
            pattern([[1.0, 0.0, 0.0]] * 3, **changes)

    def test_a_pattern_has_a_hidden_weight_for_each_query(self):
        assert pattern([[1.0, 0.0, 0.0, 0.0]] * 3).hidden_weight.shape == (3,)
        with pytest.raises(ShapeError, match="3 queries, but 4 hidden weights"):
            pattern([[1.0, 0.0, 0.0, 0.0]] * 3, hidden_weight=np.zeros(4, np.float32))

    @pytest.mark.parametrize(
        "changes",
        [{"role": ("query",)}, {"position": np.arange(5)}, {"points": np.zeros((5, 2), np.float32)}],
        ids=lambda changes: next(iter(changes)),
    )
    def test_a_projection(self, changes):
        with pytest.raises(ShapeError, match="points"):
            projection(**changes)

    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            ([[np.nan, 0.0], [0.5, 0.5]], "negative, NaN or infinite"),
            ([[np.inf, 0.0], [0.5, 0.5]], "negative, NaN or infinite"),
            ([[1.5, -0.5], [0.5, 0.5]], "negative, NaN or infinite"),
            ([[0.5, 0.5], [4.0, 1.0]], "row 1 sums to 5"),
            ([[0.5, 0.52], [0.5, 0.5]], "row 0 sums to 1.02"),
        ],
    )
    def test_a_pattern_of_numbers_that_are_no_weights(self, weights, message):
        with pytest.raises(ShapeError, match=message):
            pattern(weights)

    @pytest.mark.parametrize(
        ("weights", "changes"),
        [
            ([[0.0, 0.0], [0.5, 0.5]], {}),  # a query that may see no key
            ([[0.501, 0.502], [0.498, 0.499]], {}),  # bfloat16
            ([[0.5, 0.25], [0.0, 0.0]], {"hidden_weight": np.array([0.25, 1.0], np.float32)}),
            (
                [[1.0, 0.0], [0.5, 0.5]],
                {"hidden_weight": np.full(2, 0.5, np.float32), "is_renormalised": True},
            ),
            ([[0.25, 0.25], [0.5, 0.5]], {"head": None}),  # a head that sees no key, and one that does
            ([[3.0, 4.0], [0.0, 0.5]], {"measure": "norms", "scores": None}),
            ([[0.25, 0.75], [0.5, 0.5]], {"measure": "rollout", "scores": None, "head": None}),
        ],
    )
    def test_a_pattern_of_weights(self, weights, changes):
        np.testing.assert_array_equal(pattern(weights, **changes).weights, np.float32(weights))

    @pytest.mark.parametrize(
        ("weights", "changes"),
        [
            ([[3.0, np.nan], [0.0, 0.5]], {"measure": "norms", "scores": None}),
            ([[3.0, -1.0], [0.0, 0.5]], {"measure": "norms", "scores": None}),
            ([[0.5, 1.0], [0.5, 0.5]], {"measure": "rollout", "scores": None, "head": None}),
            ([[1.0, 0.0]] * 2, {"hidden_weight": np.array([0.0, 0.5], np.float32)}),
            ([[1.0, 0.0]] * 2, {"scores": np.array([[np.nan, 0], [0, 0]], np.float32)}),
            ([[1.0, 0.0]] * 2, {"scores": np.array([[np.inf, 0], [0, 0]], np.float32)}),
        ],
    )
    def test_a_pattern_of_numbers_that_are_no_other_measure(self, weights, changes):
        with pytest.raises(ShapeError, match=r"^AttentionPattern: "):
            pattern(weights, **changes)

    def test_a_masked_score_is_minus_infinity(self):
        assert np.isneginf(
            pattern([[1.0, 0.0]] * 2, scores=np.full((2, 2), -np.inf, np.float32)).scores
        ).all()

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"points": np.full((6, 2), np.nan, np.float32)}, "NaN or infinite"),
            ({"points": np.full((6, 3), np.inf, np.float32)}, "NaN or infinite"),
            ({"points": np.zeros((6, 4), np.float32)}, r"not \[point, 2\]"),
            ({"points": np.zeros(6, np.float32)}, r"not \[point, 2\]"),
            ({"position": np.array([0, 1, 2, 0, 1, 3])}, "a key at token 3 of 3 tokens"),
            ({"position": np.array([0, -1, 2, 0, 1, 2])}, "a query at token -1 of 3 tokens"),
        ],
    )
    def test_a_projection_whose_points_are_nowhere(self, changes, message):
        with pytest.raises(ShapeError, match=message):
            projection(**changes)

    @pytest.mark.parametrize("scale", [np.nan, np.inf])
    def test_a_layer_without_a_scale(self, scale):
        with pytest.raises(ShapeError, match="scale is"):
            layer(scale=scale)

    @pytest.mark.parametrize(
        "changes", [{"in_text": (4,)}, {"unknown": (-1,)}, {"masked": {7: "door"}}], ids=str
    )
    def test_tokens_that_name_others_than_theirs(self, changes):
        with pytest.raises(ShapeError, match="of 4 tokens"):
            tokens(**changes)

    def test_a_trace_whose_layers_or_states_are_not_its_own(self, door_trace):
        layers = door_trace.layers["encoder"]
        with pytest.raises(ShapeError, match="encoder layer 1 stands in the place of encoder layer 0"):
            replace(door_trace, layers={"encoder": layers[1:]})
        with pytest.raises(ShapeError, match="10 last hidden states for 11 tokens"):
            replace(door_trace, last_hidden_state=door_trace.last_hidden_state[1:])

    def test_the_message_names_the_record(self):
        with pytest.raises(ShapeError, match=r"^Tokens: "):
            tokens(labels=())


def raises(error: type[Exception], call: Callable, *arguments: object) -> bool:
    try:
        call(*arguments)
    except error:
        return True
    return False


class TestWhatIsOneArrayIsTakenForIt:
    def test_a_pattern_for_its_weights_and_a_projection_for_its_points(self):
        made = pattern([[0.25, 0.75]] * 2)
        drawn = np.arange(12, dtype=np.float32).reshape(6, 2)
        for record, array in ((made, made.weights), (projection(points=drawn), drawn)):
            np.testing.assert_array_equal(np.asarray(record), array)
            assert np.asarray(record, dtype=np.float64).dtype == np.float64
            assert np.sum(record) == array.sum() and np.add(record, 1).shape == array.shape
            copied = np.array(record)
            copied[0, 0] = 7  # a copy of its own
            assert np.asarray(record)[0, 0] == array[0, 0]
            assert not np.asarray(record).flags.writeable


class TestNothingCanBeChanged:
    def test_arrays(self):
        arrays = {
            "Tokens.ids": tokens().ids,
            "Tokens.is_special": tokens().is_special,
            "LayerAttention.query": layer().query,
            "LayerAttention.allowed": layer(allowed=np.ones((1, 3, 5), bool)).allowed,
            "AttentionPattern.weights": pattern([[1.0, 0.0]] * 2).weights,
            "Projection.points": projection().points,
            "Check.differences": report().checks[0].differences["encoder"],
            "Check.tolerances": report().checks[0].tolerances["encoder"],
        }
        assert_none(f"{name} can be written to" for name, array in arrays.items() if array.flags.writeable)

    def test_fields(self):
        assert_none(
            f"{type(record).__name__}.{field.name} can be set"
            for record in (tokens(), layer(), projection(), report(), PROVENANCE)
            for field in fields(record)
            if not raises(FrozenInstanceError, setattr, record, field.name, None)
        )

    def test_mappings(self):
        mappings = {
            "Provenance.versions": PROVENANCE.versions,
            "Projection.parameters": projection().parameters,
            "Check.differences": report().checks[0].differences,
        }
        assert_none(
            f"{name} takes a new key"
            for name, mapping in mappings.items()
            if not raises(TypeError, operator.setitem, mapping, "new", 0)
        )

    def test_a_mapping_does_not_follow_the_one_it_was_made_from(self):
        versions = {"torch": "2"}
        made = Provenance(model="m", revision="r", dtype="float32", versions=versions)
        versions["torch"] = "3"
        assert made.versions == {"torch": "2"}


@pytest.mark.parametrize("make", [tokens, layer, projection, report, lambda: check([[0.0]])])
def test_a_record_is_equal_to_itself_alone(make):
    first, other = make(), make()
    assert first == first
    assert first != other
    assert len({first, other}) == 2


def test_numbers_of_equal_provenance_have_one_each():
    other = Provenance(model="m", revision="r", dtype="float32", versions={"torch": "2"})
    assert other != PROVENANCE
    assert len({other, PROVENANCE}) == 2


class TestUnknownTokens:
    def test_are_marked(self):
        assert tokens(unknown=(2,)).is_unknown.tolist() == [False, False, True, False]

    def test_a_vocabulary_without_an_unknown_token_has_none(self):
        assert not tokens().is_unknown.any()


def test_heads_rest_on_special_tokens_and_on_the_first_token_of_a_decoder_s_text():
    """The first token here is a word; the last is special, as is the third."""
    keys = Axis.of(tokens(4, is_special=np.array([False, False, True, True])))
    rests = {kind: resting_places(keys, kind).tolist() for kind in ("encoder", "decoder", "cross")}
    assert rests == {
        "encoder": [False, False, True, True],
        "decoder": [True, False, True, True],
        "cross": [False, False, True, True],
    }
    shown = pattern([[0.25] * 4] * 3, keys=keys, kind="decoder")
    assert shown.is_resting_place.tolist() == rests["decoder"]


def test_a_matrix_of_two_texts_as_csv():
    """Queries down, keys across; a cell without a number is one that the query may not see."""
    queries = Axis.of(tokens(2, labels=("it", "sat")))
    keys = Axis.of(tokens(3, labels=("the", "=cat", "[SEP]")))
    shown = pattern(
        [[0.25, 0.75, 0.0], [0.5, 0.0, 0.5]],
        queries=queries,
        keys=keys,
        allowed=np.array([[True, True, False], [True, True, True]]),
    )
    header = "query \\ key,0 the,1 =cat,2 [SEP]"
    weights, scores = (shown.csv(scores=scores).decode("utf-8-sig").splitlines() for scores in (False, True))
    assert weights == [header, "0 it,0.25,0.75,", "1 sat,0.5,0.0,0.5"]
    assert scores == [header, "0 it,0.0,1.0,", "1 sat,3.0,4.0,5.0"]
    without = replace(shown, scores=None).csv(scores=True).decode("utf-8-sig").splitlines()
    assert without == weights


def test_heads_share_keys_where_there_are_fewer():
    assert layer().shares_keys
    six = {"key": np.zeros((6, 5, 7), np.float32), "value": np.zeros((6, 5, 11), np.float32)}
    assert not layer(**six).shares_keys


@pytest.mark.parametrize(
    "other",
    [
        {"ids": np.array([0, 1, 2, 9])},
        {"is_special": np.zeros(4, dtype=bool)},
        {"segment": np.array([0, 0, 1, 1])},
        {"word": np.array([-1, 0, 0, -1])},
        {"labels": ("0", "1", "2", "another")},
        {"language": "fr_XX"},
        {"template": "chat"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_tokens_are_equal_where_all_that_a_model_reads_is(other):
    assert tokens().equal(tokens())
    assert not tokens().equal(tokens(**other))
    assert not tokens(**other).equal(tokens())


def test_a_part_of_a_computation_reports_its_share_of_the_whole():
    told = []
    part = progress_within(told.append, 0.5, 0.25)
    for done in (0.0, 0.5, 1.0):
        part(done)
    assert told == [0.5, 0.625, 0.75]
    progress_within(None, 0.5, 0.25)(1.0)


class TestRepr:
    def test_leaves_out_what_is_by_default_and_shortens_the_rest(self):
        assert (
            repr(PROVENANCE)
            == "Provenance(model='m', revision='r', dtype='float32', versions={'torch': '2'})"
        )
        shown = tokens(4, text="a" * 60, masked=dict.fromkeys(range(4), "x"), n_cut=(7,))
        assert repr(shown) == (
            f"Tokens(text='{'a' * 17}...{'a' * 18}', ids=int64[4], labels=('0', '1', '2', ...), is_special=bool[4], "
            "segment=int64[4], word=int64[4], n_cut=(7,), masked={0: 'x', 1: 'x', 2: 'x', ...})"
        )

    def test_of_what_a_record_holds_is_a_few_words(self):
        class Other:
            def __repr__(self):
                return "<" + "o" * 60 + ">"

        assert brief((PROVENANCE, [1, 2, 3, 4])) == "(<Provenance>, [1, 2, 3, ...])"
        assert brief(Other()) == f"<{'o' * 17}...{'o' * 18}>"
        assert brief(((("a",),),)) == "(((...),),)"
        assert brief(np.zeros((2, 3), np.float32)) == "float32[2, 3]"


def test_projection_rows_of_a_role():
    assert projection().rows("query").tolist() == [0, 1, 2]
    assert projection().rows("key").tolist() == [3, 4, 5]


@pytest.mark.usefixtures("types_unchecked")
class TestCheckIndex:
    @pytest.mark.parametrize("given", [0, 2, np.int64(2)])
    def test_an_index_in_range_is_given_back_as_an_int(self, given):
        index = check_index("head", given, 3, "m")
        assert index == given
        assert type(index) is int

    @pytest.mark.parametrize("given", [-1, 3, 10**20])
    def test_one_out_of_range_is_refused_with_the_range(self, given):
        with pytest.raises(SelectionError, match=rf"^Head {given} was asked for; m has heads 0 to 2\."):
            check_index("head", given, 3, "m")

    @pytest.mark.parametrize("given", [1.0, "1", True, None])
    def test_what_is_no_whole_number_is_refused(self, given):
        with pytest.raises(ArgumentError, match=f"^Head {given!r} was asked for; a head is a whole number"):
            check_index("head", given, 3, "m")


def test_a_record_comes_back_from_another_process_as_it_was(door_trace) -> None:
    projection = attnviz.project(door_trace, 3, 1, method="pca", values=True)
    back = pickle.loads(pickle.dumps(projection))
    np.testing.assert_array_equal(back.points, projection.points)
    assert back.parameters == projection.parameters
    assert back.provenance.versions == projection.provenance.versions
    assert back.query_tokens.labels == door_trace.tokens.labels
    assert back.in_map.order_correlation == projection.in_map.order_correlation
    with pytest.raises(ValueError, match="read-only"):
        back.points[0] = 1
    with pytest.raises(TypeError):
        back.parameters["seed"] = 2
