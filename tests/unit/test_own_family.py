"""A family that computes its attention itself is let in by one function, and whatever that forgets fails."""

import pytest
import torch
from transformers import GPTJConfig, GPTJForCausalLM
from transformers.models.gptj.modeling_gptj import GPTJAttention, apply_rotary_pos_emb

import attnviz
from attnviz.model import families, own_attention


@pytest.fixture(autouse=True)
def _forgotten_after(monkeypatch):
    monkeypatch.setattr(families, "registered", registered := {})
    monkeypatch.setattr(own_attention, "registered", registered)
    own_attention._taken_over.cache_clear()


@pytest.fixture
def gptj():
    torch.manual_seed(0)
    sizes = {"n_embd": 32, "n_layer": 3, "n_head": 4, "rotary_dim": 4, "n_positions": 64}
    return GPTJForCausalLM(GPTJConfig(vocab_size=30522, bos_token_id=0, eos_token_id=0, **sizes)).eval()


def inputs(module, hidden_states, attention_mask=None, position_ids=None, **_):
    """What GPT-J's forward makes before its product, with rotary positions on a part of each head."""
    query, key, value = (
        module._split_heads(project(hidden_states), module.num_attention_heads, module.head_dim, is_turned)
        for project, is_turned in ((module.q_proj, True), (module.k_proj, True), (module.v_proj, False))
    )
    table = module._get_embed_positions(position_ids)
    rows = position_ids[..., None].repeat(1, 1, table.shape[-1])
    sin, cos = torch.gather(table, 1, rows).chunk(2, dim=-1)
    width = module.rotary_dim
    query, key = (
        torch.cat(
            [apply_rotary_pos_emb(vectors[..., :width], sin, cos), vectors[..., width:]], dim=-1
        ).transpose(1, 2)
        for vectors in (query, key)
    )
    return {"query": query, "key": key, "value": value, "attention_mask": attention_mask}


def finish(module, output):
    return module.out_proj(output), None


def test_it_is_refused_before_and_verified_after(gptj, embedded):
    with pytest.raises(attnviz.UnsupportedArchitectureError, match="code of its own"):
        attnviz.wrap(gptj, embedded.tokenizer)
    attnviz.register_attention(GPTJAttention, inputs, finish, is_causal=True)
    viz = attnviz.wrap(gptj, embedded.tokenizer, name="tiny GPT-J")
    trace = viz.trace("I was watching the door")
    assert trace.kinds == ("decoder",) and trace.shape() == (3, 4)
    assert attnviz.verify(viz, trace).passed
    with torch.no_grad():
        expected = gptj(torch.tensor(trace.tokens.ids)[None]).logits[0, -1].softmax(-1)
    found = attnviz.predict(viz, trace, len(trace.tokens) - 1, top=3)
    torch.testing.assert_close(torch.tensor(found.probabilities), expected.topk(3).values)


@pytest.mark.parametrize(
    "forgotten",
    [{"scaling": 0.4}, {"attention_mask": None}, {"position_bias": torch.ones(1, 4, 1, 1).triu()}],
)
def test_what_is_forgotten_fails(forgotten, gptj, embedded):
    def wrong(module, *args, **named):
        return {**inputs(module, *args, **named), **forgotten}

    attnviz.register_attention(GPTJAttention, wrong, finish, is_causal=True)
    viz = attnviz.wrap(gptj, embedded.tokenizer)
    assert not attnviz.verify(viz, viz.trace("I was watching the door")).passed


def test_what_was_found_is_told(gptj, embedded):
    attnviz.register_attention(GPTJAttention, inputs, finish, is_causal=True)
    told = attnviz.explain_family(attnviz.wrap(gptj, embedded.tokenizer, name="tiny GPT-J"))
    assert told.startswith(
        "tiny GPT-J: GPTJModel of transformers.models.gptj.modeling_gptj, 3 x 4 heads (decoder)"
    )
    assert (
        "h.0 … 2.attn: GPTJAttention, in place of whose forward attnviz takes query, key, value and mask from inputs"
        in told
    )
    assert (
        "GPTJAttention.forward (modeling_gptj.py, line" in told
        and "W_O (decoder): h.0 … 2.attn.out_proj" in told
    )
    assert "FAILED" not in told and "attention weights: passed" in told
    of_bert = attnviz.explain_family(embedded)
    assert "encoder.layer.0 … 5.attention.self: BertSelfAttention, on attnviz's attention" in of_bert
    assert "learned positions: embeddings.position_embeddings" in of_bert


def test_a_class_of_the_same_name_elsewhere_is_another(embedded):
    """People copy modeling_bert.py and change it."""
    copied = type("BertSelfAttention", (torch.nn.Module,), {"__module__": "mine.modeling_bert"})
    attnviz.register_attention(copied, lambda *_: pytest.fail("was asked"))
    network = embedded.network.__class__.from_pretrained(embedded.folder)
    viz = attnviz.wrap(network, embedded.tokenizer)
    assert attnviz.verify(viz, viz.trace("It opened.")).passed
