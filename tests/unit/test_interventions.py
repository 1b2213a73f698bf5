"""Changes inside a forward pass, against models built that way; they do not outlast the pass."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
import transformers as tf

import attnviz
from attnviz.errors import CaptureError, SelectionError
from attnviz.model import capture
from attnviz.model import variants as module
from attnviz.model.changes import Changes
from attnviz.model.interventions import (
    MaskedKeys,
    ReplacedOutput,
    ReplacedState,
    ReplacedVectors,
    ReplacedWeights,
    ScaledOutput,
    replaced_weights,
)
from attnviz.model.states import hidden_states
from attnviz.model.variants import batches, first_layer, measured_variants, most_rows, states_of_variants

TEXT, OTHER = "the cat sat on a mat when the door opened", "a door opened when the mat sat on the cat"


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
    ours = bert.trace(TEXT, interventions=[MaskedKeys(allowed=causal(n))])
    inputs = bert.inputs(trace.tokens)
    with torch.inference_mode():
        output = theirs(**inputs, output_attentions=True)
    np.testing.assert_allclose(ours.last_hidden_state, output.last_hidden_state[0], atol=2e-5)
    for layer, weights in enumerate(output.attentions):
        for head in range(ours.n_heads(0)):
            np.testing.assert_allclose(ours.weights(layer, head), weights[0, head], atol=2e-6)
    assert np.abs(ours.last_hidden_state - trace.last_hidden_state).max() > 0.1


def test_one_head_of_one_layer(bert):
    plain = bert.trace(TEXT)
    n = len(plain.tokens)
    changed = bert.trace(TEXT, interventions=[MaskedKeys(allowed=np.eye(n, dtype=bool), layer=1, head=1)])
    np.testing.assert_allclose(changed.weights(1, 1), np.eye(n), atol=1e-7)
    np.testing.assert_array_equal(changed.weights(1, 0), plain.weights(1, 0))  # what came before is the same
    np.testing.assert_array_equal(changed.weights(0, 1), plain.weights(0, 1))
    assert np.abs(changed.weights(2, 0) - plain.weights(2, 0)).max() > 1e-3  # what comes after is not


def test_several_leave_what_all_of_them_leave(bert):
    n = len(bert.trace(TEXT).tokens)
    first, second = np.ones((n, n), dtype=bool), np.ones((n, n), dtype=bool)
    first[:, 3] = False
    second[:, 5] = False
    trace = bert.trace(TEXT, interventions=[MaskedKeys(allowed=first), MaskedKeys(allowed=second, layer=0)])
    assert not trace.weights(0, 0)[:, [3, 5]].any()
    assert not trace.weights(2, 0)[:, 3].any() and trace.weights(2, 0)[:, 5].all()


def test_what_the_model_forbids_stays_forbidden(tiny_model):
    model = tiny_model("gpt2")
    n = len(model.trace("the cat sat").tokens)
    trace = model.trace("the cat sat", interventions=[MaskedKeys(allowed=np.ones((n, n), dtype=bool))])
    assert not np.triu(trace.weights(0, 0), 1).any()


def test_a_row_that_sees_nothing_is_zero(bert):
    n = len(bert.trace(TEXT).tokens)
    allowed = np.ones((n, n), dtype=bool)
    allowed[4] = False
    trace = bert.trace(TEXT, interventions=[MaskedKeys(allowed=allowed, layer=0)])
    assert not trace.weights(0, 0)[4].any()
    assert np.isfinite(trace.last_hidden_state).all()


def test_a_kind_alone(tiny_model):
    model = tiny_model("bart")
    plain = model.trace("the cat sat", "a door")
    n_query, n_key = len(plain.query_tokens("cross")), len(plain.key_tokens("cross"))
    allowed = np.zeros((n_query, n_key), dtype=bool)
    allowed[:, 0] = True
    changed = model.trace("the cat sat", "a door", interventions=[MaskedKeys(allowed=allowed, kind="cross")])
    np.testing.assert_allclose(changed.weights(0, 0, "cross")[:, 0], 1)
    np.testing.assert_array_equal(changed.weights(0, 0, "encoder"), plain.weights(0, 0, "encoder"))


def test_nothing_is_left_behind(bert):
    before = bert.trace(TEXT)
    state = {name: tensor.clone() for name, tensor in bert.network.state_dict().items()}
    attributes = {name: set(vars(module)) for name, module in bert.network.named_modules()}
    bert.trace(TEXT, interventions=[MaskedKeys(allowed=causal(len(before.tokens)))])
    after = bert.trace(TEXT)
    np.testing.assert_array_equal(after.last_hidden_state, before.last_hidden_state)
    assert all(torch.equal(tensor, state[name]) for name, tensor in bert.network.state_dict().items())
    assert {name: set(vars(module)) for name, module in bert.network.named_modules()} == attributes
    assert after.interventions == ()


def test_two_threads_that_meet_in_every_layer_do_not_share_their_interventions(bert, monkeypatch):
    n = len(bert.trace(TEXT).tokens)
    masks = [causal(n), np.eye(n, dtype=bool), np.ones((n, n), dtype=bool)]
    alone = [bert.trace(TEXT, interventions=[MaskedKeys(allowed=mask)]) for mask in masks]
    meeting = threading.Barrier(len(masks), timeout=30)
    real = capture.attention_output_in_blocks

    def met(*args, **kwargs):
        meeting.wait()
        return real(*args, **kwargs)

    monkeypatch.setattr(capture, "attention_output_in_blocks", met)
    with ThreadPoolExecutor(len(masks)) as threads:
        together = list(
            threads.map(lambda mask: bert.trace(TEXT, interventions=[MaskedKeys(allowed=mask)]), masks)
        )
    for ours, expected in zip(together, alone, strict=True):
        np.testing.assert_array_equal(ours.last_hidden_state, expected.last_hidden_state)
    assert np.abs(alone[0].last_hidden_state - alone[1].last_hidden_state).max() > 0.1


@pytest.mark.parametrize("shape", [(1, 5), None])
def test_a_head_gives_what_it_is_told_to(bert, shape):
    """Its output, for every query or for those that are named; and the trace says what was used."""
    plain = bert.trace(TEXT)
    n = len(plain.tokens)
    output = np.arange(5 * (n if shape is None else 1), dtype=np.float32).reshape(shape or (n, 5)) / 7
    place = {"layer": 1, "head": 1}
    whole = bert.trace(TEXT, interventions=[ReplacedOutput(output=output, **place)])
    np.testing.assert_array_equal(whole.output(1, 1), np.broadcast_to(output, (n, 5)))
    np.testing.assert_array_equal(whole.output(1, 0), plain.output(1, 0))
    some = bert.trace(TEXT, interventions=[ReplacedOutput(output=output, positions=(2, 7), **place)])
    expected = plain.output(1, 1).copy()
    expected[[2, 7]] = np.broadcast_to(output, (n, 5))[[2, 7]]
    np.testing.assert_array_equal(some.output(1, 1), expected)
    assert np.abs(some.last_hidden_state - plain.last_hidden_state).max() > 1e-3


def test_an_output_that_is_its_own_changes_nothing(bert):
    plain = bert.trace(TEXT)
    own = ReplacedOutput(output=plain.output(1, 0), layer=1, head=0)
    same = bert.trace(TEXT, interventions=[own, ScaledOutput(factor=1.0)])
    np.testing.assert_array_equal(same.last_hidden_state, plain.last_hidden_state)


def test_weights_in_place_of_the_softmax(bert):
    """Uniform weights make the output the mean of the values, whatever is masked; the scores stay."""
    plain = bert.trace(TEXT)
    n = len(plain.tokens)
    uniform = ReplacedWeights(weights=np.full((n, n), 1 / n, dtype=np.float32), layer=0, head=1)
    masked = MaskedKeys(allowed=np.eye(n, dtype=bool), layer=0, head=1)
    trace = bert.trace(TEXT, interventions=[uniform, masked])
    np.testing.assert_allclose(trace.output(0, 1), np.tile(plain.value(0, 1).mean(axis=0), (n, 1)), atol=1e-6)
    np.testing.assert_allclose(trace.weights(0, 1), 1 / n)
    np.testing.assert_allclose(trace.layer_weights(0)[1], 1 / n)
    np.testing.assert_allclose(trace.pattern(0, 1).weights, 1 / n)
    np.testing.assert_array_equal(trace.weights(0, 0), plain.weights(0, 0))
    assert np.isinf(trace.scores(0, 1)).sum() == n * n - n


def test_several_are_applied_in_order(bert):
    output = np.full((1, 5), 3.0, dtype=np.float32)
    replaced, halved = ReplacedOutput(output=output, layer=1, head=0), ScaledOutput(factor=0.5, layer=1)
    first = bert.trace(TEXT, interventions=[replaced, halved])
    np.testing.assert_allclose(first.output(1, 0), 1.5)
    last = bert.trace(TEXT, interventions=[halved, replaced])
    np.testing.assert_allclose(last.output(1, 0), 3.0)
    assert [str(intervention) for intervention in last.interventions] == [
        "layer 1, every head: output × 0.5",
        "layer 1, head 0: output replaced",
    ]


def test_heads_of_a_group_are_switched_off_one_by_one(tiny_model):
    """Llama's six heads share two keys and values; the outputs are six."""
    llama = tiny_model("llama")
    plain = llama.trace("the cat sat")
    changed = llama.trace("the cat sat", interventions=[ScaledOutput(factor=0.0, layer=0, head=4)])
    for head in range(6):
        expected = np.zeros_like(plain.output(0, head)) if head == 4 else plain.output(0, head)
        np.testing.assert_array_equal(changed.output(0, head), expected)


