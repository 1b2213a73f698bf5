"""Layers with different numbers of heads: Laguna's 4, 6 and 2, and traces that are written down, head by head."""

import csv
import io
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

import attnviz
from attnviz import heads
from attnviz.bundle.writing import PROVENANCE, write_bundle
from attnviz.cli import _by_layer, _layers
from attnviz.effects.ablation import ablate, ablate_layers, remove_greedily
from attnviz.effects.logit_attribution import DirectEffects
from attnviz.effects.mean_outputs import mean_outputs
from attnviz.effects.patching import patch
from attnviz.errors import BundleError, SelectionError, ShapeError
from attnviz.figures.ablation import draw_ablations
from attnviz.figures.heads import draw_head_map, draw_heads
from attnviz.figures.verification import draw_errors
from attnviz.heads import claims
from attnviz.model.interventions import MaskedKeys, ReplacedWeights, ScaledOutput
from attnviz.records import Axis, Check, Head, by_layer, head_table, heads_in, known
from tests import odd_bundles
from tests.bundles import bundle_of, files_of, with_document

TEXT, OTHER = "the cat sat", "the mat sat"
COUNTS = (4, 6, 2)
PLACES = [(layer, head) for layer, count in enumerate(COUNTS) for head in range(count)]
MISSING = [(0, 4), (0, 5), (2, 2), (2, 3), (2, 4), (2, 5)]


@pytest.fixture(scope="module")
def model(tiny_model):
    return tiny_model("laguna")


@pytest.fixture(scope="module")
def trace(model):
    return model.trace(TEXT)


def outcome(states):
    """Something that every head changes: the mean of the last token's state."""
    return states[:, -1].mean(dim=-1)


def assert_a_number_of_each_head(table, number) -> None:
    """The table holds this number of every head, and NaN where there is none."""
    assert table.shape == (3, 6)
    for place in PLACES:
        assert table[place] == pytest.approx(number(*place), abs=1e-5), place
    assert np.isnan([table[place] for place in MISSING]).all()


class TestTheTrace:
    def test_counts_heads_layer_by_layer(self, trace):
        assert [trace.n_heads(layer) for layer in range(3)] == list(COUNTS)
        assert list(trace.heads()) == PLACES
        assert trace.shape() == (3, 6)

    def test_a_head_is_there_or_not_by_its_layer(self, trace):
        assert trace.weights(1, 5).shape == (len(trace.tokens),) * 2
        for layer, head in ((0, 4), (2, 2)):
            with pytest.raises(
                SelectionError, match=f"layer {layer} of laguna has heads 0 to {COUNTS[layer] - 1}"
            ):
                trace.weights(layer, head)

    @pytest.mark.parametrize("family", ["laguna", "llama", "bert", "t5"])
    def test_weights_of_a_layer_are_those_of_its_heads(self, tiny_model, family):
        trace = tiny_model(family).trace(TEXT, "a door" if family == "t5" else None)
        for kind in trace.kinds:
            for layer in range(trace.n_layers(kind)):
                together = trace.layer_weights(layer, kind)
                assert len(together) == trace.n_heads(layer, kind)
                for head, weights in enumerate(together):
                    np.testing.assert_allclose(
                        weights, trace.pattern(layer, head, kind).weights, atol=1e-6
                    )  # float32

    def test_weights_of_a_layer_are_replaced_with_those_of_a_head(self, model, trace):
        n = len(trace.tokens)
        even = np.full((n, n), 1 / n, dtype=np.float32)
        changed = model.trace(TEXT, interventions=[ReplacedWeights(weights=even, layer=1, head=5)])
        together = changed.layer_weights(1)
        np.testing.assert_array_equal(together[5], even)
        assert np.abs(together[4] - even).max() > 0.01


