"""DecompX of every encoder: the parts sum to the model's own number, and explicit loops over transformers' own network give the same."""

import math

import numpy as np
import pytest
import torch
import transformers as tf

import attnviz
from attnviz.effects.input_attribution import attribute_inputs, available_methods
from attnviz.effects.outcome import ClassAnswer, Similarity, TokenAnswer, TokenState
from tests import tiny

TEXT = "the cat sat when it opened"
OUTCOMES = (TokenState(position=2), TokenState(position=3, by="length"), Similarity(text="a door opened"))
GATED = dict.fromkeys(("modernbert", "eurobert", "gte", "nomic-bert"), "such as one with a gate")
HEADS = {"esm": "through the head", "deberta": "how layer 0 makes its values"}
"""ESM adds the bias of its head, and DeBERTa that of its values, outside of their maps."""
ENCODERS = [name for name, family in tiny.TEXT_FAMILIES.items() if tuple(family.n_layers) == ("encoder",)]


def gives(model, trace, outcome, total):
    """The parts sum to this number, and are what the attribution gives."""
    found = attnviz.decompx(model, trace, outcome)
    assert found.passed and found.values.shape == (len(trace.tokens),)
    assert found.total == pytest.approx(total, rel=1e-4, abs=1e-4)
    size = float(np.abs(found.values).sum())
    assert math.fsum(found.values.tolist()) == pytest.approx(total, abs=1e-4 * size + 1e-6)
    assert np.ptp(found.values) > 0.01 * size / len(found.values)
    assert "decompx" in available_methods(model, trace, outcome)
    (attribution,) = attribute_inputs(model, trace, outcome, methods=["decompx"])
    sign = -1 if isinstance(outcome, TokenState) else 1  # what is given to a state lowers its change
    np.testing.assert_array_equal(attribution.values, sign * found.values)
    assert attribution.passed and attribution.has_sign and attribution.rest == 0
    return found


@pytest.mark.parametrize("name", ENCODERS)
def test_of_states(name, tiny_model):
    model = tiny_model(name)
    trace = model.trace(TEXT)
    if name in GATED:
        with pytest.raises(attnviz.UnsupportedArchitectureError, match=GATED[name]):
            attnviz.decompx(model, trace, OUTCOMES[0])
        assert "decompx" not in available_methods(model, trace, OUTCOMES[0])
        with pytest.raises(attnviz.SelectionError, match=GATED[name]):
            attribute_inputs(model, trace, OUTCOMES[0], methods=["decompx"])
        return
    states, other = (model.trace(text).last_hidden_state.astype(float) for text in (TEXT, "a door opened"))
    for outcome, position in zip(OUTCOMES[:2], (2, 3), strict=True):
        found = gives(model, trace, outcome, np.linalg.norm(states[position]))
        assert found.unit == "length"
    first, second = states.mean(axis=0), other.mean(axis=0)
    cosine = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
    assert gives(model, trace, OUTCOMES[2], cosine).unit == "cosine"


@pytest.mark.parametrize("name", [name for name in tiny.WITH_CLASSIFIER if name in ENCODERS])
def test_of_a_class(name, classifying):
    model, folder = classifying(name)
    trace = model.trace(TEXT)
    first, second = tiny.CLASSES[:2]
    if name in GATED:
        assert "decompx" not in available_methods(model, trace, ClassAnswer(label=first))
        return
    theirs = tiny.WITH_CLASSIFIER[name].from_pretrained(folder, attn_implementation="eager").eval()
    with torch.inference_mode():
        logits = theirs(**model.inputs(trace.tokens)).logits[0].tolist()
    assert gives(model, trace, ClassAnswer(label=first), logits[0]).unit == "logit"
    apart = gives(model, trace, ClassAnswer(label=second, against=first), logits[1] - logits[0])
    assert apart.unit == "difference of logits"