@pytest.mark.parametrize("where", ["layer", "attention"])
def test_a_state_at_a_position(bert, where):
    other, plain = bert.trace(OTHER), bert.trace(TEXT)
    assert len(other.tokens) == len(plain.tokens)
    states = hidden_states(bert, other).of(where)["encoder", 1]
    changed = bert.trace(
        TEXT, interventions=[ReplacedState(states=states, where=where, layer=1, positions=(3,))]
    )
    assert np.abs(changed.last_hidden_state - plain.last_hidden_state).max() > 0.01
    np.testing.assert_array_equal(changed.key(1, 0), plain.key(1, 0))  # what came before is the same
    moved = np.abs(changed.key(2, 0) - plain.key(2, 0)).max(axis=1)
    assert moved[3] > 1e-3 and not np.delete(moved, 3).any()  # the next layer's input differs there alone


def test_the_last_residual_stream_is_the_last_hidden_state(bert):
    """BERT has no norm after its last layer; what is noted is what passes."""
    trace = bert.trace(TEXT)
    states = hidden_states(bert, trace)
    np.testing.assert_array_equal(states.layers["encoder", 2], trace.last_hidden_state)
    for layer, state in states.attentions.items():
        call = trace.attention(layer[1])
        joined = sum(trace.output(layer[1], head) @ call.output_weight[head] for head in range(2))
        np.testing.assert_allclose(state, joined + call.output_bias, atol=1e-5)


