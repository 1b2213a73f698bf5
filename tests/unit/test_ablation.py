"""Heads switched off: each number against a trace of its own, with the head off in that pass."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import attnviz
from attnviz.effects import ablation
from attnviz.effects.ablation import ablate, ablate_layers, remove_greedily, remove_in_order
from attnviz.effects.mean_outputs import mean_outputs
from attnviz.effects.outcome import TokenState, measured
from attnviz.effects.patching import OF_HEADS, patch
from attnviz.model.interventions import ReplacedOutput, ScaledOutput
from attnviz.records import Head
from tests import tiny

TEXT = "the cat sat on a mat"
OTHERS = ["a door opened", "", "it was the cat when the door opened"]
# float32: a mean over 8 x 10 numbers of size 3, rows of a batch summed in another order than one alone
TOLERANCE = 2e-5


def outcome(states):
    """A number of all states: [variant, token, d_model] -> [variant]."""
    return (states[:, 1:] * states[:, :-1]).mean(dim=(1, 2))


def of_trace(trace):
    states = trace.last_hidden_state
    return float((states[1:] * states[:-1]).mean())


@pytest.fixture(params=["bert", "llama"])
def model(request, tiny_model):
    return tiny_model(request.param)


def test_every_head_off_in_turn(model):
    trace = model.trace(TEXT)
    of_heads = ablate(model, trace, outcome)
    assert of_heads.heads.shape == (trace.n_layers(), trace.n_heads(0))
    assert of_heads.base == pytest.approx(of_trace(trace), abs=TOLERANCE)
    for layer, head in np.ndindex(of_heads.heads.shape):
        off = model.trace(TEXT, interventions=[ScaledOutput(factor=0.0, layer=layer, head=head)])
        assert of_heads.heads[layer, head] == pytest.approx(of_trace(off), abs=TOLERANCE)
        assert of_heads.effects[layer, head] == pytest.approx(
            of_trace(off) - of_trace(trace), abs=2 * TOLERANCE
        )
    of_layers = ablate_layers(model, trace, outcome)
    for layer, number in enumerate(of_layers.layers):
        off = model.trace(TEXT, interventions=[ScaledOutput(factor=0.0, layer=layer)])
        assert number == pytest.approx(of_trace(off), abs=TOLERANCE)
        assert of_layers.effects[layer] == pytest.approx(of_trace(off) - of_trace(trace), abs=2 * TOLERANCE)
    sizes = [abs(of_heads.effects[head]) for head in of_heads.ranked()]
    assert sizes == sorted(sizes, reverse=True) and len(set(of_heads.ranked())) == of_heads.heads.size
    assert sizes[0] > 100 * TOLERANCE


def test_the_mean_of_a_head_in_place_of_its_output(model):
    """Each position has its own mean; test_mean_outputs.py tests the means."""
    trace = model.trace(TEXT)
    means, kind = mean_outputs(model, OTHERS), trace.kinds[0]
    of_heads = ablate(model, trace, outcome, means=means)

    def off(layer, head):
        return ReplacedOutput(output=means.of(kind, layer, head, trace.tokens), layer=layer, head=head)

    assert of_heads.heads[1, 1] == pytest.approx(
        of_trace(model.trace(TEXT, interventions=[off(1, 1)])), abs=TOLERANCE
    )
    zero = ablate(model, trace, outcome)
    assert (of_heads.ablation, zero.ablation) == ("mean", "zero")
    assert np.abs(of_heads.heads - zero.heads).max() > 100 * TOLERANCE
    every = [off(2, head) for head in range(zero.heads.shape[1])]
    of_layers = ablate_layers(model, trace, outcome, means=means)
    assert of_layers.layers[2] == pytest.approx(
        of_trace(model.trace(TEXT, interventions=every)), abs=TOLERANCE
    )
    order = [Head(0, 1), Head(2, 0)]
    both = model.trace(TEXT, interventions=[off(0, 1), off(2, 0)])
    assert remove_in_order(model, trace, outcome, order, means=means).outcomes[1] == pytest.approx(
        of_trace(both), abs=TOLERANCE
    )


def test_some_layers_and_the_others_are_all_of_them(model):
    trace, told = model.trace(TEXT), []
    whole = ablate(model, trace, outcome)
    first = ablate(model, trace, outcome, layers=[0, 2], progress=told.append)
    assert np.isnan(first.heads[1]).all()
    assert len(first.ranked()) == 2 * whole.heads.shape[1] and told[-1] == 1
    both = first.joined(ablate(model, trace, outcome, layers=[1]))
    np.testing.assert_allclose(both.heads, whole.heads, atol=TOLERANCE)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_every_kind_of_attention(tiny_model, kind):
    bart = tiny_model("bart")
    trace = bart.trace("the cat sat", "a door opened")
    of_heads = ablate(bart, trace, outcome, kind=kind)
    off = ScaledOutput(factor=0.0, kind=kind, layer=1, head=1)
    changed = bart.trace("the cat sat", "a door opened", interventions=[off])
    assert of_heads.heads[1, 1] == pytest.approx(of_trace(changed), abs=TOLERANCE)
    tokens = trace.query_tokens(kind)
    means = mean_outputs(bart, OTHERS)
    replaced = ReplacedOutput(output=means.of(kind, 1, 1, tokens), kind=kind, layer=1, head=1)
    changed = bart.trace("the cat sat", "a door opened", interventions=[replaced])
    of_means = ablate(bart, trace, outcome, kind=kind, means=means)
    assert of_means.heads[1, 1] == pytest.approx(of_trace(changed), abs=TOLERANCE)


def test_heads_off_one_after_another(model):
    trace, heads = model.trace(TEXT), [Head(2, 1), Head(0, 0), Head(1, 1)]
    removal = remove_in_order(model, trace, outcome, heads)
    for count in range(1, 4):
        off = [ScaledOutput(factor=0.0, layer=layer, head=head) for layer, head in heads[:count]]
        changed = model.trace(TEXT, interventions=off)
        assert removal.outcomes[count - 1] == pytest.approx(of_trace(changed), abs=TOLERANCE)
    assert removal.heads == tuple(heads)


def test_the_greedy_order_stays_close_to_the_unchanged_outcome_not_to_the_step_before(
    tiny_model, monkeypatch
):
    """Effects that add up: 1.5 goes first; then -3 leads to -1.5, which is closer to 0 than 3.5, though farther from 1.5."""
    effects = {Head(0, 0): 2.0, Head(0, 1): 1.5, Head(1, 0): -3.0}

    def add_up(model, trace, variants, measure, *, progress):
        return np.array(
            [
                sum(effects[Head(intervention.layer, intervention.head)] for intervention in off)
                for off in variants
            ]
        )

    monkeypatch.setattr(ablation, "measured_variants", add_up)
    bert = tiny_model("bert")
    removal = remove_greedily(bert, bert.trace(TEXT), lambda states: states[:, 0, 0] * 0, list(effects))
    assert removal.heads == (Head(0, 1), Head(1, 0), Head(0, 0))
    assert removal.outcomes.tolist() == [1.5, -1.5, 0.5]


def test_the_greedy_order(model):
    """Against a search that reads the text anew for every trial."""
    trace = model.trace(TEXT)
    heads = [Head(0, 1), Head(1, 0), Head(1, 1), Head(2, 0)]
    told = []
    removal = remove_greedily(model, trace, outcome, heads, progress=told.append)
    off, left = [], list(heads)
    for head, number in zip(removal.heads, removal.outcomes, strict=True):
        trials = {}
        for value in left:
            changed = [*off, ScaledOutput(factor=0.0, layer=value.layer, head=value.head)]
            trials[value] = of_trace(model.trace(TEXT, interventions=changed))
        best = min(left, key=lambda head: abs(trials[head] - removal.base))
        assert head == best
        assert number == pytest.approx(trials[best], abs=TOLERANCE)
        off.append(ScaledOutput(factor=0.0, layer=best.layer, head=best.head))
        left.remove(best)
    steps = np.array([0, 4, 7, 9, 10]) / 10  # variants that are done after each step
    assert told == pytest.approx(
        [
            before + (after - before) * layer / 3
            for before, after in itertools.pairwise(steps)
            for layer in (1, 2, 3)
        ]
    )
    end = remove_in_order(model, trace, outcome, heads).outcomes[-1]
    assert removal.outcomes[-1] == pytest.approx(end, abs=TOLERANCE)  # all are off, in whichever order


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda *of: ablate(*of, outcome, layers=[3]), attnviz.SelectionError, "Layer 3 was asked for"),
        (lambda *of: ablate(*of, outcome, kind="cross"), attnviz.SelectionError, "'cross' was asked"),
        (lambda *of: remove_greedily(*of, outcome, [Head(0, 0)] * 2), attnviz.SelectionError, "named twice"),
        (lambda *of: remove_in_order(*of, outcome, [Head(0, 9)]), attnviz.SelectionError, "Head 9"),
        (lambda model, _: mean_outputs(model, [" "]), attnviz.EmptyTextError, "over no text"),
    ],
)
def test_what_is_not_there(tiny_model, call, error, message):
    bert = tiny_model("bert")
    with pytest.raises(error, match=message):
        call(bert, bert.trace(TEXT))


def test_a_model_of_one_layer(tmp_path):
    family = tiny.TEXT_FAMILIES["gpt2"]
    config = family.config()
    config.update({"n_layer": 1})
    model = attnviz.load_model(str(tiny.save(replace(family, config=lambda: config), tmp_path)))
    trace, heads = model.trace(TEXT), [Head(0, 1), Head(0, 0)]
    measure = measured(model, trace, TokenState(position=2))
    assert set(remove_in_order(model, trace, measure, heads).heads) == {*heads}
    assert set(remove_greedily(model, trace, measure, heads).heads) == {*heads}
    assert ablate(model, trace, measure).heads.shape == (1, trace.n_heads(0))
    assert ablate_layers(model, trace, measure).layers.shape == (1,)
    for carried in ("layer", "attention", "mlp", "heads", "pattern"):
        patched = patch(model, trace, trace, measure, carried=carried)
        n_column = trace.n_heads(0) if carried in OF_HEADS else len(trace.tokens)
        np.testing.assert_allclose(patched.outcomes, np.zeros((1, n_column)), atol=1e-6)  # its own states
