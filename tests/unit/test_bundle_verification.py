"""A bundle against the model: whatever is changed in the file, the comparison finds it."""

from dataclasses import replace

import numpy as np
import pytest

from attnviz.bundle import comparison
from attnviz.bundle.comparison import compare_bundle
from attnviz.bundle.reading import read_bundle
from attnviz.bundle.writing import write_bundle
from attnviz.errors import VerificationError
from attnviz.records import Axis, Check
from tests.bundles import bundle_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def door(embedded, door_trace):
    """The first screen's example, from a file."""
    return read_bundle(write_bundle(bundle_of(embedded, door_trace)))


def with_layers(bundle, change):
    layers = {kind: tuple(map(change, calls)) for kind, calls in bundle.trace.layers.items()}
    return replace(bundle, trace=replace(bundle.trace, layers=layers))


def with_tokens(bundle, **changes):
    return replace(bundle, trace=replace(bundle.trace, tokens=replace(bundle.trace.tokens, **changes)))


def random(array):
    return np.random.default_rng(0).normal(scale=array.std(), size=array.shape).astype(np.float32)


def opened(bundle):
    """The bundle as another machine gets it: with weights that follow from its queries and keys, or it is refused."""
    words = {"queries": Axis.of(bundle.trace.tokens), "keys": Axis.of(bundle.trace.tokens)}
    return read_bundle(write_bundle(replace(bundle, **words)))


def swapped(labels, first, other):
    changed = list(labels)
    changed[first], changed[other] = changed[other], changed[first]
    return tuple(changed)


def turned(products):
    """Products of different heads with the opposite sign; each head's own lengths stay."""
    own = np.eye(len(products), dtype=bool)[..., None]
    return np.where(own, products, -products)


class TestPasses:
    def test_what_the_model_made(self, embedded, door):
        report = compare_bundle(door, embedded)
        assert report.passed
        assert [check.name for check in report.checks] == [check.name for check in door.report.checks]
        assert report.provenance.versions == embedded.provenance.versions

    @pytest.mark.parametrize("family", ["t5", "bart", "gpt2", "llama", "modernbert"])
    def test_what_models_of_other_families_made(self, family, tiny_model):
        """Two texts, shared keys, masks, biases, and a decoder that has written nothing yet."""
        model = tiny_model(family)
        seconds = ["it was playing", None] if family in ("t5", "bart") else [None]
        for second in seconds:
            bundle = bundle_of(model, model.trace("the door opened", second), query=0, key=0)
            report = compare_bundle(read_bundle(write_bundle(bundle)), model)
            assert report.passed, [(check.name, check.difference, check.tolerance) for check in report.failed]

    @pytest.mark.parametrize(
        "asked",
        [
            {"text": "I was watching the door when it opened.", "masked": [5]},
            {"text": "A door opens.", "text_pair": "It closes."},
            {"text": "door " * 300, "cut": True, "max_tokens": 13},
            {"text": "door " * 300, "text_pair": "window " * 20, "cut": True, "max_tokens": 13},
        ],
    )
    def test_what_was_masked_paired_or_cut(self, asked, embedded):
        bundle = bundle_of(embedded, embedded.trace(**asked))
        assert compare_bundle(read_bundle(write_bundle(bundle)), embedded).passed

    def test_a_bundle_that_was_never_in_a_file(self, embedded, door_trace):
        assert compare_bundle(bundle_of(embedded, door_trace), embedded).passed


class TestFails:
    """Each of these files says of itself that everything passed."""

    @pytest.mark.parametrize(
        ("names", "change"),
        [
            (
                {"queries", "values"},
                lambda bundle: with_layers(
                    bundle, lambda call: replace(call, query=random(call.query), value=random(call.value))
                ),
            ),
            (
                {"values"},
                lambda bundle: with_layers(bundle, lambda call: replace(call, value=100 * call.value)),
            ),
            (
                {"queries"},
                lambda bundle: with_layers(bundle, lambda call: replace(call, query=1.001 * call.query)),
            ),
            (
                {"scale"},
                lambda bundle: with_layers(
                    bundle, lambda call: replace(call, query=2 * call.query, scale=call.scale / 2)
                ),
            ),
            (
                {"attention mask"},
                lambda bundle: with_layers(
                    bundle, lambda call: replace(call, allowed=np.tri(11, dtype=bool)[None])
                ),
            ),
            (
                {"score bias"},
                lambda bundle: with_layers(
                    bundle, lambda call: replace(call, bias=np.full((1, 11, 11), 0.1, dtype=np.float32))
                ),
            ),
            (
                {"norm-based weights"},
                lambda bundle: with_layers(
                    bundle, lambda call: replace(call, value_products=4 * call.value_products)
                ),
            ),
            (
                {"norm-based weights"},
                lambda bundle: with_layers(
                    bundle, lambda call: replace(call, value_products=turned(call.value_products))
                ),
            ),
            (
                {"last hidden state"},
                lambda bundle: replace(
                    bundle, trace=replace(bundle.trace, last_hidden_state=-bundle.trace.last_hidden_state)
                ),
            ),
            (
                {"labels"},
                lambda bundle: with_tokens(bundle, labels=swapped(bundle.trace.tokens.labels, 5, 7)),
            ),
            (
                {"labels"},
                lambda bundle: with_tokens(bundle, labels=("[CLS]", "I", *bundle.trace.tokens.labels[2:])),
            ),
            ({"tokens"}, lambda bundle: with_tokens(bundle, ids=np.full(11, 10**12))),
            ({"tokens"}, lambda bundle: with_tokens(bundle, segment=np.ones(11, dtype=np.int64))),
            ({"tokens"}, lambda bundle: with_tokens(bundle, is_special=np.zeros(11, dtype=bool))),
            ({"tokens"}, lambda bundle: with_tokens(bundle, word=np.full(11, 3))),
            ({"tokens"}, lambda bundle: with_tokens(bundle, unknown=(5,))),
            ({"tokens"}, lambda bundle: with_tokens(bundle, n_cut=(7,))),
            (
                {"tokens", "queries"},
                lambda bundle: with_tokens(bundle, text="I was closing the door when it opened."),
            ),
            ({"tokens", "queries"}, lambda bundle: with_tokens(bundle, masked={5: "window"})),
        ],
    )
    def test_on_what_somebody_changed(self, names, change, embedded, door):
        doctored = opened(change(door))
        assert doctored.report.passed
        report = compare_bundle(doctored, embedded)
        assert not report.passed
        assert names <= {check.name for check in report.failed}

    def test_says_how_many_tokens_are_wrong(self, embedded, door):
        ids = door.trace.tokens.ids.copy()
        ids[[3, 4]] = ids[[4, 3]]
        report = compare_bundle(opened(with_tokens(door, ids=ids)), embedded)
        assert report.check("tokens").difference == 2
        assert [check.name for check in report.failed] == ["tokens"]  # the rest is of the text

    def test_on_the_head_whose_products_were_changed(self, embedded, door):
        def change(call):
            products = call.value_products.copy()
            if call.layer == 4:
                products[2, 9] *= 1.5
            return replace(call, value_products=products)

        check = compare_bundle(opened(with_layers(door, change)), embedded).check("norm-based weights")
        failed = check.differences["encoder"] > check.tolerances["encoder"]
        assert np.argwhere(failed).tolist() == [[4, 2]]