def test_two_threads_with_variants_do_not_meet(bert, monkeypatch):
    plain = bert.trace(TEXT)
    sets = [
        [[ScaledOutput(factor=factor, layer=1, head=head)] for head in (0, 1)] for factor in (0.0, 2.0, 5.0)
    ]

    def states(variants):
        return np.concatenate([batch.numpy() for _, batch in states_of_variants(bert, plain, variants)])

    alone = [states(variants) for variants in sets]
    meeting = threading.Barrier(len(sets), timeout=30)
    real = capture.attention_output_in_blocks

    def met(*args, **kwargs):
        meeting.wait()
        return real(*args, **kwargs)

    monkeypatch.setattr(capture, "attention_output_in_blocks", met)
    with ThreadPoolExecutor(len(sets)) as threads:
        together = list(threads.map(states, sets))
    for ours, expected in zip(together, alone, strict=True):
        np.testing.assert_array_equal(ours, expected)
    assert np.abs(alone[0] - alone[1]).max() > 0.01


def test_a_row_joins_in_the_layer_in_which_it_begins_to_differ(bert, monkeypatch):
    """The first row is that of the variant that begins last, so that there is a row of the unchanged run to copy until then."""
    plain = bert.trace(TEXT)
    variants = [
        [ScaledOutput(factor=0.0, layer=layer, head=head)] for head in range(2) for layer in (2, 0, 1)
    ]
    [batch] = batches(plain, variants)
    assert (batch.variants, batch.joins) == ((3, 1, 4, 2, 5, 0), (0, 0, 0, 1, 1, 2))
    n_rows = []
    real = capture.attention_output_in_blocks

    def noted(query, *args, **named):
        n_rows.append(len(query))
        return real(query, *args, **named)

    monkeypatch.setattr(capture, "attention_output_in_blocks", noted)
    together = np.zeros((6, *plain.last_hidden_state.shape), dtype=np.float32)
    for places, states in states_of_variants(bert, plain, variants):
        together[list(places)] = states.numpy()
    assert n_rows == [3, 5, 6]
    for variant, states in zip(variants, together, strict=True):
        alone = bert.trace(TEXT, interventions=variant).last_hidden_state
        np.testing.assert_allclose(states, alone, atol=1e-5)


