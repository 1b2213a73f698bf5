"""Experiments over pairs of prompts: means and spreads on paper, and against loops over the pairs with hooks of the test's own."""

import csv
import io
import statistics

import numpy as np
import pytest
import torch

from attnviz.effects.ablation import ablate
from attnviz.effects.logit_attribution import attribute_token
from attnviz.effects.mean_outputs import mean_outputs
from attnviz.effects.over_pairs import (
    mean_direct_effects,
    mean_head_effects,
    mean_patches,
    over_pairs,
)
from attnviz.effects.patching import PatchEffects, patch
from attnviz.effects.prompts import outcome_of_pair, prepared, read_prompts
from attnviz.errors import ShapeError
from tests.hand_made import tokens

TABLE = "the cat sat,the dog sat,a,b\nthe cat ran on,the dog ran on,b,a\na mat when it,a mat when he,b,a"


@pytest.fixture
def gpt2(headed):
    return headed("gpt2")[0]


@pytest.fixture
def prompts():
    return read_prompts(TABLE)


def patched(outcomes, base, donor):
    return PatchEffects(
        receiver_tokens=tokens(["a"]),
        donor_tokens=tokens(["a"]),
        kind="decoder",
        carried="heads",
        base=base,
        donor=donor,
        outcomes=np.array(outcomes, dtype=np.float32),
    )


def test_mean_and_spread_on_paper():
    """1, 3 and 8: mean 4, squares of the distances 9 + 1 + 16 = 26, divided by n - 1 = 2."""
    averaged = over_pairs([[[1.0, 0.0]], [[3.0, 0.0]], [[8.0, 0.0]]])
    assert averaged.n_pair == 3
    np.testing.assert_allclose(averaged.mean, [[4.0, 0.0]])
    np.testing.assert_allclose(averaged.spread, [[np.sqrt(13), 0.0]], rtol=1e-6)
    assert np.isnan(over_pairs([[2.0, 3.0]]).spread).all()
    of_numbers = over_pairs([1.0, 2.0])
    assert (float(of_numbers.mean), of_numbers.n_pair) == (1.5, 2)
    assert float(of_numbers.spread) == pytest.approx(np.sqrt(0.5))


def test_patches_are_shares_of_the_mean_difference():
    """Changes 1 and 3 of differences 2 and 6: the share is 2 / 4; their standard deviation, with n - 1, is √2."""
    averaged = mean_patches([patched([[2.0, 1.0]], 1.0, 3.0), patched([[5.0, 2.0]], 2.0, 8.0)])
    assert (averaged.mean.base, averaged.mean.donor, averaged.changes.n_pair) == (1.5, 5.5, 2)
    np.testing.assert_allclose(averaged.mean.shares, [[0.5, 0.0]])
    np.testing.assert_allclose(averaged.changes.spread, [[np.sqrt(2), 0.0]], rtol=1e-6)


def test_token_by_token_pairs_must_be_of_one_length():
    with pytest.raises(ShapeError, match="their prompts have 2 and 3 tokens"):
        mean_patches([patched([[1.0, 2.0, 3.0]], 0.0, 1.0), patched([[1.0, 2.0]], 0.0, 1.0)])


def difference_of(model, pair, states):
    """Logit of the answer minus that of the wrong answer after the last token, by the language head alone."""
    ids = [model.tokenizer.convert_tokens_to_ids(answer) for answer in (pair.answer, pair.wrong_answer)]
    logits = states[-1].double() @ model.language_head.lm_head.weight.detach().double().T
    return float(logits[ids[0]] - logits[ids[1]])


def last_states(model, text, layer=None, head=None, instead=None):
    """The last hidden states of a GPT-2, with a head's input to W_O replaced by a hook."""
    network, hooks = model.network, []
    if layer is not None:
        size = network.config.n_embd // network.config.n_head

        def exchange(module, given):
            heads = given[0].clone()
            heads[0, :, head * size : (head + 1) * size] = instead
            return (heads,)

        hooks.append(network.h[layer].attn.c_proj.register_forward_pre_hook(exchange))
    with torch.no_grad():
        states = network(**model.tokenizer(text, return_tensors="pt")).last_hidden_state[0]
    for hook in hooks:
        hook.remove()
    return states


