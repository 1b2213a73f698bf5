"""Bundles of runs with interventions: each kind is read as it was written, and what does not fit is refused."""

import html
import json
from dataclasses import fields, replace

import numpy as np
import pytest

import attnviz
from attnviz.bundle import bounds, changes
from attnviz.bundle.changes import changes_in_words
from attnviz.bundle.reading import read_bundle
from attnviz.bundle.writing import NUMBERS, PAGE, PROVENANCE, write_bundle
from attnviz.errors import BundleError, VerificationError
from attnviz.model import interventions
from attnviz.model.interventions import (
    Intervention,
    MaskedKeys,
    ReplacedOutput,
    ReplacedState,
    ReplacedVectors,
    ReplacedWeights,
    ScaledOutput,
)
from tests.bundles import bundle_of, files_of, packed_again, with_arrays, with_document

pytestmark = pytest.mark.slow

TEXT, TARGET = "the cat sat on a mat", "a door opened ."


def numbers(*shape):
    return np.random.default_rng(3).normal(size=shape).astype(np.float32)


def softmaxed(*shape):
    made = np.exp(numbers(*shape))
    return made / made.sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def plain(tiny_model):
    return tiny_model("bert").trace(TEXT)


def each(trace):
    """An intervention of every kind and form, by name, for a tiny BERT."""
    n = len(trace.tokens)
    d_value, d_model = trace.attention(0).value.shape[2], trace.last_hidden_state.shape[1]
    d_head = trace.attention(0).query.shape[2]
    return {
        "a mask": MaskedKeys(allowed=np.tril(np.ones((n, n), dtype=bool)), kind="encoder"),
        "a mask of one head": MaskedKeys(allowed=np.eye(n, dtype=bool), layer=1, head=1),
        "weights": ReplacedWeights(weights=softmaxed(n, n), layer=1, head=1),
        "weights of every head": ReplacedWeights(weights=softmaxed(n, n)),
        "off": ScaledOutput(factor=0.0, layer=2, head=0),
        "scaled": ScaledOutput(factor=-1.7, kind="encoder"),
        "outputs": ReplacedOutput(output=numbers(n, d_value), layer=1, head=1),
        "one output for some": ReplacedOutput(output=numbers(1, d_value), layer=1, positions=(4, 0)),
        "one output for none": ReplacedOutput(output=numbers(1, d_value), positions=()),
        "the stream": ReplacedState(states=numbers(n, d_model), layer=0),
        "a state": ReplacedState(states=numbers(n, d_model), layer=2, positions=(3,)),
        "attention outputs": ReplacedState(states=numbers(1, d_model), where="attention", layer=1),
        "what enters": ReplacedState(states=numbers(n, d_model), where="before", layer=1, positions=(2,)),
        "MLP outputs": ReplacedState(states=numbers(n, d_model), where="mlp", layer=0),
        "queries": ReplacedVectors(role="query", vectors=numbers(n, d_head), layer=1, head=0),
        "one key for some": ReplacedVectors(role="key", vectors=numbers(1, d_head), positions=(1, 3)),
        "values": ReplacedVectors(role="value", vectors=numbers(n, d_value), kind="encoder", layer=2),
    }


NAMES = [
    *("a mask", "a mask of one head", "weights", "weights of every head", "off", "scaled", "outputs"),
    *("one output for some", "one output for none", "the stream", "a state", "attention outputs"),
    *("what enters", "MLP outputs", "queries", "one key for some", "values"),
]


def written(model, text, target, given):
    """A bundle of a run with these interventions, with the verdict of the run without."""
    unchanged = bundle_of(model, model.trace(text, target))
    return write_bundle(replace(unchanged, trace=model.trace(text, target, interventions=given)))


def assert_same_changes(restored, expected):
    assert [*map(type, restored)] == [*map(type, expected)]
    for intervention, other in zip(restored, expected, strict=True):
        assert str(intervention) == str(other)
        for field in fields(intervention):
            mine, theirs = getattr(intervention, field.name), getattr(other, field.name)
            np.testing.assert_array_equal(mine, theirs)
            assert type(mine) is type(theirs)
            if isinstance(mine, np.ndarray):
                assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
                assert not mine.flags.writeable


def assert_same_numbers(trace, expected):
    for kind in expected.kinds:
        for layer in range(expected.n_layers(kind)):
            np.testing.assert_array_equal(trace.outputs(layer, kind), expected.outputs(layer, kind))
            np.testing.assert_array_equal(
                trace.layer_weights(layer, kind), expected.layer_weights(layer, kind)
            )
    np.testing.assert_array_equal(trace.last_hidden_state, expected.last_hidden_state)


