"""The memory of tracing a long text: estimated beforehand, against torch's own record, and refused where it does not fit."""

from dataclasses import replace

import pytest
import transformers

import attnviz
from attnviz.cost.measurement import peak_bytes
from attnviz.errors import OutOfMemoryError
from attnviz.model import memory, verification
from attnviz.model.memory import free_bytes, trace_bytes
from tests import tiny

N_TOKEN = 1280
SIZES = {"vocab_size": tiny.VOCABULARY, "pad_token_id": 0, "bos_token_id": 2, "max_position_embeddings": 2048}
CONFIGS = {
    "llama": lambda: transformers.LlamaConfig(
        **SIZES,
        hidden_size=96,
        num_hidden_layers=3,
        num_attention_heads=6,
        num_key_value_heads=2,
        intermediate_size=256,
    ),
    "bert": lambda: transformers.BertConfig(
        **SIZES, hidden_size=64, num_hidden_layers=5, num_attention_heads=4, intermediate_size=512
    ),
}


def loaded(name, folder):
    family = replace(tiny.TEXT_FAMILIES[name], config=CONFIGS[name])
    model = attnviz.load_model(str(tiny.save(family, folder)))
    return model, model.tokenize("the cat sat " * N_TOKEN, cut=True, max_tokens=N_TOKEN)


@pytest.mark.parametrize("name", CONFIGS)
def test_the_estimate_is_the_peak_within_30_percent(name, tmp_path):
    model, tokens = loaded(name, tmp_path)
    peak = peak_bytes(lambda: model.trace_tokens(tokens))
    assert 0.7 * peak < trace_bytes(model.network, len(tokens)) < 1.3 * peak


def test_a_long_text_beyond_the_free_memory_is_refused_with_both_numbers(tmp_path, monkeypatch):
    model, tokens = loaded("llama", tmp_path)
    short = model.trace("the cat sat")
    monkeypatch.setattr(memory, "free_bytes", lambda: 1_000_000)
    monkeypatch.setattr(memory, "trace_bytes", lambda *_: 23_000_000_000)
    model.trace("the cat sat")  # short
    with pytest.raises(
        OutOfMemoryError, match=r"Tracing 1,280 tokens takes about 23 GB .* 0.001 GB are free"
    ):
        model.trace_tokens(tokens)
    monkeypatch.setattr(memory, "LONG", 1)
    monkeypatch.setattr(verification, "_compare", None)  # nothing is computed
    with pytest.raises(OutOfMemoryError, match="Verifying"):
        attnviz.verify(model, short)


def test_free_memory_is_the_system_s_or_what_a_container_s_limit_leaves(tmp_path, monkeypatch):
    table, limit, used, numbers = (tmp_path / name for name in ("meminfo", "max", "current", "memory.stat"))
    table.write_text("MemTotal:       900 kB\nMemAvailable:    500 kB\n")
    limit.write_text("max")
    used.write_text("1000")
    monkeypatch.setattr(memory, "_MEMINFO", table)
    monkeypatch.setattr(memory, "_CGROUPS", ((str(tmp_path), "max", "current", "inactive_file"),))
    assert free_bytes() == 512_000
    limit.write_text("11000")
    assert free_bytes() == 10_000
    numbers.write_text("anon 300\ninactive_file 600\nactive_file 100\n")
    assert free_bytes() == 10_600  # the system takes the cache of files back
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "none")
    assert free_bytes() == 10_600
    limit.write_text("max")
    assert free_bytes() is None


@pytest.mark.parametrize(("name", "has_bias"), [("t5", True), ("mpnet", True), ("bart", False)])
def test_the_estimate_counts_the_numbers_that_are_added_to_scores(name, has_bias, tiny_model):
    """4 bytes for each head, query and key."""
    network = tiny_model(name).network
    n_head = network.config.num_attention_heads
    of_bias = 4 * n_head * 8192**2
    estimate = trace_bytes(network, 8192)
    assert (estimate > of_bias) == has_bias and estimate < 1.5 * of_bias