@pytest.mark.parametrize("ablation", ["zero", "mean"])
def test_heads_off_on_every_pair(gpt2, prompts, ablation):
    """Each pair is run anew with a hook of this test, and the changes are averaged by Python's statistics."""
    means = (
        mean_outputs(gpt2, ["the dog ran on a mat", "a cat sat on it when he"])
        if ablation == "mean"
        else None
    )
    effects = []
    for pair in prompts.pairs:
        clean, _, measure = prepared(gpt2, pair)
        effects.append(ablate(gpt2, clean, measure, means=means))
    averaged = mean_head_effects(effects)
    shape = averaged.mean.heads.shape
    assert averaged.effects.pairs.shape == (3, *shape)
    for layer, head in np.ndindex(*shape):
        changes = []
        for pair in prompts.pairs:
            tokens = gpt2.tokenize(pair.clean)
            instead = 0.0 if means is None else torch.tensor(means.of("decoder", layer, head, tokens))
            with_it = difference_of(gpt2, pair, last_states(gpt2, pair.clean))
            without = difference_of(gpt2, pair, last_states(gpt2, pair.clean, layer, head, instead))
            changes.append(without - with_it)
        assert averaged.effects.mean[layer, head] == pytest.approx(statistics.mean(changes), abs=1e-5)
        assert averaged.effects.spread[layer, head] == pytest.approx(statistics.stdev(changes), abs=1e-5)
        assert averaged.mean.effects[layer, head] == pytest.approx(statistics.mean(changes), abs=1e-5)
    unchanged = [difference_of(gpt2, pair, last_states(gpt2, pair.clean)) for pair in prompts.pairs]
    assert averaged.mean.base == pytest.approx(statistics.mean(unchanged), abs=1e-5)
    assert float(averaged.clean.spread) == pytest.approx(statistics.stdev(unchanged), abs=1e-5)


def direct_of(model, pair):
    """What each head and MLP adds, and what the model says itself: by GPT-2's formulas, its last norm's scale kept, in float64."""
    network = model.network
    seen = {}
    hooks = [
        network.h[layer].attn.c_proj.register_forward_pre_hook(
            lambda module, given, layer=layer: seen.__setitem__(("heads", layer), given[0][0, -1].double())
        )
        for layer in range(len(network.h))
    ] + [
        network.h[layer].mlp.register_forward_hook(
            lambda module, given, out, layer=layer: seen.__setitem__(("mlp", layer), out[0, -1].double())
        )
        for layer in range(len(network.h))
    ]
    hooks.append(
        network.ln_f.register_forward_pre_hook(
            lambda module, given: seen.__setitem__("before", given[0][0, -1].double())
        )
    )
    states = last_states(model, pair.clean)
    for hook in hooks:
        hook.remove()
    ids = [model.tokenizer.convert_tokens_to_ids(answer) for answer in (pair.answer, pair.wrong_answer)]
    rows = model.language_head.lm_head.weight.double()
    direction = (rows[ids[0]] - rows[ids[1]]).detach()
    norm, before = network.ln_f, seen["before"]
    scale = torch.sqrt(before.var(unbiased=False) + norm.eps)

    def adds(vector):
        return float(direction @ ((vector - vector.mean()) / scale * norm.weight.double()))

    size = network.config.n_embd // network.config.n_head
    with torch.no_grad():
        heads = [
            [
                adds(
                    seen["heads", layer][head * size : (head + 1) * size]
                    @ network.h[layer].attn.c_proj.weight.double()[head * size : (head + 1) * size]
                )
                for head in range(network.config.n_head)
            ]
            for layer in range(len(network.h))
        ]
        mlps = [adds(seen["mlp", layer]) for layer in range(len(network.h))]
        position = states.shape[0] - 1
        token = model.tokenizer(pair.clean)["input_ids"][-1]
        embedding = adds(network.wte.weight[token].double() + network.wpe.weight[position].double())
    return heads, mlps, embedding, difference_of(model, pair, states)


