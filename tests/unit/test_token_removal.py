"""Tokens taken away, each variant against a run of its own."""

import numpy as np
import pytest
import torch

import attnviz
from attnviz.effects.outcome import Similarity, TokenState, measured
from attnviz.effects.token_embeddings import BASELINES, EmbeddedText, removable
from attnviz.effects.token_removal import outcomes_without
from attnviz.model.interventions import MaskedKeys, ScaledOutput

TEXT, OTHER = "the cat sat on a mat", Similarity(text="a door opened")
TOLERANCE = 2e-5  # float32, rows of a batch summed in another order than one alone


def drawn(trace, n_variant=40):
    removed = np.random.default_rng(0).random((n_variant, len(trace.tokens))) < 0.5
    removed[0], removed[1], removed[2] = False, True, removed[3]
    return removed


@pytest.mark.parametrize("outcome", [OTHER, TokenState(position=4)])
def test_masked_keys_are_those_of_a_trace_of_its_own(tiny_model, outcome):
    bert = tiny_model("bert")
    trace = bert.trace(TEXT)
    removed, measure = drawn(trace), measured(bert, trace, outcome)
    outcomes = outcomes_without(bert, trace, outcome, removed, "keys_masked")
    for is_removed, number in zip(removed, outcomes, strict=True):
        masked = MaskedKeys(allowed=np.tile(~is_removed, (len(is_removed), 1)))
        changed = bert.trace(TEXT, interventions=[masked]).last_hidden_state
        assert number == pytest.approx(float(measure(torch.tensor(changed)[None])[0]), abs=TOLERANCE)
    assert outcomes[0] == pytest.approx(measure.value, abs=TOLERANCE) and outcomes[2] == outcomes[3]


@pytest.mark.parametrize("name", ["bert", "gpt2", "bart"])
def test_masked_keys_are_those_that_transformers_masks(name, tiny_model):
    """Its attention_mask hides tokens of the text that is read from every kind of attention; a decoder reads all that it writes."""
    model = tiny_model(name)
    trace = model.trace(TEXT, "a door opened" if name == "bart" else None)
    removed = drawn(trace, 6)
    removed[:, 0] = False  # or GPT-2's first token would have nothing to read
    outcomes = outcomes_without(model, trace, OTHER, removed, "keys_masked")
    measure = measured(model, trace, OTHER)
    inputs = model.inputs(trace.tokens, trace.target_tokens)
    for is_removed, outcome in zip(removed, outcomes, strict=True):
        with torch.inference_mode():
            mask = torch.tensor(~is_removed)[None].long()
            states = model.reference(**inputs | {"attention_mask": mask}).last_hidden_state
        assert outcome == pytest.approx(float(measure(states)[0]), abs=TOLERANCE)
    assert np.ptp(outcomes) > 100 * TOLERANCE


@pytest.mark.parametrize("baseline", ["padding", "end", "mask"])
def test_replaced_tokens_are_another_text(tiny_model, baseline):
    """Against transformers' own run on the ids of the text with the baseline's id in them."""
    bert = tiny_model("bert")
    trace = bert.trace(TEXT)
    removed, measure = drawn(trace), measured(bert, trace, OTHER)
    outcomes = outcomes_without(bert, trace, OTHER, removed, baseline=baseline)
    number = {
        "padding": bert.tokenizer.pad_token_id,
        "end": bert.tokenizer.sep_token_id,
        "mask": bert.tokenizer.mask_token_id,
    }[baseline]
    for is_removed, outcome in zip(removed, outcomes, strict=True):
        ids = np.where(is_removed & ~trace.tokens.is_special, number, trace.tokens.ids)
        with torch.inference_mode():
            states = bert.reference(input_ids=torch.tensor(ids)[None]).last_hidden_state
        assert outcome == pytest.approx(float(measure(states)[0]), abs=TOLERANCE)
    assert np.ptp(outcomes) > 100 * TOLERANCE


