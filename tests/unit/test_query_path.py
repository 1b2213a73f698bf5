"""One query's way through a head, beside numpy and scipy on the trace's own vectors, and on numbers worked out by hand."""

import numpy as np
import pytest
import scipy.special

from attnviz.errors import SelectionError
from attnviz.heads import query_path
from tests import hand_made
from tests.numpy_attention import output, weights

LONG = "the old door of the house by the river opened and nobody was watching it when the cat sat"


@pytest.mark.parametrize(("layer", "head", "query"), [(0, 0, 0), (3, 1, 7), (5, 11, 10)])
def test_every_number_is_the_traces(door_trace, layer, head, query):
    path = query_path(door_trace, query, layer, head)
    q, k = door_trace.query(layer, head)[query], door_trace.key(layer, head)
    np.testing.assert_array_equal(path.query, q)
    np.testing.assert_array_equal(path.key, k)
    np.testing.assert_array_equal(path.value, door_trace.value(layer, head))
    products = [sum(float(a) * float(b) for a, b in zip(q, key, strict=True)) for key in k]
    np.testing.assert_allclose(path.products, products, rtol=1e-12, atol=1e-12)  # float64 sums of 32 numbers
    np.testing.assert_allclose(
        path.scores, np.array(products) / np.sqrt(32), atol=2e-6
    )  # float32 scores up to 10
    np.testing.assert_allclose(path.weights, scipy.special.softmax(np.array(products) / 32**0.5), atol=1e-6)
    np.testing.assert_allclose(path.exponentials / path.exponentials.sum(), path.weights, atol=1e-6)
    assert path.exponentials.max() == 1
    np.testing.assert_array_equal(path.output, door_trace.output(layer, head)[query])
    assert path.divides_by_root and path.bias is None


def test_what_is_not_shown_is_what_the_shown_keys_lack(embedded):
    trace = embedded.trace(LONG)
    path = query_path(trace, 7, 3, 1)
    shown = np.array([0, 2, 5, 17])
    total, mean = path.others(shown)
    assert total == pytest.approx(1 - trace.weights(3, 1)[7][shown].sum(dtype=np.float64), abs=1e-6)
    listed = trace.weights(3, 1)[7][shown].astype(np.float64) @ trace.value(3, 1)[shown]
    np.testing.assert_allclose(listed + total * mean, trace.output(3, 1)[7], atol=2e-6)


def test_keys_without_weight_add_nothing():
    trace = hand_made.trace(np.array([[[[1.0, 0.0], [0.5, 0.5]]]]), ["a", "b"])
    total, mean = query_path(trace, 0, 0, 0).others(np.array([0]))
    assert total == pytest.approx(0, abs=1e-12)
    assert np.isfinite(mean).all()
    total, mean = query_path(trace, 1, 0, 0).others(np.array([0]))
    assert total == pytest.approx(0.5)
    np.testing.assert_allclose(mean, [0, 1])  # the other value


def test_a_masked_key_has_a_product_and_no_weight():
    allowed = np.tril(np.ones((2, 2), dtype=bool))
    trace = hand_made.trace(
        np.array([[[[0.5, 0.5], [0.5, 0.5]]]]), ["a", "b"], kind="decoder", allowed=allowed
    )
    path = query_path(trace, 0, 0, 0)
    np.testing.assert_allclose(path.products, np.log([0.5, 0.5]), rtol=1e-6)
    assert path.scores[1] == -np.inf
    np.testing.assert_array_equal(path.weights, [1, 0])
    np.testing.assert_array_equal(path.exponentials, [1, 0])


def test_a_query_that_sees_nothing():
    trace = hand_made.trace(
        np.array([[[[0.5, 0.5], [0.5, 0.5]]]]), ["a", "b"], allowed=np.zeros((2, 2), dtype=bool)
    )
    path = query_path(trace, 0, 0, 0)
    assert not path.weights.any() and not path.exponentials.any() and not path.output.any()
    total, mean = path.others(np.array([], dtype=int))
    assert total == 0 and not mean.any()


@pytest.mark.parametrize(
    ("name", "kind"),
    [("gpt2", None), ("llama", None), ("t5", "encoder"), ("t5", "decoder"), ("bart", "cross")],
)
def test_other_families(name, kind, tiny_model):
    """Causal masks, rotary positions, shared keys, biases and other scales: scores follow from what the path names."""
    trace = tiny_model(name).trace("the cat sat on it", *(["a door"] if kind else []))
    call, query, head = trace.attention(2, kind), 1, 1
    path = query_path(trace, query, 2, head, kind)
    shared = head // (len(call.query) // len(call.key))
    bias = None if call.bias is None else call.bias[head : head + 1]
    allowed = None if call.allowed is None else np.broadcast_to(call.allowed, (1, *call.allowed.shape[1:]))
    args = (call.query[head : head + 1], call.key[shared : shared + 1])
    masks = {"allowed": allowed, "bias": bias}
    expected = weights(*args, call.scale, **masks)[0, query]
    np.testing.assert_allclose(path.weights, expected, atol=1e-5)  # float32 scores up to 40
    value = call.value[shared : shared + 1]
    np.testing.assert_allclose(path.output, output(*args, value, call.scale, **masks)[0, query], atol=1e-4)
    seen = np.isfinite(path.scores)
    made = path.scale * path.products + (0 if path.bias is None else path.bias)
    np.testing.assert_allclose(path.scores[seen], made[seen], atol=1e-4)
    assert (path.bias is not None) == (name == "t5" and kind != "cross")
    assert path.divides_by_root == (name != "t5")


def test_what_there_is_not(door_trace):
    with pytest.raises(SelectionError, match="Query 11"):
        query_path(door_trace, 11, 3, 1)
    with pytest.raises(SelectionError, match="Head 12"):
        query_path(door_trace, 7, 3, 12)
