"""A bundle read again is the view that was written."""

from dataclasses import replace

import numpy as np
import pytest

from attnviz.bundle.reading import read_bundle
from attnviz.bundle.writing import write_bundle
from attnviz.records import Axis
from tests.bundles import bundle_of, failed, with_arrays

pytestmark = pytest.mark.slow


FLOAT32 = 1e-6  # of sums of a few dozen numbers up to 1
OF_NORMS = 5e-5  # of float32 sums of 384 products, of heads that may cancel each other


class TestRoundTrip:
    @pytest.mark.parametrize(
        ("family", "kind"),
        [
            ("bert", "encoder"),
            ("albert", "encoder"),
            ("modernbert", "encoder"),  # two masks
            ("llama", "decoder"),  # shared keys and values, a mask
            ("t5", "cross"),  # a bias, and two texts
            ("t5", "decoder"),
            ("bart", "cross"),
        ],
    )
    def test_is_exact(self, family, kind, tiny_model):
        model = tiny_model(family)
        trace = model.trace("the door opened", "it was playing" if family != "llama" else None)
        written = bundle_of(model, trace, kind=kind)
        data = write_bundle(written)
        read = read_bundle(data)
        assert write_bundle(read) == data
        assert (read.pattern.weights == written.pattern.weights).all()
        for recorded_kind in trace.kinds:
            for layer in range(trace.n_layers(recorded_kind)):
                for part in ("query", "key", "value"):
                    ours, theirs = (
                        getattr(of.attention(layer, recorded_kind), part) for of in (read.trace, trace)
                    )
                    assert (ours == theirs).all()
                # of all heads at once, arrays with another memory layout are summed in another order
                np.testing.assert_allclose(
                    read.trace.layer_weights(layer, recorded_kind),
                    trace.layer_weights(layer, recorded_kind),
                    atol=FLOAT32,
                )
                outputs = trace.outputs(layer, recorded_kind)
                np.testing.assert_allclose(
                    read.trace.outputs(layer, recorded_kind), outputs, atol=FLOAT32 * np.abs(outputs).max()
                )
            assert read.trace.measures(recorded_kind) == trace.measures(recorded_kind)
        assert read.report.passed is written.report.passed is True
        assert dict(read.report.not_compared) == dict(written.report.not_compared)
        assert [check.name for check in read.report.checks] == [check.name for check in written.report.checks]
        for ours, theirs in zip(read.report.checks, written.report.checks, strict=True):
            assert (ours.unit, ours.reason, ours.passed) == (theirs.unit, theirs.reason, theirs.passed)
            for part in ("differences", "tolerances"):
                assert _lists(getattr(ours, part)) == _lists(getattr(theirs, part))
        assert read.trace.tokens.labels == trace.tokens.labels
        assert read.trace.tokens.pieces == trace.tokens.pieces
        assert dict(read.trace.provenance.versions) == dict(trace.provenance.versions)

    def test_norm_based_weights_and_rollout_need_no_model(self, door, packed):
        read = read_bundle(packed).trace
        for head in range(12):
            ours = door.trace.pattern(3, head, measure="norms").weights
            assert (read.pattern(3, head, measure="norms").weights == ours).all()
        together = door.trace.pattern(3, None, measure="norms").weights
        np.testing.assert_allclose(read.pattern(3, None, measure="norms").weights, together, rtol=OF_NORMS)
        np.testing.assert_allclose(read.rollout(5), door.trace.rollout(5), atol=FLOAT32)

    def test_keeps_the_arrangement(self, embedded):
        trace = embedded.trace("Unbelievable doors", "playing outdoors", masked=[2])
        words = Axis.of(trace.tokens, "words")
        shown = {"queries": words.of_segment(1), "keys": words.without_special(), "renormalised": True}
        written = bundle_of(embedded, trace, **shown, show="norms", colour="logarithmic", theme="dark")
        read = read_bundle(write_bundle(written))
        assert read.pattern.queries.labels == written.pattern.queries.labels
        assert (read.pattern.weights == written.pattern.weights).all()
        assert read.trace.tokens.masked == trace.tokens.masked
        assert (read.show, read.colour, read.theme) == ("norms", "logarithmic", "dark")

    def test_keeps_what_was_not_compared(self, door):
        report = replace(
            door.report, checks=door.report.checks[:9], not_compared={"norm-based weights": "No W_O."}
        )
        assert dict(read_bundle(write_bundle(replace(door, report=report))).report.not_compared) == {
            "norm-based weights": "No W_O."
        }

    def test_keeps_a_failed_verdict(self, door):
        read = read_bundle(write_bundle(replace(door, report=failed(door.report)))).report
        assert not read.passed
        assert [check.name for check in read.failed] == ["attention weights"]
        assert read.check("attention weights").worst == ("encoder", 2, 5)
        assert np.isnan(read.weight_error[2, 5])

    def test_weights_of_another_machine_are_read(self, door, packed):
        """Scores of about 400, and weights summed in float64 from the same queries and keys."""
        layers = [replace(layer, query=10 * layer.query) for layer in door.trace.layers["encoder"]]
        trace = replace(door.trace, layers={"encoder": tuple(layers)})
        scores = layers[3].query[1].astype(np.float64) @ layers[3].key[1].T / np.sqrt(32)
        exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights = (exponentials / exponentials.sum(axis=1, keepdims=True)).astype(np.float32)

        def put(arrays):
            arrays["weights"] = weights

        changed = with_arrays(write_bundle(replace(door, trace=trace)), put)
        np.testing.assert_array_equal(read_bundle(changed).pattern.weights, trace.weights(3, 1))


def _lists(tables):
    return {kind: table.tolist() for kind, table in tables.items()}