@pytest.mark.parametrize("name", NAMES)
def test_each_is_read_as_it_was_written(name, tiny_model, plain):
    bert, given = tiny_model("bert"), each(plain)
    assert list(given) == NAMES
    changed = bert.trace(TEXT, interventions=[given[name]])
    data = written(bert, TEXT, None, [given[name]])
    read = read_bundle(data).trace
    assert_same_changes(read.interventions, changed.interventions)
    assert_same_numbers(read, changed)
    assert json.loads(files_of(data)[PROVENANCE])["version"] == 5


def test_every_kind_of_intervention_is_among_them(plain):
    kinds = {
        value
        for value in vars(interventions).values()
        if isinstance(value, type) and issubclass(value, Intervention)
    }
    assert set(map(type, each(plain).values())) == kinds - {Intervention}


def test_several_are_read_in_their_order(tiny_model, plain):
    bert = tiny_model("bert")
    given = [*each(plain).values(), ScaledOutput(factor=2.0, layer=1, head=1)]
    changed = bert.trace(TEXT, interventions=given)
    read = read_bundle(written(bert, TEXT, None, given)).trace
    assert_same_changes(read.interventions, given)
    assert_same_numbers(read, changed)


def test_without_them_the_numbers_would_be_others(tiny_model, plain):
    """What the test above compares does depend on what is read."""
    read = read_bundle(written(tiny_model("bert"), TEXT, None, [each(plain)["weights"]])).trace
    unchanged = replace(read, interventions=())
    assert np.abs(read.outputs(1)[1] - unchanged.outputs(1)[1]).max() > 1e-3
    assert np.abs(read.layer_weights(1)[1] - unchanged.layer_weights(1)[1]).max() > 1e-2


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_of_each_kind_of_attention(kind, tiny_model):
    bart = tiny_model("bart")
    of = bart.trace(TEXT, TARGET)
    n_query, n_key = len(of.query_tokens(kind)), len(of.key_tokens(kind))
    given = [
        ReplacedWeights(weights=softmaxed(n_query, n_key), kind=kind, layer=1, head=0),
        MaskedKeys(allowed=np.arange(n_key)[None].repeat(n_query, 0) < 2, kind=kind, layer=0),
        ReplacedOutput(output=numbers(1, of.attention(0, kind).value.shape[2]), kind=kind, layer=2),
        ScaledOutput(factor=0.5),
        *(
            ReplacedVectors(
                role=role, vectors=numbers(length, width), kind=kind, layer=1, positions=(length - 1,)
            )
            for role, length, width in (
                ("query", n_query, of.attention(0, kind).query.shape[2]),
                ("key", n_key, of.attention(0, kind).key.shape[2]),
                ("value", n_key, of.attention(0, kind).value.shape[2]),
            )
        ),
    ]
    read = read_bundle(written(bart, TEXT, TARGET, given)).trace
    assert_same_changes(read.interventions, given)
    assert_same_numbers(read, bart.trace(TEXT, TARGET, interventions=given))


def test_without_interventions_nothing_is_written_of_them(tiny_model, plain):
    data = write_bundle(bundle_of(tiny_model("bert"), plain))
    document = json.loads(files_of(data)[PROVENANCE])
    assert "interventions" not in document and document["version"] == 5
    assert read_bundle(data).trace.interventions == ()
    assert b"changed" not in files_of(data)[PAGE].split(b"<script")[0]


class TestWords:
    def test_the_page_says_that_the_run_was_changed(self, tiny_model, plain):
        given = each(plain)
        page = files_of(written(tiny_model("bert"), TEXT, None, [given["off"], given["a state"]]))[PAGE]
        text = html.unescape(page.decode())
        assert (
            "changed this run of the model: layer 2, head 0: output × 0; layer 2: residual stream replaced at token 3. Of the "
            "unchanged run 13 of 13 checks passed. This page cannot check that again." in text
        )
        assert "compared the trace" not in text

    def test_many_are_counted(self):
        off = [ScaledOutput(factor=0.0, layer=1, head=head) for head in range(12)]
        assert changes_in_words(off[:1]) == "layer 1, head 0: output × 0"
        assert changes_in_words(off).endswith("layer 1, head 2: output × 0; and 9 more")
        states = ReplacedState(states=numbers(1, 2), positions=tuple(range(1000)))
        assert len(changes_in_words([states] * 5)) < 400

    def test_it_is_not_compared_with_the_model(self, tiny_model, plain):
        bert = tiny_model("bert")
        read = read_bundle(written(bert, TEXT, None, [each(plain)["off"]]))
        with pytest.raises(
            VerificationError, match="was changed \\(layer 2, head 0: output × 0\\), so it cannot"
        ):
            attnviz.compare_bundle(read, bert)


