"""Shapley values by permutations, against those of all subsets, written out as loops over transformers' own network."""

from functools import reduce
from itertools import combinations
from math import factorial, sqrt
from statistics import mean, stdev

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoModelForCausalLM

import attnviz
from attnviz.effects.input_attribution import InputAttribution, attribute_inputs
from attnviz.effects.outcome import TokenAnswer, TokenState
from attnviz.effects.shapley import ShapleySample, sample_shapley
from attnviz.model.answers import token_id


def of_all_subsets(outcome, players):
    """Shapley 1953: the mean over subsets S without a player i of f(S + i) - f(S), each weighted |S|! (n - |S| - 1)! / n!."""
    n, values = len(players), {}
    for player in players:
        others = [other for other in players if other != player]
        values[player] = 0.0
        for size in range(n):
            for subset in combinations(others, size):
                weight = factorial(size) * factorial(n - size - 1) / factorial(n)
                values[player] += weight * (outcome({*subset, player}) - outcome(set(subset)))
    return values


def of_ids(network, trace, baseline, number):
    """The outcome of a set of tokens, with the id of the baseline for the others, by the network alone in float64."""

    def outcome(kept):
        ids = [
            token if special or at in kept else baseline
            for at, (token, special) in enumerate(
                zip(trace.tokens.ids.tolist(), trace.tokens.is_special.tolist(), strict=True)
            )
        ]
        with torch.inference_mode():
            return float(number(network(input_ids=torch.tensor([ids]))))

    return outcome


def test_of_a_decoder_they_are_those_of_all_subsets(headed):
    llama, folder = headed("llama")
    trace = llama.trace("a cat")
    n_token, last = len(trace.tokens), len(trace.tokens) - 1
    players = np.flatnonzero(~trace.tokens.is_special).tolist()
    assert len(players) in (4, 5)
    outcome = TokenAnswer(position=last, token="t", against="a")
    (found,) = attribute_inputs(llama, trace, outcome, methods=["shapley"], n_permutations=3000)
    network = AutoModelForCausalLM.from_pretrained(folder).eval().double()
    chosen = [token_id(llama, name) for name in ("t", "a")]
    measured = of_ids(
        network,
        trace,
        llama.tokenizer.convert_tokens_to_ids(found.baseline),
        lambda out: out.logits[0, last, chosen[0]] - out.logits[0, last, chosen[1]],
    )
    exact = of_all_subsets(measured, players)
    errors = found.sample.standard_errors
    spread = max(exact.values()) - min(exact.values())
    assert spread > 0.01 and errors.max() < 0.02 * spread
    for at in range(n_token):
        assert abs(found.values[at] - exact.get(at, 0.0)) <= 4 * errors[at] + 1e-5
    assert found.sum == pytest.approx(measured(set(players)) - measured(set()), abs=1e-5)


def test_of_an_encoder_special_tokens_stay(embedded):
    """Of the bundled model, with a baseline that is asked for."""
    trace = embedded.trace("It opened the door.")
    players = np.flatnonzero(~trace.tokens.is_special).tolist()
    assert len(players) == 5
    sample = sample_shapley(embedded, trace, TokenState(position=2), baseline="mask", n_permutations=2000)
    whole = torch.tensor(trace.last_hidden_state[2])
    network = AutoModel.from_config(embedded.reference.config).eval()
    network.load_state_dict(embedded.reference.state_dict(), strict=False)
    measured = of_ids(
        network,
        trace,
        embedded.tokenizer.mask_token_id,
        lambda out: 1 - torch.cosine_similarity(out.last_hidden_state[0, 2], whole, dim=0),
    )
    exact = of_all_subsets(measured, players)
    for at in range(len(trace.tokens)):
        assert abs(sample.values[at] - exact.get(at, 0.0)) <= 4 * sample.standard_errors[at] + 1e-5
    assert sample.standard_errors[0] == sample.values[0] == 0  # [CLS]


