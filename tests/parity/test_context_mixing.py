"""ALTI, value zeroing and ALTI-Logit of every family: the parts give the model's own numbers back, and plain loops over
transformers' own network give the same."""

import math

import numpy as np
import pytest
import torch
import transformers as tf

import attnviz
from attnviz.effects.context_mixing import ContextMixing
from attnviz.effects.input_attribution import attribute_inputs, available_methods
from attnviz.effects.outcome import TokenAnswer, TokenState
from attnviz.model.interventions import ScaledOutput
from tests import tiny

TEXT, STATE = "the cat sat when it opened", TokenState(position=3)
REFUSED = {"bitnet": "how layer 0", "laguna": "how layer 0"}
"""BitNet normalises the heads' outputs before W_O, and Laguna gates them."""
FAMILIES = [name for name, family in tiny.TEXT_FAMILIES.items() if not family.is_encoder_decoder]
families = pytest.mark.parametrize("name", FAMILIES)


def assert_rows_are_shares(mixing: ContextMixing, n_layer: int, n_token: int) -> None:
    assert mixing.matrices.shape == (n_layer, n_token, n_token)
    np.testing.assert_allclose(mixing.matrices.sum(axis=2), 1, atol=1e-5)
    np.testing.assert_allclose(mixing.rollout.sum(axis=1), 1, atol=1e-5)
    assert not mixing.matrices[~mixing.allowed & ~np.eye(n_token, dtype=bool)].any()
    assert np.ptp(mixing.matrices) > 0.1


@families
def test_the_parts_give_the_vector_back(name, tiny_model):
    model = tiny_model(name)
    trace = model.trace(TEXT)
    if name in REFUSED:
        with pytest.raises(attnviz.UnsupportedArchitectureError, match=REFUSED[name]):
            attnviz.alti(model, trace)
        assert "alti" not in available_methods(model, trace, STATE)
        return
    assert "alti" in available_methods(model, trace, STATE)
    mixing = attnviz.alti(model, trace)
    assert mixing.passed and mixing.gap > 0
    assert_rows_are_shares(mixing, tiny.ENCODER_LAYERS, len(trace.tokens))


@families
def test_a_layer_alone_leaves_what_it_left(name, tiny_model):
    model = tiny_model(name)
    trace = model.trace(TEXT)
    mixing = attnviz.value_zeroing(model, trace)
    assert mixing.passed
    assert_rows_are_shares(mixing, tiny.ENCODER_LAYERS, len(trace.tokens))


NAMES = {
    "bert": ("encoder.layer", "attention.self.value", "attention.output.dense", "attention.output.LayerNorm"),
    "llama": ("layers", "self_attn.v_proj", "self_attn.o_proj", None),
}
"""The layers, and in each W_V, W_O and the norm after the sum, written down here."""


class Read:
    """What transformers' own network makes of a text: by layer its input, its values, weights, the norm after the sum and its output.

    Args:
        without: layer and token whose values are 0.
    """

    def __init__(self, folder, name, ids, without=None):
        network = tf.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
        layers, value, output, norm = NAMES[name]
        self.entered, self.left, self.values, self.normed = [], [], [], []
        self.network = network
        modules = list(network.get_submodule(layers))
        self.output_maps = [layer.get_submodule(output) for layer in modules]
        self.norms = [None if norm is None else layer.get_submodule(norm) for layer in modules]
        for number, layer in enumerate(modules):
            layer.register_forward_pre_hook(lambda _, args: self.entered.append(args[0][0].tolist()))
            layer.register_forward_hook(
                lambda _, __, made: self.left.append(
                    (made[0] if isinstance(made, tuple) else made).reshape(len(ids), -1).tolist()
                )
            )

            def values(_, __, made, number=number):
                made = made.clone()
                if without is not None and without[0] == number:
                    made[0, without[1]] = 0.0
                self.values.append(made[0].tolist())
                return made

            layer.get_submodule(value).register_forward_hook(values)
            if norm is not None:
                layer.get_submodule(norm).register_forward_hook(
                    lambda _, args, made: self.normed.append((args[0][0].tolist(), made[0].tolist()))
                )
        with torch.inference_mode():
            self.weights = network(
                input_ids=torch.tensor([ids]), output_attentions=True
            ).attentions  # [1, head, query, key] of each layer