class TestRefuses:
    def test_other_weights(self, door, embedded):
        other = replace(door, weights_sha256={"model.safetensors": "0" * 64})
        with pytest.raises(VerificationError, match=r"^The model here has other weights \(SHA-256 differs\)"):
            compare_bundle(other, embedded)

    def test_weights_of_another_model(self, tiny_model):
        bert, albert = tiny_model("bert"), tiny_model("albert")
        bundle = bundle_of(bert, bert.trace("the door opened"))
        with pytest.raises(VerificationError, match="Load revision local folder of bert"):
            compare_bundle(bundle, albert)

    def test_a_bundle_that_does_not_say_its_weights(self, door, embedded):
        with pytest.raises(VerificationError, match="does not say which weights it was made with"):
            compare_bundle(replace(door, weights_sha256={}), embedded)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"text": "Short."}, "tokens, 11 in the bundle and 4 for its text here"),
            ({"text": "a" * 100_001}, "cannot read the text of this bundle"),
            ({"text": ""}, "cannot read the text of this bundle"),
            ({"text_pair": "A pair."}, "tokens, 11 in the bundle and 15 for its text here"),
            ({"masked": {0: "[CLS]"}}, "cannot read the text of this bundle"),
        ],
    )
    def test_a_text_that_makes_other_tokens(self, changes, message, door, embedded):
        with pytest.raises(VerificationError, match=message):
            compare_bundle(with_tokens(door, **changes), embedded)

    def test_fewer_layers_or_heads(self, door, embedded):
        layers = {"encoder": door.trace.layers["encoder"][:5]}
        fewer = replace(door, trace=replace(door.trace, layers=layers))
        with pytest.raises(VerificationError, match="layers of encoder attention, 5 in the bundle and 6"):
            compare_bundle(fewer, embedded)
        halved = with_layers(
            door,
            lambda call: replace(
                call,
                query=call.query[:6],
                key=call.key[:6],
                value=call.value[:6],
                value_products=call.value_products[:6, :6],
            ),
        )
        with pytest.raises(VerificationError, match="queries, keys and values of encoder layer 0"):
            compare_bundle(halved, embedded)

    def test_norm_based_weights_that_the_model_has_none_of(self, door, embedded):
        without = with_layers(door, lambda call: replace(call, value_products=None))
        with pytest.raises(VerificationError, match="norm-based weights of encoder attention, none in the"):
            compare_bundle(without, embedded)
        with pytest.raises(VerificationError, match="norm-based weights of encoder attention, some in the"):
            compare_bundle(door, replace(embedded, structure=replace(embedded.structure, output_maps={})))


def test_of_norms_and_their_products_the_worse_share_of_its_tolerance_counts(
    monkeypatch, embedded, door_trace
):
    """A small difference beyond its tolerance is worse than a larger one within it, and NaN is worst."""
    lengths = (
        [2e-6, 3e-6, 2e-6, np.nan, 1e-6],
        [1e-6, 1e-4, 1e-6, 1e-6, 1e-6],
    )  # differences, tolerances of 5 heads
    products = [3e-6, 2e-6, np.nan, 3e-6, 2e-6], [1e-4, 1e-6, 1e-4, 1e-4, 1e-4]
    check = Check(
        name="norms",
        differences={"encoder": np.array([lengths[0]] * 6, dtype=np.float32)},
        tolerances={"encoder": np.array([lengths[1]] * 6, dtype=np.float32)},
        unit="share",
        reason="rounding",
    )
    monkeypatch.setattr(comparison, "_products", lambda *_: tuple(map(np.float32, products)))
    worse = comparison._with_products(check, door_trace, embedded)
    share = worse.differences["encoder"] / worse.tolerances["encoder"]
    np.testing.assert_allclose(share, [[2.0, 2.0, np.nan, np.nan, 1.0]] * 6, rtol=1e-6)
