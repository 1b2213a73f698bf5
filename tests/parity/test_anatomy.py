"""Every model family: what a layer's attention is made of gives, multiplied out, what passed through it."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

import attnviz
from attnviz.model.anatomy import _parts, _token_scale, anatomy
from attnviz.model.normalisation import is_norm, normalisation_of
from tests import tiny, tiny_tokenizers
from tests.tiny import SECOND_TEXT, TEXT, trace_of

TOLERANCE = 1e-4  # float32: sums of up to 30 products of values of about 10; a wrong head or axis is off by 1

# Families whose queries and keys are the linear map's own. The others turn them by their positions after the map
# (rotary), scale queries after it (OPT), or make them of fewer numbers (DeepSeek).
_WITH_SEGMENTS = {"token", "position", "segment"}
PLAIN = {
    **{name: _WITH_SEGMENTS for name in ("bert", "electra", "albert", "ernie", "big_bird")},
    **{name: _WITH_SEGMENTS for name in ("roberta", "xlm-roberta", "camembert")},
    **{name: {"token", "position"} for name in ("mpnet", "distilbert", "gpt2", "gpt-bigcode", "biogpt")},
    **{name: {"token", "position"} for name in ("bart", "marian", "blenderbot", "mbart", "pegasus")},
    "m2m-100": {"token"},  # its positions are computed, and looked up nowhere
    **{name: {"token"} for name in ("t5", "mt5", "umt5")},
    **{name: {"token"} for name in ("deberta", "deberta-v2")},
}
MISSING = {"opt": {"query"}, "deepseek-v3": {"query", "key", "value"}}
INGREDIENTS = PLAIN | {name: {"token", "segment"} for name in ("gte", "jina-embeddings-v3", "nomic-bert")}


@pytest.mark.parametrize("family", tiny.TEXT_FAMILIES.values(), ids=list(tiny.TEXT_FAMILIES))
def test_a_layer_multiplied_out(tiny_model, family):
    model = tiny_model(family.name)
    trace = trace_of(model, family)
    for kind in trace.kinds:
        for layer in range(trace.n_layers(kind)):
            of_layer = anatomy(model, trace, layer, kind)
            assert (of_layer.kind, of_layer.layer) == (kind, layer)
            missing = {"query", "key", "value"} - of_layer.projections.keys()
            is_plain = family.name in PLAIN or kind == "cross"  # no position turns what is read across
            assert missing == (set() if is_plain else MISSING.get(family.name, {"query", "key"}))
            given = {"query": of_layer.hidden, "key": of_layer.sources, "value": of_layer.sources}
            for part, linear in of_layer.projections.items():
                vectors = getattr(trace.attention(layer, kind), part)
                for head, expected in enumerate(vectors):
                    made = given[part] @ linear.weight[head]
                    made = made if linear.bias is None else made + linear.bias[head]
                    np.testing.assert_allclose(made, expected, atol=TOLERANCE)
            if family.name in (
                "bitnet",
                "laguna",
            ):  # which normalise the heads' outputs before W_O, or gate them
                assert of_layer.output is of_layer.output_weight is of_layer.output_bias is None
                continue
            outputs = trace.outputs(layer, kind)
            summed = np.einsum("hqv,hvd->qd", outputs, of_layer.output_weight)
            if of_layer.output_bias is not None:
                summed = summed + of_layer.output_bias
            np.testing.assert_allclose(summed, of_layer.output, atol=TOLERANCE)


@pytest.mark.parametrize("family", tiny.TEXT_FAMILIES.values(), ids=list(tiny.TEXT_FAMILIES))
def test_what_a_token_is_looked_up_by(tiny_model, family):
    model = tiny_model(family.name)
    trace = trace_of(model, family)
    of_layer = anatomy(model, trace, 0)
    expected = INGREDIENTS.get(family.name, {"token"})
    assert of_layer.ingredients.keys() >= {"token"}
    assert set(of_layer.ingredients) == expected


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
@pytest.mark.parametrize("name", ["bart", "marian", "t5"])
def test_two_texts_of_one_length_keep_their_own_vectors(tiny_model, name, kind):
    model = tiny_model(name)
    trace = model.trace("a door opened", "a mat opened")
    assert len(trace.tokens) == len(trace.target_tokens)
    of_layer = anatomy(model, trace, 0, kind)
    assert set(of_layer.ingredients) == PLAIN[name]
    summed = sum(of_layer.ingredients.values())
    ids = (trace.tokens if kind == "encoder" else trace.target_tokens).ids
    own = model.network.get_input_embeddings().weight.detach().numpy()[ids]
    np.testing.assert_allclose(of_layer.ingredients["token"], own, atol=TOLERANCE)
    if name == "marian":  # whose first layer reads the sum as it is
        np.testing.assert_allclose(summed, of_layer.hidden, atol=TOLERANCE)


@pytest.mark.parametrize(("name", "expected"), [("gpt2", {"token", "position"}), ("t5", {"token"})])
def test_a_text_of_one_token(tiny_model, name, expected):
    model = tiny_model(name)
    trace = model.trace("a")
    of_layer = anatomy(model, trace, 0, "decoder")
    assert len(trace.query_tokens("decoder")) == 1
    assert set(of_layer.ingredients) == expected


def test_tokens_that_are_scaled_once_they_are_looked_up(tmp_path):
    """As the Marian models on the Hub do."""
    family = replace(tiny.TEXT_FAMILIES["marian"], config=lambda: _marian(scale_embedding=True))
    model = attnviz.load_model(str(tiny.save(family, tmp_path)))
    of_layer = anatomy(model, model.trace(TEXT, SECOND_TEXT), 0, "encoder")
    np.testing.assert_allclose(sum(of_layer.ingredients.values()), of_layer.hidden, atol=TOLERANCE)


def _marian(**changed):
    config = tiny.TEXT_FAMILIES["marian"].config()
    config.update(changed)
    return config


_LLAMA_LIKE = (
    *(
        "llama",
        "bitnet",
        "deepseek-v3",
        "eurobert",
        "gemma",
        "gemma2",
        "gemma3",
        "glm4",
        "granite",
        "helium",
        "laguna",
        "mistral",
        "mixtral",
    ),
    *("phi3", "qwen2", "qwen3", "qwen3-moe", "smollm3", "vaultgemma"),
)
# The module that normalises the sum, by its name in transformers, and how it does.
NORMALISED = {
    **{
        name: ("embeddings.LayerNorm", "layer")
        for name in (
            "bert",
            "electra",
            "albert",
            "roberta",
            "xlm-roberta",
            "distilbert",
            "camembert",
            "ernie",
            *("mpnet", "big_bird", "deberta", "deberta-v2"),
        )
    },
    **{name: ("embeddings.LayerNorm", "layer") for name in ("gte", "jina-embeddings-v3", "nomic-bert")},
    **{name: ("layers.0.input_layernorm", "rms") for name in _LLAMA_LIKE},
    **{
        name: ("layers.0.input_layernorm", "layer")
        for name in ("gpt-neox", "cohere", "nemotron", "phi", "stablelm", "starcoder2")
    },
    **{name: ("encoder.block.0.layer.0.layer_norm", "rms") for name in ("t5", "mt5", "umt5")},
    **{name: ("encoder.layernorm_embedding", "layer") for name in ("bart", "mbart")},
    **{name: ("encoder.layers.0.self_attn_layer_norm", "layer") for name in ("blenderbot", "pegasus")},
    "biogpt": ("layers.0.self_attn_layer_norm", "layer"),
    "esm": ("encoder.layer.0.attention.LayerNorm", "layer"),
    "gpt-bigcode": ("h.0.ln_1", "layer"),
    "gpt2": ("h.0.ln_1", "layer"),
    "modernbert": ("embeddings.norm", "layer"),
}
NOT_FOLLOWED = {
    "deepseek-v3",  # makes queries, keys and values of fewer numbers first
    "m2m-100",  # computes its positions
    "olmo",  # names no epsilon
    "t5gemma",  # multiplies its tokens' vectors after the lookup
    "opt",  # a matrix between the tables of tokens and of positions
}


@pytest.mark.parametrize("name", list(tiny.TEXT_FAMILIES))
def test_what_normalises_the_sum(tiny_model, name):
    family = tiny.TEXT_FAMILIES[name]
    model = tiny_model(name)
    of_layer = anatomy(model, trace_of(model, family), 1)
    assert (of_layer.norm is not None) == (name in NORMALISED)
    if of_layer.norm is not None:
        path, method = NORMALISED[name]
        assert of_layer.norm.method == method
        summed = sum(of_layer.ingredients.values())
        with torch.inference_mode():
            expected = model.network.get_submodule(path)(torch.tensor(summed)).numpy()
        np.testing.assert_allclose(of_layer.norm.made, expected, atol=TOLERANCE)
        np.testing.assert_allclose(of_layer.norm.of(summed), expected, atol=TOLERANCE)


@pytest.mark.parametrize("name", list(tiny.TEXT_FAMILIES))
@pytest.mark.parametrize("layer", [0, 2])
def test_how_the_sum_comes_to_the_first_layer(tiny_model, name, layer):
    model = tiny_model(name)
    of_layer = anatomy(model, trace_of(model, tiny.TEXT_FAMILIES[name]), layer)
    matrix = name in ("albert", "electra")
    assert of_layer.leads_to_first_layer == (
        None if name in NOT_FOLLOWED else "by a matrix" if matrix else "as it is"
    )
    if layer == 0 and not matrix and name not in NOT_FOLLOWED:
        start = of_layer.norm.made if of_layer.norm is not None else sum(of_layer.ingredients.values())
        np.testing.assert_allclose(start, of_layer.sources, atol=TOLERANCE)


@pytest.mark.parametrize(
    "module", [nn.BatchNorm1d(2).eval(), nn.PReLU(2)], ids=lambda module: type(module).__name__
)
def test_a_module_whose_weight_or_epsilon_is_not_a_norm_s_is_none(module):
    """A batch norm of another axis; a weight for each dimension without an epsilon."""
    given = torch.tensor([[[1.0, 2.0, 4.0], [3.0, -1.0, 1.0]]])
    assert is_norm(module)
    assert normalisation_of(module, given[0].numpy(), module(given).detach()[0].numpy()) is None


def _rms(vectors, weight, eps):
    """Zhang and Sennrich 2019, equation 4, written out."""
    rows = []
    for vector in vectors.astype(np.float64):
        root = np.sqrt(sum(float(number) ** 2 for number in vector) / len(vector) + eps)
        rows.append([gain * number / root for gain, number in zip(weight, vector, strict=True)])
    return np.array(rows)


@pytest.mark.parametrize(("name", "less"), [("t5", 0), ("llama", 0), ("gemma", 1)])
def test_rms_norm_with_a_weight_of_its_own(tmp_path, name, less):
    """Gemma stores its weight minus 1."""
    family = tiny.TEXT_FAMILIES[name]
    network = tiny.build(family)
    path = NORMALISED[name][0]
    with torch.no_grad():
        drawn = torch.randn(
            network.get_submodule(path).weight.shape, generator=torch.Generator().manual_seed(3)
        )
        network.get_submodule(path).weight.copy_(drawn)
    network.save_pretrained(tmp_path)
    tiny_tokenizers.tokenizer(family.tokenizer).save_pretrained(tmp_path)
    model = attnviz.load_model(str(tmp_path))
    of_layer = anatomy(model, trace_of(model, family), 0)
    np.testing.assert_allclose(of_layer.norm.weight, drawn.numpy() + less, atol=1e-6)  # float32
    summed = sum(of_layer.ingredients.values())
    expected = _rms(summed, drawn.numpy() + less, of_layer.norm.eps)
    np.testing.assert_allclose(of_layer.sources, expected, atol=TOLERANCE)
    np.testing.assert_allclose(of_layer.norm.of(summed), expected, atol=TOLERANCE)


@pytest.mark.parametrize("second_text", [None, SECOND_TEXT])
@pytest.mark.parametrize("name", ["bert", "roberta", "distilbert"])
def test_the_sum_of_the_ingredients_is_what_the_first_layer_reads(tiny_model, name, second_text):
    """RoBERTa has one row for the tokens of both sentences of a pair."""
    model = tiny_model(name)
    of_layer = anatomy(model, model.trace(TEXT, second_text), 0)
    assert set(of_layer.ingredients) == INGREDIENTS[name]
    summed = sum(of_layer.ingredients.values())
    centred = summed - summed.mean(axis=1, keepdims=True)
    norm = model.network.embeddings.LayerNorm
    expected = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + norm.eps)
    expected = expected * norm.weight.detach().numpy() + norm.bias.detach().numpy()
    np.testing.assert_allclose(of_layer.hidden, expected, atol=TOLERANCE)


def test_weights_are_the_models_own_memory(tiny_model):
    model = tiny_model("bert")
    of_layer = anatomy(model, model.trace(TEXT), 1)
    own = model.network.encoder.layer[1].attention.self.query.weight.detach().numpy()
    assert np.shares_memory(of_layer.projections["query"].weight, own)


def test_nothing_is_left_on_the_model(tiny_model):
    """Except the hooks of interventions, which a network has from the start."""
    model = tiny_model("bert")
    before = [list(module._forward_hooks.values()) for module in model.network.modules()]
    anatomy(model, model.trace(TEXT), 1)
    assert [list(module._forward_hooks.values()) for module in model.network.modules()] == before


def test_where_all_heads_of_a_linear_map_may_lie():
    """Two heads of two numbers each: side by side, or as in GPT-NeoX with query, key and value of a head side by side."""
    blocks = [list(range(first, first + 4)) for first in (0, 4, 8)]
    by_head = [[0, 1, 6, 7], [2, 3, 8, 9], [4, 5, 10, 11]]
    columns = [np.arange(12)[part].tolist() for part in _parts(12, 2, 2)]
    assert columns == [*blocks, *by_head]
    assert [np.arange(8)[part].tolist() for part in _parts(8, 2, 2)] == blocks[:2]
    assert [np.arange(16)[part].tolist() for part in _parts(16, 2, 2)] == [*blocks, [12, 13, 14, 15]]
    assert list(_parts(3, 2, 2)) == []


@pytest.mark.stand_ins
def test_by_what_a_family_multiplies_its_tokens_after_the_lookup():
    """As Marian does; a table of BART's kind has multiplied them already."""
    scales, plain = (
        SimpleNamespace(config=SimpleNamespace(scale_embedding=scale)) for scale in (True, False)
    )
    table, scaled = nn.Embedding(3, 16), nn.Embedding(3, 16)
    scaled.embed_scale = 4.0
    assert _token_scale(scales, table) == 4.0
    assert _token_scale(scales, scaled) == _token_scale(plain, table) == 1.0
    assert _token_scale(SimpleNamespace(config=SimpleNamespace()), table) == 1.0