@pytest.fixture
def bert(tiny_model):
    model = tiny_model("bert")
    return model, model.trace("the cat sat on a mat"), TokenState(position=3)


def test_each_permutation_sums_to_the_difference(bert):
    sample = sample_shapley(*bert, n_permutations=9)
    assert abs(sample.difference) > 1e-3
    for changes in sample.changes:
        assert abs(sum(map(float, changes)) - sample.difference) < 1e-12
    assert abs(float(sample.values.sum()) - sample.difference) < 1e-12


def test_mean_and_standard_error_of_the_changes():
    changes = [[1.0, 0.0, 2.0], [3.0, 0.0, -1.0], [2.5, 0.0, 0.5]]
    sample = ShapleySample(changes=np.array(changes), difference=1.0)
    for at, of_token in enumerate(zip(*changes, strict=True)):
        assert sample.values[at] == pytest.approx(mean(of_token))
        assert sample.standard_errors[at] == pytest.approx(stdev(of_token) / sqrt(3))
    assert np.isnan(ShapleySample(changes=np.ones((1, 2)), difference=2.0).standard_errors).all()


@pytest.mark.parametrize(
    ("n", "parts"), [(7, [(0, 1)]), (7, [(0, 2), (1, 2)]), (14, [(0, 2)]), (21, [(0, 3)])], ids=str
)
def test_parts_join_and_more_permutations_are_others(bert, n, parts):
    whole = sample_shapley(*bert, n_permutations=7, seed=5)
    joined = reduce(
        ShapleySample.joined, [sample_shapley(*bert, n_permutations=n, seed=5, part=part) for part in parts]
    )
    np.testing.assert_allclose(joined.changes, whole.changes, atol=1e-6)  # batches differ by rounding
    more = sample_shapley(*bert, n_permutations=14, seed=5, part=(1, 2))
    assert not np.allclose(more.changes, whole.changes, atol=1e-4)
    other = sample_shapley(*bert, n_permutations=7, seed=6)
    assert not np.allclose(other.changes, whole.changes, atol=1e-4)


def test_attributions_join_with_their_errors(bert):
    first, second = (
        attribute_inputs(*bert, methods=["shapley"], n_permutations=10, part=(at, 2))[0] for at in (0, 1)
    )
    joined = first.joined(second)
    assert isinstance(joined, InputAttribution) and (joined.method, joined.baseline) == ("shapley", "[PAD]")
    changes = np.concatenate([first.sample.changes, second.sample.changes])
    np.testing.assert_allclose(joined.values, changes.mean(axis=0), rtol=1e-6, atol=1e-9)
    frame = joined.frame()
    assert list(frame.columns) == ["position", "token", "shapley", "shapley (standard error)"]
    expected = [stdev(of_token) / sqrt(10) for of_token in changes.T.tolist()]
    np.testing.assert_allclose(frame["shapley (standard error)"], expected, rtol=1e-5, atol=1e-9)


def test_equal_sets_of_tokens_run_once(bert):
    """Four words have 16 sets, however many permutations."""
    model, _, _ = bert
    trace, counted = model.trace("the cat sat on"), []
    n_word = int((~trace.tokens.is_special).sum())

    def outcome(states):
        counted.append(len(states))
        return states[:, 0, 0]

    told = []
    sample_shapley(model, trace, outcome, n_permutations=200, progress=told.append)
    n_run = sum(counted)
    assert 2**n_word <= n_run <= 2**n_word + 2  # the outcome is tried once before
    assert told[-1] == 1


def test_a_part_without_a_permutation(bert):
    with pytest.raises(attnviz.SelectionError, match="3 permutations in 4 parts"):
        sample_shapley(*bert, n_permutations=3, part=(0, 4))


def test_they_are_computed_where_they_are_named(bert):
    assert "shapley" not in {of.method for of in attribute_inputs(*bert)}