class TestVerification:
    def test_compares_each_head_that_there_is(self, model, trace):
        report = attnviz.verify(model, trace)
        assert report.passed
        assert heads_in(report.weight_error) == PLACES
        assert report.weight_error.shape == (3, 6)
        assert 0 <= report.max_abs_error == np.nanmax(report.weight_error) < 1e-5
        for check in report.checks:
            assert (check.compared("decoder").sum(axis=1) == 1).all() or heads_in(
                check.tolerances["decoder"]
            ) == PLACES

    @pytest.mark.parametrize("place", [(1, 5), (2, 1)])
    def test_a_wrong_head_is_named(self, model, trace, place):
        layer, head = place
        query = trace.attention(layer).query.copy()
        query[head, 2] += 0.1
        report = attnviz.verify(model, trace.with_layer(replace(trace.attention(layer), query=query)))
        assert not report.passed
        assert report.check("queries").worst == ("decoder", *place)

    def test_a_number_that_is_none_is_no_missing_head(self, model, trace):
        query = trace.attention(2).query.copy()
        query[1, 1] = np.nan
        report = attnviz.verify(model, trace.with_layer(replace(trace.attention(2), query=query)))
        assert not report.check("attention weights").passed
        assert report.check("attention weights").worst == ("decoder", 2, 1)
        assert math.isnan(report.max_abs_error)

    @pytest.mark.parametrize("family", ["laguna", "bert"])
    def test_a_fault_of_all_heads_at_once_is_seen(self, tiny_model, family, monkeypatch):
        """What statistics, rollout and pictures of all heads are made from."""
        model = tiny_model(family)
        right = attnviz.Trace.layer_weights

        def wrong(self, layer, kind=None, **named):
            weights = right(self, layer, kind, **named).copy()
            weights[1, 2] = weights[1, 2, ::-1]
            return weights

        monkeypatch.setattr(attnviz.Trace, "layer_weights", wrong)
        report = attnviz.verify(model, model.trace(TEXT))
        assert "attention weights" in [check.name for check in report.failed]
        assert report.check("attention weights").worst[2] == 1

    @pytest.mark.usefixtures("types_unchecked")
    def test_a_check_without_a_tolerance_is_refused(self):
        for differences, allowed in (
            ([[0, 0], [0, 0]], [[np.nan, 1], [1, 1]]),  # a difference without a tolerance
            ([[np.nan, np.nan], [0, 0]], [[np.nan, np.nan], [1, 1]]),  # a layer without a head
        ):
            with pytest.raises(ShapeError, match="without a tolerance"):
                Check(
                    name="queries",
                    differences={"encoder": np.array(differences)},
                    tolerances={"encoder": np.array(allowed)},
                    unit="share",
                    reason="",
                )

    def test_the_worst_place_is_a_head_that_is_there(self):
        check = Check(
            name="queries",
            differences={"encoder": head_table([[0.0], [0.0, 0.0]])},
            tolerances={"encoder": head_table([[1.0], [1.0, 1.0]])},
            unit="share",
            reason="",
        )
        assert check.passed
        assert check.worst == ("encoder", 0, 0)
        assert not replace(check, differences={"encoder": head_table([[0.0], [0.0, np.nan]])}).passed

    def test_the_table_on_the_command_line(self, model, trace):
        report = attnviz.verify(model, trace)
        for layer, line in enumerate(_by_layer(_layers(report)).splitlines()[1:]):
            kind, number, largest, head = line.split()
            errors = report.weight_error[layer, : COUNTS[layer]]
            assert (kind, int(number), int(head)) == ("decoder", layer, int(errors.argmax()))
            assert float(largest) == pytest.approx(float(errors.max()), rel=0.06)  # written with two digits


