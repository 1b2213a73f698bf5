"""Heads of SmolLM2-135M-Instruct on the real weights: why its induction head looks where it does, and who moves a name."""

import statistics

import numpy as np
import pytest
import torch

from attnviz.effects.ablation import ablate
from attnviz.effects.logit_attribution import attribute_token
from attnviz.effects.over_pairs import mean_direct_effects, mean_head_effects
from attnviz.effects.prompts import outcome_of_pair, prepared, read_prompts
from attnviz.effects.score_sources import score_sources
from attnviz.records import Head

pytestmark = pytest.mark.slow


def test_an_induction_head_s_key_is_of_the_previous_token_head(smollm2):
    """Layer 18, head 6 looks for a key whose previous token is its own; layer 16, head 0 gave each key its previous token.

    Found independently by probes on random tokens that come twice: induction L18 H6 .91, previous token L16 H0 .90.
    """
    ids = np.random.default_rng(0).integers(1000, 40000, 8).tolist()
    trace = smollm2.trace(smollm2.tokenizer.decode(ids + ids))
    query = len(trace.tokens) - 3
    first = trace.tokens.ids[: query - 1].tolist().index(trace.tokens.ids[query])
    row = trace.weights(18, 6)[query]
    assert row.argmax() == first + 1
    sources = score_sources(smollm2, trace, 18, 6, query, first + 1)
    assert sources.passed
    own = float(trace.scores(18, 6)[query, first + 1])
    assert sources.summed == pytest.approx(own, abs=1e-3)
    source = sources.sources[int(sources.of_key.argmax())]
    assert (source.name, source.layer, source.head) == ("head", 16, 0)
    assert sources.of_key.max() > own / 2


@pytest.mark.nightly
def test_who_is_given_something_over_a_set_of_prompts(smollm2):
    """Layer 23, head 3 has the largest effect and the largest direct effect on average, whatever the names.

    Every pair is run anew with a hook of this test, and its difference is read from the language head in float64.
    """
    pairs = read_prompts(
        '"When Mary and John went to the store, John gave a drink to",'
        '"When Mary and John went to the store, Mary gave a drink to", Mary, John\n'
        '"When John and Mary went to the store, John gave a drink to",'
        '"When John and Mary went to the store, Mary gave a drink to", Mary, John\n'
    ).pairs
    head = Head(23, 3)
    effects, direct, changes = [], [], []
    for pair in pairs:
        clean, _, measure = prepared(smollm2, pair)
        effects.append(ablate(smollm2, clean, measure, layers=range(22, 25)))
        answer = outcome_of_pair(smollm2, clean, pair)
        direct.append(attribute_token(smollm2, clean, answer.position, answer.token, against=answer.against))
        changes.append(_difference(smollm2, pair, head) - _difference(smollm2, pair))
    averaged = mean_head_effects(effects)
    assert averaged.mean.ranked()[0] == head
    assert float(averaged.effects.mean[head]) == pytest.approx(statistics.mean(changes), abs=1e-3)
    assert float(averaged.effects.spread[head]) == pytest.approx(statistics.stdev(changes), abs=1e-3)
    parts = mean_direct_effects(direct)
    assert parts.mean.ranked()[0] == head and parts.mean.passed
    outcomes = [_difference(smollm2, pair) for pair in pairs]
    assert parts.mean.total == pytest.approx(statistics.mean(outcomes), abs=1e-3)


def _difference(model, pair, off=None):
    """Logit of the answer minus that of the wrong answer after the clean prompt, with a head's output set to zero by a hook."""
    hooks = []
    if off is not None:
        size = model.network.config.head_dim

        def silence(module, given):
            heads = given[0].clone()
            heads[..., off.head * size : (off.head + 1) * size] = 0
            return (heads,)

        layer = model.network.layers[off.layer].self_attn.o_proj
        hooks.append(layer.register_forward_pre_hook(silence))
    with torch.no_grad():
        read = model.tokenizer(pair.clean, return_tensors="pt")
        states = model.network(**read, use_cache=False).last_hidden_state
        logits = model.language_head(inputs_embeds=states, use_cache=False).logits[0, -1].double()
    for hook in hooks:
        hook.remove()
    [first], [second] = (
        model.tokenizer(answer, add_special_tokens=False).input_ids
        for answer in (pair.answer, pair.wrong_answer)
    )
    return float(logits[first] - logits[second])