def test_the_layers_of_an_encoder_run_before_those_of_a_decoder(tiny_model, monkeypatch):
    """Three of the encoder, then four of the decoder, each with both of its kinds of attention."""
    trace = tiny_model("t5").trace("I was watching the door", "a cat")
    begins = [
        ([ScaledOutput(factor=0.0, kind="encoder", layer=2)], 2),
        ([ScaledOutput(factor=0.0, kind="decoder", layer=1)], 4),
        ([ScaledOutput(factor=0.0, kind="cross", layer=0)], 3),
        ([ScaledOutput(factor=0.0, kind="cross")], 3),
        ([ScaledOutput(factor=0.0, layer=2)], 2),
        ([ScaledOutput(factor=0.0)], 0),
        ([], 0),
        ([ScaledOutput(factor=0.0, kind=kind, layer=1) for kind in ("cross", "encoder")], 1),
    ]
    assert [first_layer(trace, variant) for variant, _ in begins] == [layer for _, layer in begins]
    n_source, n_target = len(trace.tokens), len(trace.target_tokens)
    assert (n_source, n_target) == (6, 3)
    monkeypatch.setattr(module, "TOKENS_AT_ONCE", 6 * 5 + 3)
    assert most_rows(trace) == 5
    monkeypatch.setattr(module, "MOST_SCORES", 3 * 2 * 6 * 6 + 1)  # two heads
    assert most_rows(trace) == 3
    monkeypatch.setattr(module, "MOST_SCORES", 1)
    assert most_rows(trace) == 1


def test_as_many_variants_at_a_time_as_fit(bert, monkeypatch):
    monkeypatch.setattr("attnviz.model.variants.TOKENS_AT_ONCE", 3 * len(bert.trace(TEXT).tokens) + 1)
    variants = [[ScaledOutput(factor=float(factor), layer=1)] for factor in range(7)]
    told = []
    numbers = measured_variants(
        bert, bert.trace(TEXT), variants, lambda states: states[:, 0, 0], progress=told.append
    )
    layers = np.arange(1, 4) / 3  # reported after the attention of each layer
    assert told == pytest.approx([*(3 / 7 * layers), *(3 / 7 + 3 / 7 * layers), *(6 / 7 + 1 / 7 * layers)])
    for variant, number in zip(variants, numbers, strict=True):
        assert number == pytest.approx(
            bert.trace(TEXT, interventions=variant).last_hidden_state[0, 0], abs=1e-5
        )


def test_such_a_trace_is_not_verified(bert):
    n = len(bert.trace(TEXT).tokens)
    trace = bert.trace(TEXT, interventions=[MaskedKeys(allowed=causal(n))])
    with pytest.raises(attnviz.VerificationError, match="Verify the trace of the same text without"):
        attnviz.verify(bert, trace)


@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        ({"size": 5}, attnviz.ShapeError, "mask is 5 x 5"),
        ({"head": 2}, attnviz.SelectionError, "Head 2"),
        ({"layer": 3}, attnviz.SelectionError, "layer 3"),
        ({"kind": "cross"}, attnviz.SelectionError, "cross attention"),
    ],
)
def test_what_does_not_fit(bert, made, error, message):
    n = made.pop("size", len(bert.trace(TEXT).tokens))
    with pytest.raises(error, match=message):
        bert.trace(TEXT, interventions=[MaskedKeys(allowed=causal(n), **made)])


