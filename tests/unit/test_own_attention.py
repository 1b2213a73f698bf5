"""Attention that families compute in classes of their own: their scores by plain numpy, and what becomes of the classes.

Against transformers' own forward all of them are compared in tests/parity.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import AutoModel

import attnviz
from attnviz.errors import ModelNotAvailableError, TextTooLongError
from attnviz.model import own_attention
from tests import tiny

TEXT = "I was watching the door when it opened"
AT = (1, 1)  # layer and head
D_HEAD = tiny.D_HEAD
OF_HEAD = slice(D_HEAD, 2 * D_HEAD)  # the columns of head 1


def bucket(distance: int, n_bucket: int, most: int) -> int:
    """DeBERTa's bucket of a distance: near ones each have their own, far ones share by their logarithm.

    Source: He et al. 2021, DeBERTaV3 (arXiv:2111.09543) took it from T5; microsoft/DeBERTa, ``make_log_bucket_position``.
    """
    middle = n_bucket // 2
    if abs(distance) <= middle:
        return distance
    far = np.log(abs(distance) / middle) / np.log((most - 1) / middle) * (middle - 1)
    return int(np.sign(distance)) * (int(np.ceil(far)) + middle)


def linear(module, vectors: np.ndarray) -> np.ndarray:
    made = vectors @ module.weight.double().numpy().T
    return made if module.bias is None else made + module.bias.double().numpy()


def read_by_layer(network, ids: np.ndarray, layer: int) -> np.ndarray:
    """What a layer reads, by transformers alone."""
    with torch.inference_mode():
        states = network(input_ids=torch.tensor(ids)[None], output_hidden_states=True).hidden_states
    return states[layer][0].double().numpy()


@pytest.fixture(scope="module")
def theirs(headed):
    """By transformers alone, a model whose biases are drawn too."""

    def load(name):
        return AutoModel.from_pretrained(headed(name)[1], attn_implementation="eager").eval()

    return load


def test_disentangled_scores_of_deberta_v2(headed, theirs):
    """c2p + p2c, both by the distance i - j, all divided by sqrt(3 d)."""
    network, trace = theirs("deberta-v2"), headed("deberta-v2")[0].trace(TEXT)
    module, encoder = network.encoder.layer[AT[0]].attention.self, network.encoder
    hidden = read_by_layer(network, trace.tokens.ids, AT[0])
    table = encoder.rel_embeddings.weight.double()
    table = (
        torch.nn.functional.layer_norm(
            table, table.shape[-1:], encoder.LayerNorm.weight.double(), encoder.LayerNorm.bias.double(), 1e-7
        )
        .detach()
        .numpy()
    )
    with torch.inference_mode():
        query, key = (
            linear(projection, hidden)[:, OF_HEAD] for projection in (module.query_proj, module.key_proj)
        )
        query_of, key_of = (
            linear(projection, table)[:, OF_HEAD] for projection in (module.query_proj, module.key_proj)
        )
    n = len(query)
    expected = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            row = min(max(bucket(i - j, 4, tiny.LIMIT) + 4, 0), 7)
            expected[i, j] = query[i] @ key[j] + query[i] @ key_of[row] + key[j] @ query_of[row]
    np.testing.assert_allclose(trace.scores(*AT), expected / np.sqrt(3 * D_HEAD), atol=1e-4)  # float32
    assert not trace.head(*AT).bias_is_of_distance


def test_disentangled_scores_of_deberta(headed, theirs):
    network, trace = theirs("deberta"), headed("deberta")[0].trace(TEXT)
    module = network.encoder.layer[AT[0]].attention.self
    hidden = read_by_layer(network, trace.tokens.ids, AT[0])
    table = network.encoder.rel_embeddings.weight.detach().double().numpy()
    with torch.inference_mode():
        made = linear(module.in_proj, hidden).reshape(len(hidden), tiny.HEADS, 3, D_HEAD)[:, AT[1]]
        query = made[:, 0] + module.q_bias.double().numpy()[OF_HEAD]
        key = made[:, 1]
        key_of, query_of = (
            linear(projection, table)[:, OF_HEAD] for projection in (module.pos_proj, module.pos_q_proj)
        )
    n = len(query)
    expected = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            row = tiny.LIMIT + i - j
            expected[i, j] = query[i] @ key[j] + query[i] @ key_of[row] + key[j] @ query_of[row]
    np.testing.assert_allclose(trace.scores(*AT), expected / np.sqrt(3 * D_HEAD), atol=1e-4)  # float32


def test_mpnet_s_bias_is_t5_s(headed, theirs):
    network, trace = theirs("mpnet"), headed("mpnet")[0].trace("I was watching")
    table = network.encoder.relative_attention_bias.weight.detach().numpy()[:, AT[1]]
    bias = trace.attention(AT[0]).bias[AT[1]]
    n = len(bias)
    for i in range(n):
        for j in range(
            n
        ):  # 32 buckets, half of them for keys that come later; up to 8 tokens away each its own
            assert abs(i - j) < 8 or pytest.fail("a longer text needs the formula of far buckets")
            assert bias[i, j] == table[abs(i - j) + 16 * (j > i)]
    assert trace.head(*AT).bias_is_of_distance


@pytest.mark.parametrize("name", ["mpnet", "big_bird", "deberta", "deberta-v2"])
class TestClasses:
    def test_a_reference_computes_with_the_family_s_own_forward(self, name, tiny_model):
        model = tiny_model(name)
        ours = [module for module in model.network.modules() if _base_is_known(module)]
        theirs = [module for module in model.reference.modules() if _base_is_known(module)]
        assert len(ours) == len(theirs) == tiny.ENCODER_LAYERS
        for own, other in zip(ours, theirs, strict=True):
            assert type(own) is not type(other)
            assert type(own).__bases__ == type(other).__bases__
            assert all(
                left is right for left, right in zip(own.parameters(), other.parameters(), strict=True)
            )

    def test_verification_compares_scores_with_what_the_softmax_gets(self, name, tiny_model):
        model = tiny_model(name)
        trace = model.trace(TEXT)
        assert attnviz.verify(model, trace).check("scores").passed
        call = trace.attention(1)
        shifted = (
            np.zeros((1, *trace.weights(1, 1).shape), dtype=np.float32) + 0.01
        )  # which changes no weight
        bias = shifted if call.bias is None else call.bias + shifted
        failed = {check.name for check in attnviz.verify(model, _with_bias(trace, bias)).failed}
        assert "scores" in failed
        assert "attention weights" not in failed


def _base_is_known(module):
    return own_attention._known(type(module).__bases__[0]) is not None


def _with_bias(trace, bias):
    return trace.with_layer(replace(trace.attention(1), bias=bias))


def test_deberta_in_half_precision_is_refused_in_a_sentence(checkpoint):
    """transformers' own forward raises "expected scalar type Float but found BFloat16"."""
    with pytest.raises(ModelNotAvailableError, match=r"DeBERTa .* bfloat16, .*Load it in float32"):
        attnviz.load_model(str(checkpoint("deberta")), dtype="bfloat16")


def test_a_big_bird_reads_texts_to_which_it_attends_in_full(headed, theirs):
    """Up to (5 + 2 random blocks) x 3 tokens; beyond, transformers attends in blocks."""
    model, _ = headed("big_bird")
    assert model.max_tokens == 21
    with pytest.raises(TextTooLongError):
        model.trace("a " * 20)
    ids = model.tokenize("a door opened it " * 4 + "a cat sat").ids
    assert len(ids) == 21
    own = theirs("big_bird")
    with torch.inference_mode():
        full = own(input_ids=torch.tensor(ids)[None]).last_hidden_state[0]
        longer = torch.tensor([[*ids, *ids[:3]]])
        in_blocks = theirs("big_bird")(input_ids=longer).last_hidden_state[0]
        in_full = own(input_ids=longer).last_hidden_state[0]  # it stays full once it was
    np.testing.assert_allclose(
        model.trace_tokens(model.tokenize("a door opened it " * 4 + "a cat sat")).last_hidden_state,
        full,
        atol=1e-4,
    )
    assert not torch.allclose(in_blocks, in_full, atol=1e-2)