def test_direct_effects_on_every_pair(gpt2, prompts):
    """Each pair is decomposed again with hooks and GPT-2's own formulas."""
    effects = []
    for pair in prompts.pairs:
        clean, _, _ = prepared(gpt2, pair)
        answer = outcome_of_pair(gpt2, clean, pair)
        effects.append(attribute_token(gpt2, clean, answer.position, answer.token, against=answer.against))
    averaged = mean_direct_effects(effects)
    heads, mlps, embedding, total = zip(*(direct_of(gpt2, pair) for pair in prompts.pairs), strict=True)
    for numbers, own in (
        (averaged.heads, heads),
        (averaged.attention, np.sum(heads, axis=2)),
        (averaged.mlps, mlps),
        (averaged.embedding, embedding),
        (averaged.totals, total),
    ):
        own = np.asarray(own)
        for place in np.ndindex(*own.shape[1:]):
            of_pairs = own[(slice(None), *place)].tolist()
            assert numbers.mean[place] == pytest.approx(statistics.mean(of_pairs), abs=2e-5)
            assert numbers.spread[place] == pytest.approx(statistics.stdev(of_pairs), abs=2e-5)
    np.testing.assert_allclose(averaged.mean.heads, np.mean(heads, axis=0), atol=2e-5)
    assert averaged.mean.total == pytest.approx(statistics.mean(total), abs=2e-5)
    assert averaged.mean.passed  # means of sums are sums of means


def read(table):
    header, *rows = csv.reader(io.StringIO(table.decode("utf-8-sig"), newline=""))
    return header, rows


def test_tables_have_mean_spread_and_every_pair(gpt2, prompts):
    by_line = dict(zip(prompts.lines, prompts.pairs, strict=True))
    given = [prepared(gpt2, pair) for pair in prompts.pairs]
    heads = [ablate(gpt2, clean, measure) for clean, _, measure in given]
    patches = [patch(gpt2, *value, carried="heads") for value in given]
    parts = [
        attribute_token(gpt2, clean, len(clean.tokens) - 1, pair.answer, against=pair.wrong_answer)
        for (clean, _, _), pair in zip(given, prompts.pairs, strict=True)
    ]
    n_layer, n_head = heads[0].heads.shape
    for averaged, first, of_head, n_row in (
        (mean_head_effects(heads), ["", "", "clean outcome"], ["1", "0", "effect"], 1 + n_layer * n_head),
        (mean_patches(patches), ["", "", "clean outcome"], ["1", "0", "change"], 2 + n_layer * n_head),
        (mean_direct_effects(parts), ["", "embedding"], ["1", "head 0"], 3 + n_layer * (n_head + 2)),
    ):
        header, rows = read(averaged.csv(by_line))
        n_place = len(first)
        assert header[n_place : n_place + 3] == [
            "mean",
            "standard deviation",
            "line 1: the cat sat | the dog sat | a | b",
        ]
        assert len(rows) == n_row
        assert rows[0][:n_place] == first
        [row] = [row for row in rows if row[:n_place] == of_head]
        mean, spread, *of_pairs = map(float, row[n_place:])
        assert len(of_pairs) == 3
        assert mean == pytest.approx(statistics.mean(of_pairs), rel=1e-5)
        assert spread == pytest.approx(statistics.stdev(of_pairs), rel=1e-4)
    changes = [float(patch.changes[1, 0]) for patch in patches]
    _, rows = read(mean_patches(patches).csv(by_line))
    [row] = [row for row in rows if row[:3] == ["1", "0", "change"]]
    assert list(map(float, row[5:])) == pytest.approx(changes)