@pytest.fixture(scope="module")
def packed(tiny_model, plain):
    """A bundle with an intervention of every kind."""
    return written(tiny_model("bert"), TEXT, None, list(each(plain).values()))


@pytest.mark.usefixtures("types_unchecked")
class TestRefused:
    """One sentence on what does not fit, whatever a file holds."""

    def refused(self, data, words):
        with pytest.raises(BundleError) as caught:
            read_bundle(data)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 400

    @pytest.mark.parametrize(
        ("number", "changed", "words"),
        [
            (0, {"type": "Replaced"}, "Invalid value 'Replaced' - at `$.interventions[0].type`"),
            (0, {"type": None}, "$.interventions[0].type"),
            (
                0,
                {"type": "ReplacedWeights"},
                "its intervention 0 has the wrong number of axes or the wrong type",
            ),
            (0, {"type": "ScaledOutput"}, "missing required field `factor`"),
            (0, {"kind": "image"}, "$.interventions[0].kind"),
            (0, {"kind": "decoder"}, "is at a layer or kind of attention that the bundle does not contain"),
            (1, {"layer": 3}, "is at a layer or kind of attention that the bundle does not contain"),
            (1, {"layer": -1}, "$.interventions[1].layer"),
            (1, {"layer": True}, "$.interventions[1].layer"),
            (1, {"layer": 10**30}, "is not valid"),
            (1, {"head": 99}, "is at a head that layer 1 of encoder attention does not have"),
            (4, {"factor": "0"}, "$.interventions[4].factor"),
            (4, {"factor": 1e13}, "$.interventions[4].factor"),
            (4, {"type": "ReplacedOutput", "positions": None}, "the array of its intervention 4 is missing"),
            (7, {"positions": [99]}, "is at a token that is not one of the"),
            (7, {"positions": [0.5]}, "$.interventions[7].positions[0]"),
            (7, {"positions": [0] * 1025}, "$.interventions[7].positions"),
            (9, {"where": "head"}, "$.interventions[9].where"),
            (
                9,
                {"type": "ScaledOutput", "factor": 1.0},
                "the arrays of its numbers.npz are not those of a bundle",
            ),
            (14, {"role": "output"}, "$.interventions[14].role"),
            (14, {"positions": [99]}, "is at a token that is not one of the"),
            (14, {"head": 99}, "is at a head that layer 1 of encoder attention does not have"),
            (14, {"type": "ReplacedState", "where": None}, "$.interventions[14].where"),
        ],
    )
    def test_a_document(self, number, changed, words, packed):
        self.refused(
            with_document(packed, lambda document: document["interventions"][number].update(changed)), words
        )

    @pytest.mark.parametrize(
        ("name", "array", "words"),
        [
            ("intervention.0", np.ones((3, 3), dtype=bool), "has an array of 3 x 3 numbers where"),
            ("intervention.0", np.ones((3, 3, 3), dtype=bool), "wrong number of axes"),
            ("intervention.2", np.ones((1, 8), dtype=np.float32), "has an array of 1 x 8 numbers where"),
            ("intervention.2", np.ones((8, 8), dtype=bool), "wrong type"),
            ("intervention.2", np.ones((8, 8), dtype=np.float64), "is not an array of float32 or bool"),
            ("intervention.6", np.full((1, 1), np.nan, dtype=np.float32), "not finite"),
            ("intervention.9", np.ones((3, 1), dtype=np.float32), "has an array of 3 x 1 numbers where"),
            ("intervention.4", np.ones((2, 2), dtype=np.float32), "the arrays of its numbers.npz"),
            ("intervention.14", np.ones((3, 1), dtype=np.float32), "has an array of 3 x 1 numbers where"),
            ("intervention.16", np.ones((1, 99), dtype=np.float32), "has an array of 1 x 99 numbers where"),
            ("intervention.16", np.full((1, 1), np.inf, dtype=np.float32), "not finite"),
            ("intervention.17", np.ones((2, 2), dtype=np.float32), "the arrays of its numbers.npz"),
            ("intervention.00", np.ones((2, 2), dtype=np.float32), "the arrays of its numbers.npz"),
            ("intervention.99999", np.ones((2, 2), dtype=np.float32), "the arrays of its numbers.npz"),
        ],
    )
    def test_arrays(self, name, array, words, packed):
        self.refused(with_arrays(packed, lambda arrays: arrays.update({name: array})), words)

    def test_a_missing_array(self, packed):
        self.refused(
            with_arrays(packed, lambda arrays: arrays.pop("intervention.10")),
            "the array of its intervention 10 is missing",
        )

    def test_arrays_of_no_intervention(self, packed):
        self.refused(
            with_document(packed, lambda document: document.pop("interventions")),
            "the arrays of its numbers.npz",
        )

    def test_more_than_a_bundle_holds(self, packed, monkeypatch):
        intervention = {"type": "ScaledOutput", "kind": None, "layer": 0, "head": 0, "factor": 1.0}
        many = [intervention] * (bounds.MOST_CHANGES + 1)
        self.refused(
            with_document(packed, lambda document: document.update(interventions=many)),
            "$.interventions",
        )
        monkeypatch.setattr(changes, "MOST_CHANGES", 3)
        self.refused(packed, "Use fewer interventions.")

    @pytest.mark.parametrize(
        ("place", "n_changed"), [({"layer": 0}, 2), ({"head": 0}, 3), ({}, 6), ({"layer": 0, "head": 1}, 1)]
    )
    def test_heads_of_a_layer_and_layers_of_a_head_are_counted(
        self, place, n_changed, tiny_model, monkeypatch
    ):
        data = written(tiny_model("bert"), TEXT, None, [ScaledOutput(factor=2.0, **place)])
        monkeypatch.setattr(changes, "MOST_CHANGES", n_changed)
        read_bundle(data)
        monkeypatch.setattr(changes, "MOST_CHANGES", n_changed - 1)
        self.refused(data, "Use fewer interventions.")

    def test_more_weights_than_a_bundle_holds(self, tiny_model, plain, monkeypatch):
        n = len(plain.tokens)
        intervention = ReplacedWeights(weights=softmaxed(n, n))
        data = written(tiny_model("bert"), TEXT, None, [intervention])
        n_weights = len(plain.heads()) * n * n
        monkeypatch.setattr(bounds, "MOST_WEIGHTS", n_weights)
        read_bundle(data)
        twice = with_document(
            with_arrays(data, lambda arrays: arrays.update({"intervention.1": intervention.weights})),
            lambda document: document["interventions"].append(document["interventions"][0]),
        )
        self.refused(twice, "Use fewer interventions.")

    @pytest.mark.parametrize(
        ("factors", "weight", "words"),
        [
            (
                [1e12, 1e12],
                None,
                "the output of the heads of layer 0 holds numbers that are not finite or too large",
            ),
            (
                [1e12] * 9,
                None,
                "the output of the heads of layer 0 holds numbers that are not finite or too large",
            ),
            ([], 1.001, "has weights that are not from 0 to 1"),
            ([], -0.001, "has weights that are not from 0 to 1"),
            ([], np.nan, "not finite"),
        ],
    )
    def test_numbers_that_overflow(self, factors, weight, words, tiny_model, plain):
        n = len(plain.tokens)
        given = [ScaledOutput(factor=factor) for factor in factors]
        if weight is not None:
            weights = softmaxed(n, n)
            weights[1, 2] = weight
            given.append(ReplacedWeights(weights=weights))
        changed = replace(plain, interventions=tuple(given))
        bert = tiny_model("bert")
        with pytest.raises(BundleError, match=words):
            write_bundle(replace(bundle_of(bert, plain), trace=changed))

    def test_outputs_that_overflow_in_one_layer(self, tiny_model, plain):
        twice = (ScaledOutput(factor=1e12, kind="encoder", layer=2, head=1),) * 2
        with pytest.raises(BundleError, match="the output of the heads of layer 2 holds numbers"):
            write_bundle(
                replace(bundle_of(tiny_model("bert"), plain), trace=replace(plain, interventions=twice))
            )

    def test_rollout_that_would_overflow(self, tiny_model, plain, monkeypatch):
        n, n_layer = len(plain.tokens), plain.n_layers()
        intervention = ReplacedWeights(weights=np.ones((n, n), dtype=np.float32))
        data = written(tiny_model("bert"), TEXT, None, [intervention])
        read = read_bundle(data)
        largest = (0.5 + 0.5 * n) ** n_layer  # a row sums to n, half of which is taken in each layer
        assert 0.1 * largest < read.trace.rollout(n_layer - 1).sum(axis=1).max() <= largest
        monkeypatch.setattr(changes, "LARGEST_NUMBER", 0.99 * largest)
        self.refused(data, "a rollout through the layers is too large")

    @pytest.mark.parametrize("factor", [np.nan, np.inf, -np.inf])
    def test_a_factor_that_is_not_finite(self, factor, tiny_model, plain):
        changed = replace(plain, interventions=(ScaledOutput(factor=factor),))
        with pytest.raises(BundleError, match="factor that is not finite"):
            write_bundle(replace(bundle_of(tiny_model("bert"), plain), trace=changed))

    def test_an_intervention_of_one_s_own(self, tiny_model, plain):
        class Own(Intervention):
            pass

        changed = replace(plain, interventions=(Own(),))
        with pytest.raises(BundleError, match="of type Own was asked for; a bundle can hold MaskedKeys, "):
            write_bundle(replace(bundle_of(tiny_model("bert"), plain), trace=changed))

    def test_many_entries_that_are_none(self, packed):
        files = files_of(packed)
        parts = {f"intervention.{number}.npy": b"" for number in range(5000)}
        many = packed_again(parts, 0)
        self.refused(packed_again(files | {NUMBERS: many}), "its files are not those of a bundle")