STATES = np.zeros((4, 10), dtype=np.float32)


@pytest.mark.parametrize(
    ("intervention", "error", "message"),
    [
        (ScaledOutput(factor=0.0, layer=1, head=2), attnviz.SelectionError, "Head 2"),
        (ScaledOutput(factor=0.0, layer=9), attnviz.SelectionError, "layer 9"),
        (ReplacedOutput(output=STATES), attnviz.ShapeError, "output is 4 x 10; a head of layer 0 has 12 x 5"),
        (ReplacedWeights(weights=STATES), attnviz.ShapeError, "matrix of weights is 4 x 10"),
        (
            ReplacedState(states=STATES, layer=0),
            attnviz.ShapeError,
            "array of states is 4 x 10; layer 0 has 12 x 10",
        ),
        (
            ReplacedOutput(output=np.zeros((1, 5), dtype=np.float32), positions=(12,)),
            attnviz.SelectionError,
            "Token 12 was asked for; this text has tokens 0 to 11",
        ),
    ],
)
@pytest.mark.parametrize("together", [False, True])
def test_what_else_does_not_fit(bert, intervention, error, message, together):
    with pytest.raises(error, match=message):
        if together:
            list(states_of_variants(bert, bert.trace(TEXT), [[intervention]]))
        else:
            bert.trace(TEXT, interventions=[intervention])


def test_a_place_that_is_not_known(tiny_model):
    """BitNet normalises the joined outputs before W_O, so attnviz does not know its W_O."""
    model = tiny_model("bitnet")
    n = len(model.trace("the cat").tokens)
    states = np.zeros((n, 60), dtype=np.float32)
    with pytest.raises(attnviz.SelectionError, match="no such place that attnviz knows"):
        model.trace("the cat", interventions=[ReplacedState(states=states, where="attention", layer=0)])


def test_a_mask_is_where_the_model_runs(bert):
    """torch's meta device stands for a GPU: it has shapes, and takes no numbers from elsewhere."""
    mask = MaskedKeys(allowed=causal(5), layer=0)
    recording = capture.Recording(bert.network, Changes([[mask]]))
    query = torch.empty(1, 6, 5, 4, device="meta")
    changed = recording.changed(bert.network.encoder.layer[0].attention.self, query, query, None)
    assert changed.device == query.device


def test_variants_begin_from_the_model_s_own_run(bert):
    changed = bert.trace(TEXT, interventions=[ScaledOutput(layer=0, head=0, factor=0.0)])
    with pytest.raises(SelectionError, match=r"Variants of a trace with an intervention \(layer 0, head 0"):
        next(states_of_variants(bert, changed, [[]]))


def test_one_row_of_weights_stands_for_every_query(bert):
    n = len(bert.tokenize(TEXT))
    row = np.full((1, n), 1 / n, dtype=np.float32)
    trace = bert.trace(TEXT, interventions=[ReplacedWeights(weights=row, layer=1, head=0)])
    for weights in (trace.weights(1, 0), trace.layer_weights(1)[0], trace.pattern(1, 0).weights):
        np.testing.assert_array_equal(weights, np.repeat(row, n, axis=0))
    np.testing.assert_allclose(trace.output(1, 0), weights @ trace.value(1, 0), atol=1e-6)


ROW = np.ones((1, 3), dtype=np.float32)