class TestNumbersOfEveryHead:
    def test_statistics(self, trace):
        axis = Axis.of(trace.tokens)
        tables = heads.statistics_on(trace, None, axis, axis)
        n = len(axis)
        apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
        assert_a_number_of_each_head(tables["self"], lambda *at: np.diag(trace.weights(*at)).mean())
        assert_a_number_of_each_head(tables["distance"], lambda *at: (trace.weights(*at) * apart).sum() / n)
        for bears in heads.labels(tables).values():
            assert not any(bears[place] for place in MISSING)

    def test_a_pair_and_its_order(self, trace):
        of_pair = heads.pair_weights(trace, None, (3, 4), (1, 2))
        assert_a_number_of_each_head(of_pair, lambda *at: trace.weights(*at)[3, 1])
        expected = sorted(PLACES, key=lambda at: -trace.weights(*at)[3, 1])
        assert [tuple(value) for value in heads.ranked(of_pair).tolist()] == expected

    def test_divergences(self, trace):
        axis = Axis.of(trace.tokens)
        divergences = heads.divergences(trace, None, axis, axis)
        assert list(divergences.heads) == PLACES
        assert divergences.divergence.shape == (12, 12)
        weights, other = trace.weights(1, 5), trace.weights(2, 1)
        expected = np.mean(jensenshannon(weights, other, base=2, axis=1) ** 2)
        assert divergences.divergence[PLACES.index((1, 5)), PLACES.index((2, 1))] == pytest.approx(
            expected, abs=1e-5
        )
        nearest = divergences.nearest(2, 1, 20)
        assert sorted(neighbour[:2] for neighbour in nearest) == [
            place for place in PLACES if place != (2, 1)
        ]
        assert {neighbour[:2]: neighbour[2] for neighbour in nearest}[1, 5] == pytest.approx(
            expected, abs=1e-5
        )
        for missing in MISSING:
            with pytest.raises(SelectionError):
                divergences.nearest(*missing, 1)
        drawn = draw_head_map(divergences.map(), heads=divergences.heads, picked=(2, 1)).data[0]
        assert np.array(drawn.customdata).tolist() == [list(place) for place in PLACES]
        assert [
            list(place) for place, size in zip(drawn.customdata, drawn.marker.size, strict=True) if size == 15
        ] == [[2, 1]]

    def test_claims(self, trace):
        measured = claims.measure(trace)
        n = len(trace.tokens)
        assert_a_number_of_each_head(
            measured.on_itself, lambda *at: np.mean(trace.weights(*at).argmax(axis=1) == np.arange(n))
        )
        weights = {place: trace.weights(*place).astype(np.float64) for place in PLACES}
        assert_a_number_of_each_head(
            measured.weight_asymmetry,
            lambda *at: np.abs(weights[at] - weights[at].T).sum() / (2 * weights[at].sum()),
        )
        drawn = draw_heads(measured.on_itself, what="itself", picked=(1, 5)).data[0]
        assert np.array(drawn.customdata).tolist() == [list(place) for place in PLACES]
        np.testing.assert_allclose(drawn.x, [measured.on_itself[place] for place in PLACES])

    def test_errors_are_drawn_of_heads_that_there_are(self, model, trace):
        report = attnviz.verify(model, trace)
        cells = np.array(draw_errors(report.check("attention weights")).data[0].z, dtype=float)
        assert heads_in(cells) == PLACES

    def test_norm_based_weights(self):
        uneven = odd_bundles.uneven(COUNTS)
        axis = Axis.of(uneven.tokens)
        tables = heads.statistics_on(uneven, None, axis, axis, measure="norms")

        def on_itself(layer, head):
            norms = uneven.pattern(layer, head, measure="norms").weights.astype(np.float64)
            return np.diag(norms / norms.sum(axis=1, keepdims=True)).mean()

        assert_a_number_of_each_head(tables["self"], on_itself)
        for layer in range(3):
            assert uneven.pattern(layer, None, measure="norms").weights.shape == (6, 6)
        expected = np.eye(6)
        for layer in range(3):
            mean = np.mean([uneven.weights(layer, head) for head in range(COUNTS[layer])], axis=0)
            expected = (0.5 * mean + 0.5 * np.eye(6)) @ expected
        np.testing.assert_allclose(uneven.rollout(2), expected, atol=1e-6)