def test_a_stream_may_be_wider_than_the_last_hidden_state(tiny_model):
    """OPT narrows its last hidden state."""
    opt = tiny_model("opt")
    plain = opt.trace(TEXT)
    d_model = plain.attention(0).output_weight.shape[2]
    assert d_model != plain.last_hidden_state.shape[1]
    intervention = ReplacedState(layer=0, states=numbers(len(plain.tokens), d_model))
    (read,) = read_bundle(written(opt, TEXT, None, [intervention])).trace.interventions
    np.testing.assert_array_equal(read.states, intervention.states)


@pytest.mark.parametrize("role", ["query", "key", "value"])
def test_a_head_reads_vectors_of_its_own_where_others_share_theirs(role, tiny_model):
    """A layer whose keys or values are replaced has an entry for each head, and the others one for each group."""
    llama = tiny_model("llama")
    plain = llama.trace(TEXT)
    assert plain.attention(0).shares_keys
    own = numbers(len(plain.tokens), plain.attention(1).query.shape[2])
    given = [ReplacedVectors(role=role, vectors=own, layer=1, head=1)]
    changed, read = (
        llama.trace(TEXT, interventions=given),
        read_bundle(written(llama, TEXT, None, given)).trace,
    )
    assert_same_changes(read.interventions, given)
    assert_same_numbers(read, changed)
    np.testing.assert_array_equal(getattr(read, role)(1, 1), own)
    np.testing.assert_array_equal(getattr(read, role)(1, 0), getattr(plain, role)(1, 0))
    assert [read.attention(layer).shares_keys for layer in range(2)] == [True, role == "query"]


