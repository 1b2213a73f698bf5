"""Every model family: attributions of its tokens against its own code, loaded a second time and differentiated by torch.

Token embeddings are looked up and passed here as transformers documents it, by ``inputs_embeds``; attnviz replaces them
where they leave the table.
"""

import numpy as np
import pytest
import torch
from torch.nn import functional
from transformers import AutoModel

import attnviz
from attnviz.effects.attribution_methods import METHODS
from attnviz.effects.input_attribution import attribute_inputs, available_methods
from attnviz.effects.outcome import Similarity, TokenState, measured
from attnviz.effects.token_embeddings import EmbeddedText
from attnviz.effects.token_removal import outcomes_without
from tests import tiny
from tests.tiny import SECOND_TEXT, trace_of

OTHER = Similarity(text="the cat sat")
# float32: states of up to 30, gradients of up to 200, summed in another order
TOLERANCE = 1e-4
ALL = list(tiny.TEXT_FAMILIES.values())
# ESM and DeBERTa multiply the vectors of padding by 0 as well, in their own code
_ZEROED = ("esm", "deberta", "deberta-v2")
MASKED_ONLY = [family for family in ALL if "decoder" not in family.n_layers and family.name not in _ZEROED]
NO_LENGTH = frozenset({"modernbert", "deberta", "deberta-v2"})
"""Families whose norm right after the lookup makes the product of gradient and input 0 up to rounding."""
NOT_INTEGRATED = frozenset({"mixtral", "qwen3-moe", "t5", "mt5", "umt5"})
"""A mixture of experts jumps where a token changes its expert; scores of T5 have no scale, and random weights make them steps."""


def by_name(family):
    return family.name


def own_similarity(states, other):
    """The similarity, written out, of a batch of states with a text's last hidden state."""
    mean, theirs = states.mean(dim=1), torch.tensor(other).mean(dim=0)
    return functional.cosine_similarity(mean, theirs[None], dim=1)


def own_gradient(folder, family, trace, other):
    """Gradient x input by transformers and torch alone."""
    network = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    stack = network.get_encoder() if family.is_encoder_decoder else network
    ids = torch.tensor(trace.tokens.ids)[None]
    vectors = stack.get_input_embeddings()(ids).detach()
    vectors.requires_grad_()
    inputs = {"inputs_embeds": vectors, "use_cache": False}
    if "token_type_ids" in network.forward.__code__.co_varnames:
        inputs["token_type_ids"] = torch.zeros_like(ids)
    if family.is_encoder_decoder:
        inputs["decoder_input_ids"] = torch.tensor(trace.target_tokens.ids)[None]
    states = network(**inputs).last_hidden_state
    np.testing.assert_allclose(states[0].detach(), trace.last_hidden_state, atol=TOLERANCE)
    (gradient,) = torch.autograd.grad(own_similarity(states, other).sum(), vectors)
    return (gradient * vectors).sum(dim=-1)[0].detach().numpy()


@pytest.mark.parametrize("family", ALL, ids=by_name)
def test_gradient_times_input_is_that_of_transformers(family, tiny_model, checkpoint):
    model = tiny_model(family.name)
    trace = trace_of(model, family)
    other = model.trace(OTHER.text, SECOND_TEXT if family.is_encoder_decoder else None).last_hidden_state
    (attribution,) = attribute_inputs(model, trace, OTHER, methods=["gradient_times_input"])
    expected = own_gradient(checkpoint(family.name), family, trace, other)
    np.testing.assert_allclose(attribution.values, expected, atol=TOLERANCE, rtol=1e-3)
    assert (np.abs(attribution.values).max() > 10 * TOLERANCE) == (family.name not in NO_LENGTH)


@pytest.mark.parametrize("family", ALL, ids=by_name)
def test_on_its_own_vectors_the_text_is_the_text(family, tiny_model):
    """After attnviz has verified it, so that nothing that a family kept of a pass without gradients is in the way."""
    model = tiny_model(family.name)
    trace = trace_of(model, family)
    assert attnviz.verify(model, trace).passed
    text = EmbeddedText(model, trace)
    states = text.states(torch.stack([text.vectors, text.baseline]).requires_grad_())
    np.testing.assert_allclose(states[0].detach(), trace.last_hidden_state, atol=TOLERANCE, rtol=TOLERANCE)
    assert states.requires_grad
    assert text.baseline_label != "zeros"


