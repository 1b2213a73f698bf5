"""Scores split by the sources of query and key: they sum to the model's own, and each part is what autograd gives in float64.

The truth is transformers' own model in float64, in which the input of every linear map below the layer is detached, so that
only the residual stream is left, and every norm is multiplied out with its scale detached. What is added to an embedding, to the
output of W_O or of the MLP then reaches the layer's queries and keys on the direct path alone.
"""

import csv
import io
import sys

import numpy as np
import pytest
import torch
import transformers as tf
from torch import nn
from transformers.pytorch_utils import Conv1D

import attnviz
from attnviz.effects.score_sources import score_sources
from attnviz.model.interventions import ScaledOutput
from tests import tiny
from tests.parity.test_logit_attribution import frozen

TEXT = "the cat sat when it opened"
LAYER, HEAD, QUERY, KEY = 2, 1, 4, 2

_CROSS = {name for name, family in tiny.TEXT_FAMILIES.items() if family.is_encoder_decoder}
REFUSED = {"bitnet": "how layer 0", "laguna": "how layer 0", "olmo": "the queries of layer 2"}
"""BitNet normalises the heads' outputs before W_O, Laguna gates them; the norms of OLMo have no weights."""
READ = [name for name in tiny.TEXT_FAMILIES if name not in _CROSS | REFUSED.keys()]

_LLAMA = ("layers.{}", "self_attn.o_proj", "mlp.down_proj", {"token": "embed_tokens"})
_BERT = {
    "token": "embeddings.word_embeddings",
    "segment": "embeddings.token_type_embeddings",
    "position": "embeddings.position_embeddings",
}
PLACES = {
    "bert": ("encoder.layer.{}", "attention.output.dense", "output.dense", _BERT),
    "gpt2": ("h.{}", "attn.c_proj", "mlp.c_proj", {"token": "wte", "position": "wpe"}),
    "gpt-neox": ("layers.{}", "attention.dense", "mlp.dense_4h_to_h", {"token": "embed_in"}),
    **dict.fromkeys(("llama", "gemma3", "qwen3"), _LLAMA),
}
"""The layer, W_O, the last linear map of the MLP and the embeddings, written down here."""


@pytest.mark.parametrize("name", READ)
def test_parts_sum_to_the_model_s_own_product(name, tiny_model):
    model = tiny_model(name)
    trace = model.trace(TEXT)
    last = len(trace.tokens) - 1
    for layer, head, query, key in [(0, 0, 3, 1), (1, 1, last, last), (2, 1, last, 0), (2, 0, 2, 1)]:
        sources = score_sources(model, trace, layer, head, query, key)
        of_head = trace.head(layer, head)
        own = of_head.scale * float(
            of_head.query[query].astype(np.float64) @ of_head.key[key].astype(np.float64)
        )
        assert sources.product == pytest.approx(own, rel=1e-12)
        assert sources.summed == pytest.approx(own, abs=1e-5 * sources.size)
        assert sources.passed
        header, *lines = csv.reader(io.StringIO(sources.csv().decode("utf-8-sig")))
        table = np.array([line[1:] for line in lines], dtype=float)
        np.testing.assert_allclose(table[:-1, :-1], sources.parts, rtol=1e-12)
        np.testing.assert_allclose(table[:, -1], table[:, :-1].sum(axis=1), atol=1e-9 * sources.size)
        np.testing.assert_allclose(table[-1], table[:-1].sum(axis=0), atol=1e-9 * sources.size)
        assert header[1:] == [*(line[0] for line in lines[:-1]), "sum"] and lines[-1][0] == "sum"
        made = sources.query_vectors.sum(axis=0), sources.key_vectors.sum(axis=0)
        for summed, vector in zip(made, (of_head.query[query], of_head.key[key]), strict=True):
            np.testing.assert_allclose(summed, vector, atol=1e-4 * np.abs(vector).max())
        n_below = sum(1 + trace.n_heads(below) for below in range(layer))
        assert len(sources.sources) - n_below in (2, 3, 4)  # an embedding or its tables, and the biases
        score = (
            sources.product if of_head.softcap is None else of_head.softcap * np.tanh(own / of_head.softcap)
        )
        if sources.allowed:
            assert score + sources.bias == pytest.approx(
                float(trace.scores(layer, head)[query, key]), abs=1e-5 * sources.size
            )