def through(norm, vector, spread):
    mean = sum(vector) / len(vector)
    return [
        gain * (number - mean) / spread for gain, number in zip(norm.weight.tolist(), vector, strict=True)
    ]


def alti_by_loops(read: Read, layer: int, n_head: int, n_kv_head: int) -> list[list[float]]:
    weights, values = read.weights[layer][0].tolist(), read.values[layer]
    weight, entered = read.output_maps[layer].weight.tolist(), read.entered[layer]  # [d_model, d_in]
    bias = read.output_maps[layer].bias
    bias = [0.0] * len(weight) if bias is None else bias.tolist()
    n_token, d_model = len(entered), len(weight)
    d_head = len(weight[0]) // n_head
    shares = []
    for i in range(n_token):
        parts = []
        for j in range(n_token):
            part = [0.0] * d_model
            for d in range(d_model):
                for h in range(n_head):
                    kv = h // (n_head // n_kv_head)
                    for v in range(d_head):
                        value = values[j][kv * d_head + v]
                        part[d] += weights[h][i][j] * value * weight[d][h * d_head + v]
                if i == j:
                    part[d] += entered[i][d]
            parts.append(part)
        whole = [sum(part[d] for part in parts) + bias[d] for d in range(d_model)]
        if (norm := read.norms[layer]) is not None:
            mean = sum(whole) / d_model
            spread = math.sqrt(sum((number - mean) ** 2 for number in whole) / d_model + norm.eps)
            parts = [through(norm, part, spread) for part in parts]
            whole = [a + b for a, b in zip(through(norm, whole, spread), norm.bias.tolist(), strict=True)]
        size = sum(abs(number) for number in whole)
        row = [max(0.0, size - sum(abs(y - t) for y, t in zip(whole, part, strict=True))) for part in parts]
        total = sum(row)
        shares.append([number / total for number in row])
    return shares


@pytest.mark.parametrize("method", [attnviz.alti, attnviz.value_zeroing])
def test_some_layers_have_the_matrices_that_they_have_among_all(method, tiny_model):
    model = tiny_model("bert")
    trace = model.trace(TEXT)
    whole, some = method(model, trace), method(model, trace, layers=[2, 1])
    assert (whole.layers, some.layers) == ((0, 1, 2), (2, 1)) and some.passed
    for layer in (1, 2):
        np.testing.assert_array_equal(some.pattern(layer).weights, whole.matrices[layer])
        assert some.pattern(layer).layer == layer
    assert [row[0] for row in some.frame().to_numpy()[:: len(trace.tokens) ** 2]] == [2, 1]
    for refused in (lambda: some.rollout, lambda: some.pattern(0)):
        with pytest.raises(attnviz.SelectionError, match="2, 1"):
            refused()
    for layers in ([3], []):
        with pytest.raises(attnviz.SelectionError):
            method(model, trace, layers=layers)


