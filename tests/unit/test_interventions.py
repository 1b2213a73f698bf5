"""Changes inside a forward pass, against models that are built that way, and that they stay in that pass."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
import transformers as tf

import attnviz
from attnviz.model import capture
from attnviz.model.interventions import Intervention

TEXT = "the cat sat on a mat when the door opened"


def causal(n: int) -> np.ndarray:
    return np.tril(np.ones((n, n), dtype=bool))


@pytest.fixture
def bert(tiny_model):
    return tiny_model("bert")


def test_a_causal_mask_makes_the_causal_model_of_the_same_weights(bert):
    """BERT's own decoder: transformers' BertModel with is_decoder, on its eager attention."""
    config = tf.BertConfig(**bert.network.config.to_dict() | {"is_decoder": True})
    config._attn_implementation = "eager"
    theirs = tf.BertModel(config).eval()
    theirs.load_state_dict(bert.network.state_dict(), strict=False)
    trace = bert.trace(TEXT)
    n = len(trace.tokens)
    ours = bert.trace(TEXT, interventions=[Intervention(allowed=causal(n))])
    inputs = bert.inputs(trace.tokens)
    with torch.inference_mode():
        output = theirs(**inputs, output_attentions=True)
    np.testing.assert_allclose(ours.last_hidden_state, output.last_hidden_state[0], atol=2e-5)
    for layer, weights in enumerate(output.attentions):
        for head in range(ours.n_heads()):
            np.testing.assert_allclose(ours.weights(layer, head), weights[0, head], atol=2e-6)
    assert np.abs(ours.last_hidden_state - trace.last_hidden_state).max() > 0.1


def test_one_head_of_one_layer(bert):
    plain = bert.trace(TEXT)
    n = len(plain.tokens)
    changed = bert.trace(TEXT, interventions=[Intervention(allowed=np.eye(n, dtype=bool), layer=1, head=1)])
    np.testing.assert_allclose(changed.weights(1, 1), np.eye(n), atol=1e-7)
    np.testing.assert_array_equal(changed.weights(1, 0), plain.weights(1, 0))  # what came before is the same
    np.testing.assert_array_equal(changed.weights(0, 1), plain.weights(0, 1))
    assert np.abs(changed.weights(2, 0) - plain.weights(2, 0)).max() > 1e-3  # what comes after is not


def test_several_leave_what_all_of_them_leave(bert):
    n = len(bert.trace(TEXT).tokens)
    first, second = np.ones((n, n), dtype=bool), np.ones((n, n), dtype=bool)
    first[:, 3] = False
    second[:, 5] = False
    trace = bert.trace(
        TEXT, interventions=[Intervention(allowed=first), Intervention(allowed=second, layer=0)]
    )
    assert not trace.weights(0, 0)[:, [3, 5]].any()
    assert not trace.weights(2, 0)[:, 3].any() and trace.weights(2, 0)[:, 5].all()


def test_what_the_model_forbids_stays_forbidden(tiny_model):
    model = tiny_model("gpt2")
    n = len(model.trace("the cat sat").tokens)
    trace = model.trace("the cat sat", interventions=[Intervention(allowed=np.ones((n, n), dtype=bool))])
    assert not np.triu(trace.weights(0, 0), 1).any()


def test_a_row_that_sees_nothing_is_zero(bert):
    n = len(bert.trace(TEXT).tokens)
    allowed = np.ones((n, n), dtype=bool)
    allowed[4] = False
    trace = bert.trace(TEXT, interventions=[Intervention(allowed=allowed, layer=0)])
    assert not trace.weights(0, 0)[4].any()
    assert np.isfinite(trace.last_hidden_state).all()


def test_a_kind_alone(tiny_model):
    model = tiny_model("bart")
    plain = model.trace("the cat sat", "a door")
    n_query, n_key = len(plain.query_tokens("cross")), len(plain.key_tokens("cross"))
    allowed = np.zeros((n_query, n_key), dtype=bool)
    allowed[:, 0] = True
    changed = model.trace(
        "the cat sat", "a door", interventions=[Intervention(allowed=allowed, kind="cross")]
    )
    np.testing.assert_allclose(changed.weights(0, 0, "cross")[:, 0], 1)
    np.testing.assert_array_equal(changed.weights(0, 0, "encoder"), plain.weights(0, 0, "encoder"))


def test_nothing_is_left_behind(bert):
    before = bert.trace(TEXT)
    state = {name: one.clone() for name, one in bert.network.state_dict().items()}
    attributes = {name: set(vars(one)) for name, one in bert.network.named_modules()}
    bert.trace(TEXT, interventions=[Intervention(allowed=causal(len(before.tokens)))])
    after = bert.trace(TEXT)
    np.testing.assert_array_equal(after.last_hidden_state, before.last_hidden_state)
    assert all(torch.equal(one, state[name]) for name, one in bert.network.state_dict().items())
    assert {name: set(vars(one)) for name, one in bert.network.named_modules()} == attributes
    assert after.interventions == ()


def test_two_threads_that_meet_in_every_layer_do_not_share_their_interventions(bert, monkeypatch):
    n = len(bert.trace(TEXT).tokens)
    masks = [causal(n), np.eye(n, dtype=bool), np.ones((n, n), dtype=bool)]
    alone = [bert.trace(TEXT, interventions=[Intervention(allowed=one)]) for one in masks]
    meeting = threading.Barrier(len(masks), timeout=30)
    real = capture.attention_output_in_blocks

    def met(*args, **kwargs):
        meeting.wait()
        return real(*args, **kwargs)

    monkeypatch.setattr(capture, "attention_output_in_blocks", met)
    with ThreadPoolExecutor(len(masks)) as threads:
        together = list(
            threads.map(lambda one: bert.trace(TEXT, interventions=[Intervention(allowed=one)]), masks)
        )
    for ours, expected in zip(together, alone, strict=True):
        np.testing.assert_array_equal(ours.last_hidden_state, expected.last_hidden_state)
    assert np.abs(alone[0].last_hidden_state - alone[1].last_hidden_state).max() > 0.1


def test_such_a_trace_is_not_verified(bert):
    n = len(bert.trace(TEXT).tokens)
    trace = bert.trace(TEXT, interventions=[Intervention(allowed=causal(n))])
    with pytest.raises(attnviz.VerificationError, match="Verify the trace of the same text without"):
        attnviz.verify(bert, trace)


@pytest.mark.parametrize(
    ("made", "error", "said"),
    [
        ({"size": 5}, attnviz.ShapeError, "mask is 5 x 5"),
        ({"head": 2}, attnviz.SelectionError, "Head 2"),
        ({"layer": 3}, attnviz.SelectionError, "layer 3"),
        ({"kind": "cross"}, attnviz.SelectionError, "cross attention"),
    ],
)
def test_what_does_not_fit(bert, made, error, said):
    n = made.pop("size", len(bert.trace(TEXT).tokens))
    with pytest.raises(error, match=said):
        bert.trace(TEXT, interventions=[Intervention(allowed=causal(n), **made)])