@pytest.mark.parametrize("name", [name for name in tiny.WITH_HEAD if name in ENCODERS])
def test_of_a_masked_token(name, headed):
    model, folder = headed(name)
    trace = model.trace(TEXT, masked=[2])
    if name in GATED | HEADS:
        with pytest.raises(attnviz.UnsupportedArchitectureError, match=(GATED | HEADS)[name]):
            attnviz.decompx(model, trace, answer := TokenAnswer(position=2, token="a"))
        assert "decompx" not in available_methods(model, trace, answer)
        return
    theirs = tiny.WITH_HEAD[name].from_pretrained(folder, attn_implementation="eager").eval()
    with torch.inference_mode():
        logits = theirs(**model.inputs(trace.tokens)).logits[0, 2]
    first, second = logits[model.tokenizer.convert_tokens_to_ids(["a", "b"])].tolist()
    gives(model, trace, TokenAnswer(position=2, token="a"), first)
    gives(model, trace, TokenAnswer(position=2, token="a", against="b"), first - second)


def divided(parts, bias):
    """The parts with a bias divided among them, by explicit loops."""
    products = [abs(math.fsum(b * z for b, z in zip(bias, part, strict=True))) for part in parts]
    total = math.fsum(products)
    return [
        [z + b * product / total for b, z in zip(bias, part, strict=True)]
        for part, product in zip(parts, products, strict=True)
    ]


def mapped(parts, linear):
    rows = linear.weight.tolist()
    made = [[math.fsum(w * z for w, z in zip(row, part, strict=True)) for row in rows] for part in parts]
    return divided(made, linear.bias.tolist())


def normed(parts, norm):
    whole = [math.fsum(numbers) for numbers in zip(*parts, strict=True)]
    mean = math.fsum(whole) / len(whole)
    scale = math.sqrt(math.fsum((z - mean) ** 2 for z in whole) / len(whole) + norm.eps)
    made = []
    for part in parts:
        middle = math.fsum(part) / len(part)
        gains = norm.weight.tolist()
        made.append([gain * (z - middle) / scale for gain, z in zip(gains, part, strict=True)])
    return divided(made, norm.bias.tolist())


def activated(parts, function):
    whole = [math.fsum(numbers) for numbers in zip(*parts, strict=True)]
    slopes = [function(z) / z for z in whole]
    return [[z * slope for z, slope in zip(part, slopes, strict=True)] for part in parts]


def gelu(z):
    return z * (1 + math.erf(z / math.sqrt(2))) / 2


def added(*several):
    return [[a + b for a, b in zip(*parts, strict=True)] for parts in zip(*several, strict=True)]