@pytest.mark.parametrize("family", ALL, ids=by_name)
def test_all_words_replaced_by_the_mask_token_are_the_masked_text(family, tiny_model):
    """`Model.trace` changes ids, attnviz's removal changes vectors: position ids and factors have to be the same."""
    model = tiny_model(family.name)
    trace = trace_of(model, family)
    if model.mask_label is None:
        with pytest.raises(attnviz.SelectionError, match="'mask' was asked for"):
            EmbeddedText(model, trace, "mask")
        return
    words = np.flatnonzero(~trace.tokens.is_special)
    masked = trace_of(model, family, masked=words.tolist())
    expected = measured(model, trace, OTHER)(torch.tensor(masked.last_hidden_state)[None])
    removed = np.isin(np.arange(len(trace.tokens)), words)[None]
    outcomes = outcomes_without(model, trace, OTHER, removed, baseline="mask")
    np.testing.assert_allclose(outcomes, expected, atol=TOLERANCE)
    assert EmbeddedText(model, trace, "mask").baseline_label == model.mask_label


@pytest.mark.parametrize("family", ALL, ids=by_name)
def test_sum_of_integrated_gradients(family, tiny_model):
    """It is the difference of two runs up to the stated error, and tokens that are kept get none."""
    model = tiny_model(family.name)
    trace = trace_of(model, family)
    (attribution,) = attribute_inputs(model, trace, OTHER, methods=["integrated_gradients"])
    ends = np.stack([np.zeros(len(trace.tokens), dtype=bool), ~trace.tokens.is_special])
    text, nothing = outcomes_without(model, trace, OTHER, ends)
    assert attribution.integral.difference == pytest.approx(text - nothing, abs=1e-5)
    assert abs(attribution.sum - (text - nothing)) <= attribution.integral.error + 1e-5
    assert not attribution.values[trace.tokens.is_special].any()
    assert attribution.integral.converged == (family.name not in NOT_INTEGRATED)


@pytest.mark.parametrize("family", MASKED_ONLY, ids=by_name)
def test_masked_keys_are_padding(family, tiny_model, checkpoint):
    """Leaving a token out equals a run of transformers' own with an attention mask, as for a padding token."""
    model = tiny_model(family.name)
    trace = trace_of(model, family)
    network = AutoModel.from_pretrained(checkpoint(family.name), attn_implementation="eager").eval()
    n_token = len(trace.tokens)
    measure = measured(model, trace, OTHER)
    (attribution,) = attribute_inputs(model, trace, OTHER, methods=["keys_masked"])
    for position in range(n_token):
        kept = torch.ones(1, n_token, dtype=torch.long)
        kept[0, position] = 0
        with torch.inference_mode():
            states = network(input_ids=torch.tensor(trace.tokens.ids)[None], attention_mask=kept)
        expected = measure.value - float(measure(states.last_hidden_state)[0])
        assert attribution.values[position] == pytest.approx(expected, abs=TOLERANCE)
    assert np.abs(attribution.values).max() > 10 * TOLERANCE


@pytest.mark.parametrize("name", ["bart", "t5"])
def test_masked_keys_of_an_encoder_are_masked_across_too(name, tiny_model, checkpoint):
    family, model = tiny.TEXT_FAMILIES[name], tiny_model(name)
    trace = trace_of(model, family)
    network = AutoModel.from_pretrained(checkpoint(name), attn_implementation="eager").eval()
    measure = measured(model, trace, OTHER)
    (attribution,) = attribute_inputs(model, trace, OTHER, methods=["keys_masked"])
    for position in range(len(trace.tokens)):
        kept = torch.ones(1, len(trace.tokens), dtype=torch.long)
        kept[0, position] = 0
        with torch.inference_mode():
            states = network(**model.inputs(trace.tokens, trace.target_tokens), attention_mask=kept)
        expected = measure.value - float(measure(states.last_hidden_state)[0])
        assert attribution.values[position] == pytest.approx(expected, abs=TOLERANCE)


@pytest.mark.parametrize("family", ALL, ids=by_name)
def test_every_method_that_is_there_gives_a_number_for_every_token(family, tiny_model):
    model = tiny_model(family.name)
    trace = trace_of(model, family)
    last = TokenState(position=len(trace.tokens if trace.target_tokens is None else trace.target_tokens) - 1)
    for outcome in (OTHER, last):
        methods = available_methods(model, trace, outcome)
        attributions = attribute_inputs(model, trace, outcome, most_points=1)
        left = [  # a product that is 0 but for rounding is left out
            method
            for method in methods
            if METHODS[method].is_quick and (method != "gradient_times_input" or family.name not in NO_LENGTH)
        ]
        assert [result.method for result in attributions] == left
        assert ("flow" in methods) == ("rollout" in methods) == (not family.is_encoder_decoder)
        assert ("gradient_times_input" in methods) == (outcome is OTHER)
        assert ("norms" in methods) == ("norms" in trace.measures())
        assert ("value_zeroing" in methods) == (not family.is_encoder_decoder)
        for result in attributions:
            assert result.values.shape == (len(trace.tokens),) and np.isfinite(result.values).all()
            assert np.abs(result.values).max() > 0