def test_zeros_and_the_order_of_baselines(tiny_model):
    bert = tiny_model("bert")
    trace = bert.trace(TEXT)
    labels = {baseline: EmbeddedText(bert, trace, baseline).baseline_label for baseline in BASELINES}
    assert labels == {"padding": "[PAD]", "end": "[SEP]", "mask": "[MASK]", "zeros": "zeros"}
    zeros = EmbeddedText(bert, trace, "zeros").baseline
    np.testing.assert_array_equal((zeros == 0).all(dim=1), ~trace.tokens.is_special)
    table = bert.reference.get_input_embeddings().weight.detach()
    padding = table[bert.tokenizer.pad_token_id].norm()
    taken = EmbeddedText(bert, trace).baseline_label
    assert taken == ("[PAD]" if padding > 0.1 * table.norm(dim=1).mean() else "[SEP]")
    assert EmbeddedText(tiny_model("gpt2"), tiny_model("gpt2").trace("a cat")).baseline_label != "zeros"


@pytest.mark.parametrize(("share", "taken"), [(0.0, "[SEP]"), (0.05, "[SEP]"), (0.2, "[PAD]")])
def test_a_vector_that_was_never_trained_is_not_taken(checkpoint, share, taken):
    """transformers writes zeros into the row of a new model's padding token, and torch never changes it. What is short is told
    by the other rows, here 50 times as long as they were."""
    bert = attnviz.load_model(str(checkpoint("bert")), is_mapped=False)  # one of its own, which is changed
    trace = bert.trace(TEXT)
    table = bert.reference.get_input_embeddings().weight.data
    table *= 50
    table[::3] *= 20
    table[bert.tokenizer.pad_token_id] = share * table.norm(dim=1).mean() / table.shape[1] ** 0.5
    assert EmbeddedText(bert, trace).baseline_label == taken
    assert EmbeddedText(bert, trace, "padding").baseline_label == "[PAD]"


def test_progress_and_batches(tiny_model, monkeypatch):
    bert = tiny_model("bert")
    trace = bert.trace(TEXT)
    whole = outcomes_without(bert, trace, OTHER, drawn(trace))
    monkeypatch.setattr("attnviz.effects.token_removal.TOKENS_AT_ONCE", 20)
    told = []
    parts = outcomes_without(bert, trace, OTHER, drawn(trace), progress=told.append)
    np.testing.assert_allclose(parts, whole, atol=TOLERANCE)
    assert len(told) > 10 and told[-1] == 1 and told == sorted(told)


def test_what_cannot_be_asked(tiny_model):
    bert = tiny_model("bert")
    trace = bert.trace(TEXT)
    with pytest.raises(attnviz.ShapeError, match="3 tokens were to be taken away or kept; the text has 8"):
        outcomes_without(bert, trace, OTHER, np.zeros((1, 3), dtype=bool))
    gpt2 = tiny_model("gpt2")
    with pytest.raises(attnviz.SelectionError, match="The baseline 'mask' was asked for"):
        EmbeddedText(gpt2, gpt2.trace("a cat"), "mask")
    changed = bert.trace(TEXT, interventions=[ScaledOutput(factor=0.0, layer=0)])
    with pytest.raises(attnviz.SelectionError, match="Trace the text without interventions"):
        EmbeddedText(bert, changed)


def test_the_model_is_as_it_was(tiny_model):
    """Vectors are replaced in a copy: no hook is left, and no parameter has a gradient."""
    bert = tiny_model("bert")
    trace = bert.trace(TEXT)
    text = EmbeddedText(bert, trace)
    text.states(text.baseline[None].requires_grad_()).sum().backward()
    assert not any(
        module._forward_hooks for module in bert.reference.modules() if isinstance(module, torch.nn.Embedding)
    )
    assert all(parameter.grad is None for parameter in bert.network.parameters())
    assert attnviz.verify(bert, bert.trace(TEXT)).passed


@pytest.mark.parametrize(("text", "masked"), [("the cat [MASK] on a mat", ()), (TEXT, (3,))])
def test_a_mask_stays(tiny_model, text, masked):
    """It already stands for no word; a baseline in its place would remove the blank to be filled in."""
    bert = tiny_model("bert")
    trace = bert.trace(text, masked=masked)
    assert trace.tokens.labels[3] == "[MASK]"
    assert removable(bert, trace.tokens).tolist() == [False, True, True, False, True, True, True, False]
    outcomes = outcomes_without(bert, trace, OTHER, np.eye(len(trace.tokens), dtype=bool))
    base = measured(bert, trace, OTHER).value
    changed = np.abs(outcomes - base) > TOLERANCE
    assert changed.tolist() == removable(bert, trace.tokens).tolist()