def attended(weights, parts, attention, output):
    """What attention makes of the parts of each token, with the biases of its values and of W_O."""
    value, weight = attention.value, output.weight.tolist()
    d_head = len(weight[0]) // len(weights)
    rows, n_token = value.weight.tolist(), len(parts)
    values = [
        [[math.fsum(w * z for w, z in zip(row, part, strict=True)) for row in rows] for part in of_token]
        for of_token in parts
    ]
    bias = [
        b + math.fsum(w * v for w, v in zip(row, value.bias.tolist(), strict=True))
        for row, b in zip(weight, output.bias.tolist(), strict=True)
    ]
    made = []
    for i in range(n_token):
        of_token = []
        for k in range(n_token):
            mixed = [
                math.fsum(weights[v // d_head][i][j] * values[j][k][v] for j in range(n_token))
                for v in range(len(rows))
            ]
            of_token.append([math.fsum(w * m for w, m in zip(row, mixed, strict=True)) for row in weight])
        made.append(divided(of_token, bias))
    return made


def start_of(network, ids):
    started = []
    embeddings = network.embeddings.register_forward_hook(
        lambda _, __, made: started.append(made[0].tolist())
    )
    with torch.inference_mode():
        weights = network(input_ids=torch.tensor([ids]), output_attentions=True).attentions
    embeddings.remove()
    [start] = started
    nothing = [0.0] * len(start[0])
    parts = [[start[i] if i == k else nothing for k in range(len(ids))] for i in range(len(ids))]
    return parts, [of_layer[0].tolist() for of_layer in weights]


def test_of_a_bert_by_loops(classifying):
    """Norms after the sums, a pooler and a classifier."""
    model, folder = classifying("bert")
    trace = model.trace("the cat")
    whole = tf.BertForSequenceClassification.from_pretrained(folder, attn_implementation="eager").eval()
    network = whole.bert
    parts, weights = start_of(network, trace.tokens.ids.tolist())
    for layer, of_layer in zip(network.encoder.layer, weights, strict=True):
        made = attended(of_layer, parts, layer.attention.self, layer.attention.output.dense)
        for i, (entering, of_attention) in enumerate(zip(parts, made, strict=True)):
            middle = normed(added(entering, of_attention), layer.attention.output.LayerNorm)
            inner = activated(mapped(middle, layer.intermediate.dense), gelu)
            parts[i] = normed(added(middle, mapped(inner, layer.output.dense)), layer.output.LayerNorm)
    pooled = activated(mapped(parts[0], network.pooler.dense), math.tanh)
    logits = mapped(pooled, whole.classifier)
    found = attnviz.decompx(model, trace, ClassAnswer(label=tiny.CLASSES[1]))
    np.testing.assert_allclose(found.values, [part[1] for part in logits], atol=1e-5)
    apart = attnviz.decompx(model, trace, ClassAnswer(label=tiny.CLASSES[1], against=tiny.CLASSES[0]))
    np.testing.assert_allclose(apart.values, [part[1] - part[0] for part in logits], atol=1e-5)


def test_of_an_esm_by_loops(headed):
    """Norms before the sums, and one after the last layer."""
    model, folder = headed("esm")
    trace = model.trace("the cat")
    network = tf.EsmForMaskedLM.from_pretrained(folder, attn_implementation="eager").eval().esm
    parts, weights = start_of(network, trace.tokens.ids.tolist())
    for layer, of_layer in zip(network.encoder.layer, weights, strict=True):
        read = [normed(of_token, layer.attention.LayerNorm) for of_token in parts]
        made = attended(of_layer, read, layer.attention.self, layer.attention.output.dense)
        for i, (entering, of_attention) in enumerate(zip(parts, made, strict=True)):
            middle = added(entering, of_attention)
            inner = mapped(normed(middle, layer.LayerNorm), layer.intermediate.dense)
            parts[i] = added(middle, mapped(activated(inner, gelu), layer.output.dense))
    last = normed(parts[2], network.encoder.emb_layer_norm_after)
    state = trace.last_hidden_state[2].astype(float)
    expected = [
        math.fsum(z * s for z, s in zip(part, state, strict=True)) / np.linalg.norm(state) for part in last
    ]
    found = attnviz.decompx(model, trace, TokenState(position=2))
    np.testing.assert_allclose(found.values, expected, atol=1e-5)


def test_of_the_bundled_encoder(embedded, door_trace):
    """Of all tokens, "door" gives the similarity with a sentence about a door most."""
    for position in range(len(door_trace.tokens)):
        assert attnviz.decompx(embedded, door_trace, TokenState(position=position)).passed
    found = attnviz.decompx(embedded, door_trace, Similarity(text="The door swung open while I looked on."))
    assert found.passed and door_trace.tokens.labels[int(found.values.argmax())] == "door"


def test_what_cannot_be_asked(tiny_model, headed, embedded, checkpoint):
    model, told = tiny_model("bert"), []
    trace = model.trace(TEXT)
    attnviz.decompx(model, trace, STATE := TokenState(position=1), progress=told.append)
    assert told == sorted(told) and told[-1] == 1 and len(told) > tiny.ENCODER_LAYERS
    with pytest.raises(attnviz.SelectionError, match="at most 256 tokens, and the text has 302"):
        attnviz.decompx(embedded, embedded.trace("door " * 300), STATE)
    decoder = tiny_model("gpt2")
    with pytest.raises(attnviz.SelectionError, match="it is defined for encoders"):
        attnviz.decompx(decoder, decoder.trace(TEXT), STATE)
    masked, _ = headed("bert")
    with pytest.raises(attnviz.SelectionError, match="a rank is no sum"):
        attnviz.decompx(masked, masked.trace(TEXT), TokenAnswer(position=1, token="a", by="rank"))
    half = attnviz.load_model(str(checkpoint("bert")), dtype="bfloat16")
    with pytest.raises(attnviz.SelectionError, match="bfloat16"):
        attnviz.decompx(half, half.trace(TEXT), STATE)
    assert "decompx" not in available_methods(half, half.trace(TEXT), STATE)
    with pytest.raises(attnviz.SelectionError, match="no function of one's own"):
        attribute_inputs(model, trace, lambda states: states[:, 0, 0], methods=["decompx"])