class Truth:
    """Queries and keys of one layer of transformers' own model, and what each part adds to them."""

    def __init__(self, network: nn.Module, name: str, inputs, monkeypatch) -> None:
        layer, w_o, mlp, embeddings = PLACES[name]
        width = network.config.hidden_size
        self.zeros: dict[str, torch.Tensor] = {}
        self.made: dict[str, torch.Tensor] = {}  # [token, d_model], or the input of W_O
        self.weights: dict[int, torch.Tensor] = {}  # W_O [head x d_value, d_model]
        above = f"{layer.format(LAYER)}."
        for path, module in network.named_modules():
            if isinstance(module, nn.Linear | Conv1D) and not path.startswith(above):
                module.register_forward_pre_hook(lambda _, args: tuple(arg.detach() for arg in args))
            elif isinstance(weight := getattr(module, "weight", None), torch.Tensor) and weight.ndim == 1:
                module.register_forward_hook(frozen)
        for number in range(LAYER):
            joining = network.get_submodule(f"{layer.format(number)}.{w_o}")
            self.weights[number] = (
                joining.weight.detach().mT if isinstance(joining, nn.Linear) else joining.weight
            )
            self._add(joining, f"attention {number}", width, keeps_input=True)
            self._add(network.get_submodule(f"{layer.format(number)}.{mlp}"), f"mlp {number}", width)
        for table, path in embeddings.items():
            self._add(network.get_submodule(path), table, width)
        modeling = sys.modules[type(network).__module__]
        eager, calls = modeling.eager_attention_forward, []

        def listen(module, query, key, *others, **named):
            calls.append((query[0], key[0]))
            return eager(module, query, key, *others, **named)

        monkeypatch.setattr(modeling, "eager_attention_forward", listen)
        network(**inputs)
        self.query, self.key = calls[LAYER]

    def _add(self, module: nn.Module, name: str, width: int, *, keeps_input: bool = False) -> None:
        self.zeros[name] = torch.zeros(width, dtype=torch.float64, requires_grad=True)

        def add(_, args, made):
            self.made[name] = (
                (args[0] if keeps_input else made)
                .detach()
                .reshape(-1, (args[0] if keeps_input else made).shape[-1])
            )
            return made + self.zeros[name]

        module.register_forward_hook(add)

    def parts(self, vector: torch.Tensor, at: int, n_head: int) -> dict[str, np.ndarray]:
        """What each part makes of one vector [d_head]."""
        rows = [
            torch.autograd.grad(number, list(self.zeros.values()), retain_graph=True) for number in vector
        ]
        slopes = {name: torch.stack([row[number] for row in rows]) for number, name in enumerate(self.zeros)}
        by_part = {}
        for name, slope in slopes.items():
            made = self.made[name][at]
            if not name.startswith("attention"):
                by_part[name] = (slope @ made).numpy()
                continue
            number = int(name.split()[1])
            weight = self.weights[number].reshape(n_head, -1, slope.shape[1])
            outputs = made.reshape(n_head, -1)
            for head in range(n_head):
                by_part[f"{number}.{head}"] = (slope @ (outputs[head] @ weight[head])).detach().numpy()
        return by_part


@pytest.mark.parametrize("name", PLACES)
def test_parts_are_those_on_the_direct_path(name, tiny_model, checkpoint, monkeypatch):
    model = tiny_model(name)
    trace = model.trace(TEXT)
    sources = score_sources(model, trace, LAYER, HEAD, QUERY, KEY)
    network = tf.AutoModel.from_pretrained(checkpoint(name), attn_implementation="eager").eval()
    network = network.double().requires_grad_(False)
    truth = Truth(network, name, model.inputs(trace.tokens), monkeypatch)
    n_head = len(truth.query)
    shared = HEAD * len(truth.key) // n_head
    expected = (
        truth.parts(truth.query[HEAD, QUERY], QUERY, n_head),
        truth.parts(truth.key[shared, KEY], KEY, n_head),
    )
    n_compared = 0
    for number, source in enumerate(sources.sources):
        if source.name == "biases" or (
            source.name == "mlp" and name == "gemma3"
        ):  # which normalises what its MLP gives
            continue
        part = {"head": f"{source.layer}.{source.head}", "mlp": f"mlp {source.layer}"}.get(
            source.name, source.name
        )
        for vectors, own in zip((sources.query_vectors, sources.key_vectors), expected, strict=True):
            np.testing.assert_allclose(vectors[number], own[part], atol=1e-4 * np.abs(vectors).max())
            n_compared += 1
    assert n_compared >= 2 * (LAYER * n_head + 1)
    if name == "llama":  # all parts are compared: without a bias anywhere they are the whole score
        whole = sum(expected[0].values()) @ sum(expected[1].values())
        assert sources.summed == pytest.approx(float(sources.scale * whole), rel=1e-4)