@pytest.mark.parametrize(
    ("intervention", "words"),
    [
        (MaskedKeys(allowed=np.tri(4, dtype=bool), layer=3, head=1), "layer 3, head 1: 6 of 16 cells masked"),
        (MaskedKeys(allowed=np.eye(2, dtype=bool)), "every layer, every head: 2 of 4 cells masked"),
        (ReplacedWeights(weights=ROW, layer=3), "layer 3, every head: weights replaced"),
        (ScaledOutput(factor=0.5, head=2, kind="cross"), "cross every layer, head 2: output × 0.5"),
        (
            ReplacedOutput(output=ROW, kind="decoder", layer=0, head=0),
            "decoder layer 0, head 0: output replaced",
        ),
        (
            ReplacedOutput(output=ROW, layer=1, positions=(4,)),
            "layer 1, every head: output replaced at token 4",
        ),
        (
            ReplacedVectors(role="key", vectors=ROW, layer=1, head=0, positions=(4, 2)),
            "layer 1, head 0: keys replaced at tokens 4, 2",
        ),
        (ReplacedState(states=ROW), "every layer: residual stream replaced"),
        (ReplacedState(states=ROW, layer=2, where="before"), "layer 2: residual stream before it replaced"),
        (
            ReplacedState(states=ROW, layer=2, where="mlp", kind="decoder", positions=(0, 5)),
            "decoder layer 2: MLP output replaced at tokens 0, 5",
        ),
        (ReplacedState(states=ROW, layer=2, where="attention"), "layer 2: attention output replaced"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_what_is_changed_is_said_in_words(intervention, words):
    assert str(intervention) == words


def test_the_weights_of_a_head_are_those_that_replace_them_last():
    first, then, other = (np.full((2, 2), number, dtype=np.float32) for number in (1, 2, 3))
    changes = [
        ReplacedWeights(weights=first),
        ReplacedWeights(weights=then, kind="decoder", layer=1, head=0),
        ReplacedWeights(weights=other, kind="cross"),
        ScaledOutput(factor=0.0),
    ]
    for kind, layer, expected in (
        ("decoder", 1, {0: then, 1: first}),
        ("decoder", 0, {0: first, 1: first}),
        ("encoder", 1, {0: first, 1: first}),
        ("cross", 1, {0: other, 1: other}),
    ):
        weights = replaced_weights(changes, kind, layer, 2)
        assert weights.keys() == expected.keys()
        assert all(weights[head] is expected[head] for head in expected)
    assert replaced_weights(changes[1:2], "decoder", 0, 2) == {}
    assert replaced_weights(changes[1:2], "decoder", 1, 2).keys() == {0}


class TestRowByRow:
    """Two variants in one batch, of 4 heads that share 2 keys and values; what is expected is written cell by cell."""

    N_HEAD, N_QUERY, N_KEY, D = 4, 3, 5, 2
    SHAPE = (2, N_HEAD, N_QUERY, N_KEY)

    @pytest.fixture
    def random(self):
        return np.random.default_rng(0)

    def numbers(self, random, *shape):
        return random.standard_normal(shape).astype(np.float32)

    def test_keys_are_masked(self, random):
        first, other = (random.random((self.N_QUERY, self.N_KEY)) < 0.5 for _ in range(2))
        of_row = (
            [MaskedKeys(allowed=first), MaskedKeys(allowed=other, head=2, layer=1)],
            [MaskedKeys(allowed=other, head=0)],
        )
        seen = Changes(of_row).allowed("encoder", 1, self.SHAPE)
        assert seen.shape == self.SHAPE
        for row, head, query, key in np.ndindex(*self.SHAPE):
            if row == 0:
                expected = first[query, key] and (head != 2 or other[query, key])
            else:
                expected = head != 0 or other[query, key]
            assert bool(seen[row, head, query, key]) == expected
        assert Changes(of_row[1:]).allowed("encoder", 1, (1, *self.SHAPE[1:])).shape == (1, *self.SHAPE[1:])
        assert Changes([of_row[0][1:], []]).allowed("encoder", 0, self.SHAPE) is None
        assert Changes([[], of_row[1]]).is_asked and not Changes([[], []]).is_asked

    def test_queries_are_replaced_and_keys_stay_shared(self, random):
        query, key, value = (
            torch.tensor(self.numbers(random, 2, n_head, n, self.D))
            for n_head, n in ((self.N_HEAD, self.N_QUERY), (2, self.N_KEY), (2, self.N_KEY))
        )
        new = self.numbers(random, 1, self.D)
        changes = Changes([[], [ReplacedVectors(role="query", vectors=new, head=3, positions=(0, 2))]])
        queries, keys, values = changes.changed_vectors("encoder", 0, query, key, value)
        assert keys is key and values is value
        for row, head, token in np.ndindex(2, self.N_HEAD, self.N_QUERY):
            expected = (
                new[0] if (row, head) == (1, 3) and token in (0, 2) else query[row, head, token].numpy()
            )
            np.testing.assert_array_equal(queries[row, head, token].numpy(), expected)

    def test_keys_are_replaced_for_the_head_alone_that_reads_them(self, random):
        query, key, value = (
            torch.tensor(self.numbers(random, 2, n_head, n, self.D))
            for n_head, n in ((self.N_HEAD, self.N_QUERY), (2, self.N_KEY), (2, self.N_KEY))
        )
        new_query, new_key = (
            self.numbers(random, self.N_QUERY, self.D),
            self.numbers(random, self.N_KEY, self.D),
        )
        both = [
            ReplacedVectors(role="query", vectors=new_query, head=0),
            ReplacedVectors(role="key", vectors=new_key, head=1, positions=(4,)),
        ]
        queries, keys, values = Changes([both, []]).changed_vectors("encoder", 0, query, key, value)
        for row, head, token in np.ndindex(2, self.N_HEAD, self.N_KEY):
            is_new = (row, head, token) == (0, 1, 4)
            expected = new_key[4] if is_new else key[row, head // 2, token].numpy()
            np.testing.assert_array_equal(keys[row, head, token].numpy(), expected)
            np.testing.assert_array_equal(
                values[row, head, token].numpy(), value[row, head // 2, token].numpy()
            )
        for row, head, token in np.ndindex(2, self.N_HEAD, self.N_QUERY):
            expected = new_query[token] if (row, head) == (0, 0) else query[row, head, token].numpy()
            np.testing.assert_array_equal(queries[row, head, token].numpy(), expected)

    def test_a_model_that_ran_on_fewer_rows_is_refused(self, random):
        output = torch.tensor(self.numbers(random, 1, self.N_HEAD, self.N_QUERY, self.D))
        changes = Changes([[], [ScaledOutput(factor=0.0)]])
        with pytest.raises(
            CaptureError, match="2 variants of a text were to be told apart in layer 3, row 1 among them"
        ):
            changes.change_outputs("encoder", 3, output, output)

    def test_outputs_and_states_are_replaced(self, random):
        output = torch.tensor(self.numbers(random, 2, self.N_HEAD, self.N_QUERY, self.D))
        value = torch.tensor(
            self.numbers(random, 1, self.N_HEAD, self.N_KEY, self.D)
        )  # the same in both rows
        before, weights = output.clone(), self.numbers(random, self.N_QUERY, self.N_KEY)
        new, states = self.numbers(random, self.N_QUERY, self.D), torch.tensor(self.numbers(random, 2, 3, 7))
        row = [
            ReplacedWeights(weights=weights, head=1),
            ScaledOutput(factor=-2.0, head=1),
            ReplacedOutput(output=new, head=2, positions=(2,)),
        ]
        Changes([[], row]).change_outputs("encoder", 0, output, value)
        for at, head, query in np.ndindex(2, self.N_HEAD, self.N_QUERY):
            expected = before[at, head, query].numpy()
            if (at, head) == (1, 1):
                expected = -2 * sum(
                    weights[query, key] * value[0, 1, key].numpy() for key in range(self.N_KEY)
                )
            elif (at, head, query) == (1, 2, 2):
                expected = new[2]
            np.testing.assert_allclose(output[at, head, query].numpy(), expected, rtol=1e-5)
        given, kept = self.numbers(random, 1, 7), states.clone()
        changes = Changes([[], [ReplacedState(states=given, layer=1, where="mlp", positions=(0,))]])
        assert changes.changed_states("layer", "encoder", 1, states) is states
        with pytest.raises(
            SelectionError, match=r"layer 1: MLP output replaced at token 0\. This model has no such place"
        ):
            changes.check_applied()
        made = changes.changed_states("mlp", "encoder", 1, states)
        for at, token in np.ndindex(2, 3):
            expected = given[0] if (at, token) == (1, 0) else kept[at, token].numpy()
            np.testing.assert_array_equal(made[at, token].numpy(), expected)
        assert torch.equal(states, kept)
        beyond = Changes([[ReplacedState(states=given, positions=(5,))]])
        with pytest.raises(SelectionError, match="Token 5 was asked for; this text has tokens 0 to 2"):
            beyond.changed_states("layer", "encoder", 0, states)
        changes.check_applied()