@pytest.mark.parametrize("role", ["query", "key", "value"])
def test_vectors_are_as_many_as_the_queries_or_the_keys(role, tiny_model, types_unchecked):
    """Of cross-attention, whose queries and keys are of two texts."""
    bart = tiny_model("bart")
    plain = bart.trace(TEXT, TARGET)
    lengths = {"query": len(plain.query_tokens("cross")), "key": len(plain.key_tokens("cross"))}
    assert lengths["query"] != lengths["key"]
    n_token, n_other = lengths["query"], lengths["key"]
    if role != "query":
        n_token, n_other = n_other, n_token
    width = plain.attention(0, "cross").query.shape[2]
    given = ReplacedVectors(role=role, vectors=numbers(n_other, width), kind="cross")
    changed = replace(plain, interventions=(given,))
    with pytest.raises(
        BundleError, match=f"{n_other} x {width} numbers where cross .* has {n_token} x {width}"
    ):
        write_bundle(replace(bundle_of(bart, plain), trace=changed))
    at = replace(given, vectors=numbers(1, width), positions=(max(n_token, n_other) - 1,))
    beyond = replace(plain, interventions=(at,))
    if n_token < n_other:
        with pytest.raises(BundleError, match=f"not one of the {n_token} of the text"):
            write_bundle(replace(bundle_of(bart, plain), trace=beyond))
    else:
        write_bundle(replace(bundle_of(bart, plain), trace=beyond))