@pytest.mark.parametrize(("name", "kv_heads"), [("bert", (2, 2)), ("llama", (6, 2))])
def test_alti_by_loops(name, kv_heads, tiny_model, checkpoint):
    model = tiny_model(name)
    trace = model.trace(TEXT)
    read = Read(checkpoint(name), name, trace.tokens.ids.tolist())
    mixing = attnviz.alti(model, trace)
    for layer in range(tiny.ENCODER_LAYERS):
        np.testing.assert_allclose(mixing.matrices[layer], alti_by_loops(read, layer, *kv_heads), atol=1e-5)
    if name == "bert":
        reached = np.linalg.multi_dot(mixing.matrices[::-1].astype(float))
        np.testing.assert_allclose(mixing.rollout, reached, atol=1e-6)


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_value_zeroing_by_runs_of_the_network(name, tiny_model, checkpoint):
    model = tiny_model(name)
    trace = model.trace("the cat")
    ids, mixing = trace.tokens.ids.tolist(), attnviz.value_zeroing(model, trace)
    own = Read(checkpoint(name), name, ids)
    for layer in range(tiny.ENCODER_LAYERS):
        rows = [[0.0] * len(ids) for _ in ids]
        for key in range(len(ids)):
            other = Read(checkpoint(name), name, ids, without=(layer, key))
            for query in range(len(ids)):
                first, second = (np.array(read.left[layer][query], dtype=np.float64) for read in (own, other))
                cosine = first @ second / math.sqrt(first @ first) / math.sqrt(second @ second)
                rows[query][key] = 1 - cosine
        for query, row in enumerate(rows):
            np.testing.assert_allclose(mixing.matrices[layer, query], np.array(row) / sum(row), atol=1e-4)


LINEAR = [
    name
    for name in tiny.WITH_HEAD
    if name in ("eurobert", "laguna") or "decoder" in tiny.TEXT_FAMILIES[name].n_layers
]


@pytest.mark.parametrize("name", LINEAR)
def test_the_parts_of_a_logit_give_it_back(name, headed):
    model, folder = headed(name)
    trace = model.trace(TEXT)
    last = len(trace.tokens) - 1
    if reason := REFUSED.get(name) or {"gemma2": "is not linear"}.get(name):
        with pytest.raises(attnviz.UnsupportedArchitectureError, match=reason):
            attnviz.alti_logit(model, trace, last, "a")
        assert "alti_logit" not in available_methods(model, trace, "answer:last:a")
        return
    theirs = tiny.WITH_HEAD[name].from_pretrained(folder, attn_implementation="eager").eval()
    with torch.inference_mode():
        logits = theirs(**model.inputs(trace.tokens)).logits[0, last]
    first, second = logits[model.tokenizer.convert_tokens_to_ids(["a", "b"])].tolist()
    for against, total in ((None, first), ("b", first - second)):
        found = attnviz.alti_logit(model, trace, last, "a", against=against)
        outcome = TokenAnswer(position=last, token="a", against=against)
        (attribution,) = attribute_inputs(model, trace, outcome, methods=["alti_logit"])
        np.testing.assert_array_equal(attribution.values, found.values)
        assert attribution.sum + attribution.rest == pytest.approx(total, abs=1e-4)
        assert found.passed and attribution.passed
        parts = [float(found.of_attention.sum()), found.direct.embedding, found.direct.bias]
        parts += [float(found.direct.mlps.sum()), float(found.direct.biases.sum())]
        assert math.fsum(parts) == pytest.approx(total, abs=1e-4)
        assert float(found.values.sum()) + found.rest == pytest.approx(total, abs=1e-4)
        assert found.values[last] - found.of_attention[last] == pytest.approx(
            found.direct.embedding, abs=1e-4
        )