class TestEffects:
    def test_each_head_off_in_turn(self, model, trace):
        ablation = ablate(model, trace, outcome)

        def without(layer, head):
            off = ScaledOutput(layer=layer, head=head, factor=0.0)
            states = model.trace(TEXT, interventions=[off]).last_hidden_state
            return states[-1].mean()

        assert_a_number_of_each_head(ablation.heads, without)
        assert sorted(ablation.ranked()) == PLACES
        layers = ablate_layers(model, trace, outcome)
        rows = list(csv.DictReader(io.StringIO(ablation.csv(layers).decode("utf-8-sig"))))
        assert [(row["layer"], row["head"]) for row in rows] == [
            (str(layer), head) for layer in range(3) for head in [*map(str, range(COUNTS[layer])), "all"]
        ]

    def test_means_of_heads_and_the_picture_of_both_ways(self, model, trace):
        means = mean_outputs(model, [TEXT, OTHER])
        first = [model.trace(text).output(1, 5)[0] for text in (TEXT, OTHER)]
        np.testing.assert_allclose(
            means.of("decoder", 1, 5, trace.tokens)[0], np.mean(first, axis=0), atol=1e-5
        )
        zero = ablate(model, trace, outcome)
        mean = ablate(model, trace, outcome, means=means, layers=[0]).joined(
            ablate(model, trace, outcome, means=means, layers=[1, 2])
        )
        drawn = draw_ablations(zero, mean).data[0]
        assert np.array(drawn.customdata).tolist() == [list(place) for place in PLACES]
        np.testing.assert_allclose(drawn.x, [zero.effects[place] for place in PLACES])
        np.testing.assert_allclose(drawn.y, [mean.effects[place] for place in PLACES])

    def test_the_heads_of_a_layer_go_one_by_one(self, model, trace):
        of_layer = by_layer(trace.heads())[2]
        assert set(remove_greedily(model, trace, outcome, of_layer).heads) == {Head(2, 0), Head(2, 1)}

    @pytest.mark.parametrize("layer", [1, 2])
    def test_the_heads_of_a_layer_are_carried(self, model, trace, layer):
        patched = patch(model, trace, model.trace(OTHER), outcome, carried="heads", layer=layer)
        assert patched.outcomes.shape == (COUNTS[layer], len(trace.tokens))
        assert np.isfinite(patched.outcomes).all()

    def test_direct_effects_are_summed_over_heads_that_there_are(self):
        effects = DirectEffects(
            kind="decoder",
            position=0,
            unit="logit",
            total=3.5,
            embedding=1.0,
            heads=head_table([[0.5], [-2.0, 1.0]]),
            sources=(np.array([[0.5]]), np.array([[-2.0], [1.0]])),
            mlps=np.array([1.0, 1.5], dtype=np.float32),
            biases=np.array([0.25, 0.0], dtype=np.float32),
            bias=0.25,
        )
        assert effects.summed == 3.5 and effects.size == 7.5 and effects.passed
        assert effects.ranked() == [(1, 0), (1, 1), (0, 0)]
        np.testing.assert_allclose(effects.of_attention, [0.5, -1.0])
        parts = [row["part"] for row in csv.DictReader(io.StringIO(effects.csv().decode("utf-8-sig")))]
        assert parts[:8] == ["embedding", "head 0", "MLP", "biases", "head 0", "head 1", "MLP", "biases"]