def test_heads_of_a_layer_together_are_their_sum(tiny_model):
    model = tiny_model("llama")
    sources = score_sources(model, model.trace(TEXT), LAYER, HEAD, QUERY, KEY)
    joined = sources.by_layer()
    assert [source.short for source in joined.sources] == [
        "token",
        "L0 heads",
        "L0 MLP",
        "L1 heads",
        "L1 MLP",
        "biases",
    ]
    rows = [
        number for number, source in enumerate(sources.sources) if (source.name, source.layer) == ("head", 1)
    ]
    assert len(rows) == 6
    np.testing.assert_allclose(joined.parts[3, 1], sources.parts[np.ix_(rows, range(1, 7))].sum(), rtol=1e-9)
    assert joined.summed == pytest.approx(sources.summed, rel=1e-9)


def test_ranked_and_as_a_table(tiny_model):
    model = tiny_model("gpt2")
    sources = score_sources(model, model.trace(TEXT), 1, 0, 3, 1)
    ranked = sources.ranked()
    assert len(ranked) == sources.parts.size
    sizes = [abs(part) for *_, part in ranked]
    assert sizes == sorted(sizes, reverse=True)
    of_query, of_key, part = ranked[0]
    assert sources.parts[sources.sources.index(of_query), sources.sources.index(of_key)] == part
    header, *lines = sources.csv().decode("utf-8-sig").splitlines()
    assert header.split(",")[1:] == ["token", "position", "L0 H0", "L0 H1", "L0 MLP", "biases", "sum"]
    last = lines[-1].split(",")
    assert last[0] == "sum"
    assert float(last[-1]) == pytest.approx(sources.product, abs=1e-5 * sources.size)


def test_a_rotation_is_part_of_the_form(tiny_model):
    """The same token at two places has one embedding, and two different keys."""
    model = tiny_model("llama")
    trace = model.trace("a b a b")
    first, second = (score_sources(model, trace, 0, 0, 6, key) for key in (0, 4))
    assert trace.tokens.ids[0] == trace.tokens.ids[4]
    lengths = [np.linalg.norm(scored.key_vectors[0]) for scored in (first, second)]
    assert lengths[0] == pytest.approx(lengths[1], rel=1e-5)
    assert np.abs(first.key_vectors[0] - second.key_vectors[0]).max() > 0.01


@pytest.mark.parametrize("name", REFUSED)
def test_a_family_that_cannot_be_taken_apart_is_refused(name, tiny_model):
    model = tiny_model(name)
    with pytest.raises(attnviz.UnsupportedArchitectureError, match=REFUSED[name]):
        score_sources(model, model.trace(TEXT), LAYER, HEAD, QUERY, KEY)


def test_what_cannot_be_asked(tiny_model, checkpoint):
    model = tiny_model("gpt2")
    trace = model.trace(TEXT)
    with pytest.raises(attnviz.SelectionError, match="Query token 99"):
        score_sources(model, trace, 1, 0, 99, 0)
    with pytest.raises(attnviz.SelectionError, match="Key token 99"):
        score_sources(model, trace, 1, 0, 0, 99)
    with pytest.raises(attnviz.SelectionError, match="Layer 9"):
        score_sources(model, trace, 9, 0, 0, 0)
    changed = model.trace(TEXT, interventions=[ScaledOutput(kind="decoder", layer=0, head=0, factor=0.0)])
    with pytest.raises(attnviz.SelectionError, match="without interventions"):
        score_sources(model, changed, 1, 0, 1, 0)
    half = attnviz.load_model(str(checkpoint("gpt2")), dtype="bfloat16")
    with pytest.raises(attnviz.SelectionError, match="bfloat16"):
        score_sources(half, half.trace(TEXT), 1, 0, 1, 0)
    without_weights = tiny_model("olmo")
    with pytest.raises(attnviz.UnsupportedArchitectureError, match="the queries of layer 1"):
        score_sources(without_weights, without_weights.trace(TEXT), 1, 0, 1, 0)
    across = tiny_model("bart")
    with pytest.raises(attnviz.UnsupportedArchitectureError, match="from its decoder to its encoder"):
        score_sources(across, across.trace("a door", "a mat"), 1, 0, 1, 0)


def test_of_a_trained_encoder(embedded, door_trace):
    """MiniLM: 6 layers, 12 heads, d_model 384, norms after each part; three embeddings are a source each."""
    sources = score_sources(embedded, door_trace, 3, 1, 7, 5)
    assert sources.passed
    assert [source.name for source in sources.sources[:3]] == ["token", "segment", "position"]
