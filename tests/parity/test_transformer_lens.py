"""Causal numbers of the bundled language model against TransformerLens 4.3 (MIT), which hooks the same weights in its own way."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
import transformers as tf

from attnviz.effects.ablation import ablate
from attnviz.effects.logit_attribution import attribute_token
from attnviz.effects.outcome import TokenAnswer, measured
from attnviz.effects.patching import patch
from attnviz.records import Head

pytestmark = pytest.mark.nightly

CLEAN = "When Mary and John went to the store, John gave a drink to"
CORRUPTED = "When Mary and John went to the store, Mary gave a drink to"
AT, TOKEN, AGAINST = 13, " Mary", " John"
SOME_HEADS = (Head(0, 0), Head(2, 7), Head(16, 0), Head(23, 0), Head(23, 3), Head(24, 4), Head(29, 8))
TOLERANCE = 2e-3  # float32 through 30 layers on both sides, logits of up to 20


@pytest.fixture(scope="module")
def read(smollm2) -> tf.PreTrainedTokenizerBase:
    return tf.AutoTokenizer.from_pretrained(smollm2.folder)


@pytest.fixture(scope="module")
def bridge(smollm2, read):
    # installed by `make nightly` alone
    from transformer_lens.model_bridge import TransformerBridge

    model = tf.AutoModelForCausalLM.from_pretrained(
        smollm2.folder, attn_implementation="eager", dtype=torch.float32
    )
    return TransformerBridge.boot_transformers(
        str(smollm2.folder), hf_model=model.eval(), tokenizer=read, device="cpu"
    )


@pytest.fixture(scope="module")
def difference(read) -> Callable[[torch.Tensor], float]:
    [first], [second] = (read(name, add_special_tokens=False)["input_ids"] for name in (TOKEN, AGAINST))
    return lambda logits: float(logits[0, AT, first] - logits[0, AT, second])


@pytest.fixture(scope="module")
def runs(bridge, read):
    """Logits and cached activations of both texts."""
    with torch.inference_mode():
        return [
            bridge.run_with_cache(read(text, return_tensors="pt")["input_ids"]) for text in (CLEAN, CORRUPTED)
        ]


@pytest.fixture(scope="module")
def difference_where(bridge, read, difference) -> Callable[..., float]:
    """The difference of the logits of the clean text while one activation is replaced."""

    def run(name: str, replaced: Callable[[torch.Tensor], None]) -> float:
        def hook(value, hook):
            value = value.clone()
            replaced(value)
            return value

        with torch.inference_mode():
            return difference(
                bridge.run_with_hooks(read(CLEAN, return_tensors="pt")["input_ids"], fwd_hooks=[(name, hook)])
            )

    return run


@pytest.fixture(scope="module")
def outcome(smollm2):
    return measured(smollm2, smollm2.trace(CLEAN), TokenAnswer(position=AT, token=TOKEN, against=AGAINST))


def test_weights(smollm2, runs):
    trace, cache = smollm2.trace(CLEAN), runs[0][1]
    for layer, head in SOME_HEADS:
        theirs = cache[f"blocks.{layer}.attn.hook_pattern"][0, head]
        np.testing.assert_allclose(trace.weights(layer, head), theirs, atol=1e-4)


def test_heads_switched_off(smollm2, outcome, runs, difference, difference_where):
    assert outcome.value == pytest.approx(difference(runs[0][0]), abs=TOLERANCE)
    ablation = ablate(smollm2, smollm2.trace(CLEAN), outcome)
    for layer, head in SOME_HEADS:

        def off(value, head=head):
            value[:, :, head] = 0

        theirs = difference_where(f"blocks.{layer}.attn.hook_z", off)
        assert ablation.heads[layer, head] == pytest.approx(theirs, abs=TOLERANCE), (layer, head)


def test_heads_carried_over(smollm2, outcome, runs, difference, difference_where):
    patched = patch(
        smollm2,
        smollm2.trace(CLEAN),
        smollm2.trace(CORRUPTED),
        outcome,
        carried="heads",
        rows=[0, 2, 16, 23, 24, 29],
    )
    assert patched.donor == pytest.approx(difference(runs[1][0]), abs=TOLERANCE)
    for layer, head in SOME_HEADS:
        donor = runs[1][1][f"blocks.{layer}.attn.hook_z"]

        def carry(value, donor=donor, head=head):
            value[:, :, head] = donor[:, :, head]

        theirs = difference_where(f"blocks.{layer}.attn.hook_z", carry)
        assert patched.outcomes[layer, head] == pytest.approx(theirs, abs=TOLERANCE), (layer, head)


def test_what_each_head_and_mlp_adds(smollm2, bridge, read, runs):
    """TransformerLens caches what each part writes and the scale of the last norm; the weight of the norm stays apart."""
    cache = runs[0][1]
    [first], [second] = (read(name, add_special_tokens=False)["input_ids"] for name in (TOKEN, AGAINST))
    model = bridge.original_model
    with torch.inference_mode():
        heads = cache.stack_head_results(layer=-1, pos_slice=AT)[:, 0]  # [layer x head, d_model]
        mlps = torch.stack([cache[f"blocks.{layer}.hook_mlp_out"][0, AT] for layer in range(30)])
        scale = cache["ln_final.hook_scale"][0, AT]
        along = model.model.norm.weight * (model.lm_head.weight[first] - model.lm_head.weight[second]) / scale
    effects = attribute_token(smollm2, smollm2.trace(CLEAN), AT, TOKEN, against=AGAINST)
    np.testing.assert_allclose(effects.heads.reshape(-1), heads @ along, atol=TOLERANCE)
    np.testing.assert_allclose(effects.mlps, mlps @ along, atol=TOLERANCE)