class TestBundles:
    def test_are_read_as_they_were_written(self, model, trace):
        bundle = bundle_of(model, trace, layer=1, head=5)
        data = write_bundle(bundle)
        assert json.loads(files_of(data)[PROVENANCE])["version"] == 5
        read = attnviz.read_bundle(data)
        assert [read.trace.n_heads(layer) for layer in range(3)] == list(COUNTS)
        for place in PLACES:
            np.testing.assert_array_equal(read.trace.weights(*place), trace.weights(*place))
        np.testing.assert_array_equal(read.report.weight_error, bundle.report.weight_error)
        assert read.report.passed
        assert write_bundle(read) == data
        assert attnviz.compare_bundle(read, model).passed

    def test_a_mask_of_each_head_and_norms_are_kept(self):
        uneven = odd_bundles.uneven(COUNTS)
        for layer, count in enumerate(COUNTS):
            allowed = np.ones((count, 6, 6), dtype=bool)
            allowed[1, 2, 3] = False
            uneven = uneven.with_layer(replace(uneven.attention(layer), allowed=allowed))
        read = attnviz.read_bundle(odd_bundles.bundle(uneven, layer=1, head=5, show="norms")).trace
        for layer, head in PLACES:
            assert not read.pattern(layer, 1).allowed[2, 3]
            np.testing.assert_array_equal(
                read.pattern(layer, head, measure="norms").weights,
                uneven.pattern(layer, head, measure="norms").weights,
            )

    def test_a_view_of_a_head_that_its_layer_has_not_is_refused(self, model, trace):
        data = write_bundle(bundle_of(model, trace, layer=1, head=5))
        with pytest.raises(BundleError, match="view is of a layer, head"):
            attnviz.read_bundle(with_document(data, lambda document: document["view"].update(layer=2)))

    def test_a_verdict_on_heads_that_are_not_there_is_refused(self, model, trace):
        data = write_bundle(bundle_of(model, trace, layer=1, head=5))

        def widen(document):
            for check in document["verification"]["checks"]:
                if check["name"] == "attention weights":
                    check["differences"]["decoder"][2] += [0.0] * 4
                    check["tolerances"]["decoder"][2] += [1.0] * 4

        with pytest.raises(BundleError, match="not on the layers and heads"):
            attnviz.read_bundle(with_document(data, widen))

    @pytest.mark.parametrize(("layer", "head"), [(0, 4), (2, 2)])
    def test_an_intervention_at_a_head_that_its_layer_has_not_is_refused(self, layer, head):
        uneven = odd_bundles.uneven(COUNTS)
        off = replace(uneven, interventions=(ScaledOutput(layer=layer, head=head, factor=0.0),))
        with pytest.raises(BundleError, match=f"head that layer {layer} of encoder attention does not have"):
            odd_bundles.bundle(off, odd_bundles.report(uneven))


class TestOneHeadMasked:
    """The cells of all heads of a layer together: those that any of them sees."""

    def test_a_cell_that_one_head_does_not_see_is_there_for_all_heads(self, tiny_model):
        model = tiny_model("bert")
        n = len(model.trace(TEXT).tokens)
        allowed = np.ones((n, n), dtype=bool)
        allowed[2, 1] = False
        masked = model.trace(TEXT, interventions=[MaskedKeys(allowed=allowed, layer=1, head=0)])
        assert not masked.pattern(1, 0).allowed[2, 1] and masked.pattern(1, 1).allowed[2, 1]
        together = masked.pattern(1, None)
        assert together.allowed.all()
        assert together.weights[2, 1] == pytest.approx(masked.weights(1, 1)[2, 1] / 2, rel=1e-6)

    def test_a_cell_that_no_head_sees_is_not(self, tiny_model):
        model = tiny_model("bert")
        n = len(model.trace(TEXT).tokens)
        allowed = np.ones((n, n), dtype=bool)
        allowed[2, 1] = False
        masked = model.trace(TEXT, interventions=[MaskedKeys(allowed=allowed, layer=1)])
        together = masked.pattern(1, None)
        assert np.argwhere(~together.allowed).tolist() == [[2, 1]]


def test_a_table_on_paper():
    table = head_table([[1.0, 2.0], [], [3.0]])
    np.testing.assert_array_equal(table, [[1, 2], [np.nan, np.nan], [3, np.nan]])
    assert known(table).tolist() == [1, 2, 3]
    assert heads_in(table) == [(0, 0), (0, 1), (2, 0)]
    assert by_layer(heads_in(table)) == [[Head(0, 0), Head(0, 1)], [Head(2, 0)]]
