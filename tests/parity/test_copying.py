"""Copying scores, against the eigenvalues of the whole matrix from the vocabulary to itself, in float64.

The matrices are read from transformers' own model by their names, which are written down here.
"""

import numpy as np
import pytest
import torch

import attnviz
from attnviz.effects import copying
from attnviz.effects.copying import copying_scores
from tests import tiny


def linear(module) -> np.ndarray:
    """Weight [d_in, d_out] of a linear map."""
    weight = module.weight.detach().double().numpy()
    return weight if type(module).__name__ == "Conv1D" else weight.T


def gain(norm, width: int, *, plus: float = 0.0) -> np.ndarray:
    """A norm as a matrix, without its division."""
    scaled = np.diag(norm.weight.detach().double().numpy() + plus)
    is_centred = "RMS" not in type(norm).__name__
    return (np.eye(width) - is_centred / width) @ scaled


def llama(network, plus=0.0):
    width, n_head, n_kv = network.config.hidden_size, 6, 2
    for layer in network.layers:
        before = gain(layer.input_layernorm, width, plus=plus)
        value, joining = linear(layer.self_attn.v_proj), linear(layer.self_attn.o_proj)
        after = np.eye(width)
        if hasattr(layer, "post_feedforward_layernorm"):  # Gemma 3: on what is added
            after = gain(layer.post_attention_layernorm, width, plus=plus)
        for head in range(n_head):
            of_head = value[:, 10 * (head * n_kv // n_head) :][:, :10]
            yield before @ of_head @ joining[10 * head : 10 * (head + 1)] @ after


def olmo2(network):
    for layer in network.layers:
        value, joining = linear(layer.self_attn.v_proj), linear(layer.self_attn.o_proj)
        after = gain(layer.post_attention_layernorm, 20)
        for head in range(2):
            part = slice(10 * head, 10 * (head + 1))
            yield value[:, part] @ joining[part] @ after


def gpt2(network):
    for layer in network.h:
        before, value = gain(layer.ln_1, 10), linear(layer.attn.c_attn)[:, 20:]
        for head in range(2):
            part = slice(5 * head, 5 * (head + 1))
            yield before @ value[:, part] @ linear(layer.attn.c_proj)[part]


def gpt_neox(network):
    for layer in network.layers:
        before = gain(layer.input_layernorm, 20)
        of_heads = linear(layer.attention.query_key_value).reshape(20, 2, 3, 10)
        for head in range(2):
            yield before @ of_heads[:, head, 2] @ linear(layer.attention.dense)[10 * head : 10 * (head + 1)]


CIRCUITS = {
    "llama": (llama, "embed_tokens", "lm_head", "norm", 0.0),
    "gemma3": (lambda network: llama(network, plus=1.0), "embed_tokens", "lm_head", "norm", 1.0),
    "gemma2": (lambda network: llama(network, plus=1.0), "embed_tokens", "lm_head", "norm", 1.0),
    "olmo2": (olmo2, "embed_tokens", "lm_head", "norm", 0.0),
    "gpt2": (gpt2, "wte", "lm_head", "ln_f", 0.0),
    "gpt-neox": (gpt_neox, "embed_in", "lm_head", "final_layer_norm", 0.0),
}


@pytest.mark.parametrize("name", CIRCUITS)
def test_is_that_of_the_whole_matrix(name, headed):
    model, folder = headed(name)
    scores = copying_scores(model)
    whole = tiny.WITH_HEAD[name].from_pretrained(folder).eval()
    circuits, embedding, head, last, plus = CIRCUITS[name]
    network = whole.base_model
    rows = network.get_submodule(embedding).weight.detach().double().numpy()
    out = gain(network.get_submodule(last), rows.shape[1], plus=plus) @ linear(whole.get_submodule(head))
    expected = []
    for circuit in circuits(network):
        values = np.linalg.eigvals(rows @ circuit @ out)  # [vocabulary, vocabulary]
        expected.append(values.sum().real / np.abs(values).sum())
    assert scores.shape == (3, len(expected) // 3)
    np.testing.assert_allclose(scores.ravel(), expected, atol=1e-4)
    assert np.ptp(scores) > 0.1


def test_is_1_where_a_head_hands_on_what_it_reads(headed, tmp_path):
    """With W_V W_O a projection and the unembedding the embedding, every eigenvalue is positive; and negative with the sign of W_O.

    Heads 0 to 2 share the first values, heads 3 to 5 the second.
    """
    _, folder = headed("llama")
    whole = tiny.WITH_HEAD["llama"].from_pretrained(folder)
    signs = torch.tensor([1, -1, -1, -1, 1, -1])
    with torch.no_grad():
        whole.lm_head.weight.copy_(whole.model.embed_tokens.weight)
        for layer in whole.model.layers:
            layer.input_layernorm.weight.fill_(1)
            first, second = layer.self_attn.v_proj.weight.split(10)
            parts = [sign * part for sign, part in zip(signs, [first] * 3 + [second] * 3, strict=True)]
            layer.self_attn.o_proj.weight.copy_(torch.cat(parts).mT)
        whole.model.norm.weight.fill_(1)
    whole.save_pretrained(tmp_path)
    tiny.tokenizer("bytes").save_pretrained(tmp_path)
    scores = copying_scores(attnviz.load_model(str(tmp_path)))
    np.testing.assert_allclose(scores, np.tile(signs.numpy(), (3, 1)), atol=1e-4)


@pytest.mark.parametrize(("name", "reason"), [("bert", "is not linear"), ("modernbert", "is not linear")])
def test_a_head_that_is_not_linear_is_refused(name, reason, headed):
    with pytest.raises(attnviz.UnsupportedArchitectureError, match=reason):
        copying_scores(headed(name)[0])


def test_a_model_without_a_language_head_is_refused(tiny_model):
    with pytest.raises(attnviz.UnsupportedArchitectureError, match="no language head"):
        copying_scores(tiny_model("gpt2"))


def test_an_embedding_that_a_matrix_widens_is_refused(headed):
    with pytest.raises(attnviz.UnsupportedArchitectureError, match="its embeddings"):
        copying_scores(headed("opt")[0])


@pytest.mark.parametrize("size", [1e-3, 1.0, 50.0])
def test_a_vector_is_a_multiple_of_another_within_a_thousandth_of_its_length(size):
    of = np.array([3.0, 4.0])
    across = np.array([4.0, -3.0])  # as long, and at a right angle
    for apart, is_multiple in ((0.0, True), (0.0009, True), (0.0011, False)):
        assert copying._is_multiple(size * (of + apart * across), of) is is_multiple
        assert not copying._is_multiple(-size * (of + apart * across), of)
    assert not copying._is_multiple(of, np.zeros(2))
    assert not copying._is_multiple(np.array([np.nan, 4.0]), of)


def test_tells_how_far_it_is(headed):
    told = []
    copying_scores(headed("gpt2")[0], progress=told.append)
    assert told
    assert told == sorted(told)
    assert told[-1] == 1