def test_alti_logit_by_loops(headed):
    """Of a Llama: each layer's part of each token, through the last norm with its own scale, traced by ALTI's matrices."""
    model, folder = headed("llama")
    trace = model.trace("the cat")
    whole = tf.AutoModelForCausalLM.from_pretrained(folder).eval()
    read = Read(folder, "llama", trace.tokens.ids.tolist())
    n_token, at = len(trace.tokens), len(trace.tokens) - 1
    left = read.left[-1][at]
    scale = math.sqrt(sum(number**2 for number in left) / len(left) + whole.config.rms_norm_eps)
    row = whole.lm_head.weight[model.tokenizer.convert_tokens_to_ids("a")].tolist()
    direction = [w * gain / scale for w, gain in zip(row, whole.model.norm.weight.tolist(), strict=True)]
    expected = [0.0] * n_token
    for layer in range(tiny.ENCODER_LAYERS):
        weights, values = read.weights[layer][0].tolist(), read.values[layer]
        weight = read.output_maps[layer].weight.tolist()
        d_head = len(weight[0]) // 6
        parts = [
            sum(
                direction[d] * weights[h][at][j] * values[j][h // 3 * d_head + v] * weight[d][h * d_head + v]
                for d in range(len(weight))
                for h in range(6)
                for v in range(d_head)
            )
            for j in range(n_token)
        ]
        for below in reversed(range(layer)):
            shares = alti_by_loops(read, below, 6, 2)
            parts = [sum(parts[j] * shares[j][k] for j in range(n_token)) for k in range(n_token)]
        expected = [a + b for a, b in zip(expected, parts, strict=True)]
    found = attnviz.alti_logit(model, trace, at, "a")
    np.testing.assert_allclose(found.of_attention, expected, atol=1e-4)
    start = sum(d * x for d, x in zip(direction, read.entered[0][at], strict=True))
    assert found.direct.embedding == pytest.approx(start, abs=1e-4)


def test_alti_logit_of_a_trained_decoder(smollm2):
    trace = smollm2.trace("When Mary and John went to the store, John gave a drink to")
    found = attnviz.alti_logit(smollm2, trace, 13, " Mary", against=" John")
    assert found.passed
    assert (
        trace.tokens.labels[1 + int(found.of_attention[1:].argmax())] == "␣Mary"
    )  # the first token is where heads rest


@pytest.mark.parametrize("method", [attnviz.alti, attnviz.value_zeroing])
def test_of_trained_models(method, embedded, door_trace, smollm2):
    mixing = method(embedded, door_trace)
    assert mixing.passed and mixing.kind == "encoder"
    assert_rows_are_shares(mixing, 6, len(door_trace.tokens))
    decoder = method(smollm2, smollm2.trace("When Mary and John went to the store, John gave a drink to"))
    assert decoder.passed and decoder.kind == "decoder"
    assert_rows_are_shares(decoder, 30, 14)
    assert not np.triu(decoder.matrices, 1).any()


@pytest.mark.parametrize("method", [attnviz.alti, attnviz.value_zeroing])
def test_what_cannot_be_asked(method, tiny_model, checkpoint):
    bart = tiny_model("bart")
    with pytest.raises(attnviz.UnsupportedArchitectureError, match="from its decoder to its encoder"):
        method(bart, bart.trace("a door", "a mat"))
    model = tiny_model("gpt2")
    changed = model.trace(TEXT, interventions=[ScaledOutput(kind="decoder", layer=0, head=0, factor=0.0)])
    with pytest.raises(attnviz.SelectionError, match="without interventions"):
        method(model, changed)
    half = attnviz.load_model(str(checkpoint("gpt2")), dtype="bfloat16")
    with pytest.raises(attnviz.SelectionError, match="bfloat16"):
        method(half, half.trace(TEXT))
    given = attnviz.Trace.from_arrays(["a", "b"], weights=[[1.0, 0.0], [0.25, 0.75]])
    with pytest.raises(attnviz.SelectionError, match="made of arrays"):
        method(model, given)


@pytest.mark.parametrize("method", [attnviz.alti, attnviz.value_zeroing])
def test_progress_and_patterns(method, tiny_model):
    model, told = tiny_model("llama"), []
    mixing = method(model, model.trace(TEXT), progress=told.append)
    assert told == sorted(told) and told[-1] == 1 and len(told) >= tiny.ENCODER_LAYERS
    pattern = mixing.pattern(1)
    np.testing.assert_array_equal(pattern.weights, mixing.matrices[1])
    assert pattern.measure == mixing.method and pattern.allowed.sum() == np.tri(len(mixing.tokens)).sum()
    np.testing.assert_array_equal(mixing.pattern().weights, mixing.rollout)
    with pytest.raises(attnviz.SelectionError, match="Layer 3"):
        mixing.pattern(3)
