"""The examples of the bundled language model: what each says is so in transformers' own eager attention, and in no head more so."""

import numpy as np
import pytest
import torch

from attnviz.effects.outcome import outcome_from
from attnviz.figures.numbers import share_text
from attnviz.model.catalogue import BERT, EMBEDDED, SMOLLM2
from attnviz.records import bare
from benchmarks import presets as measured
from ui.choice.presets import DOOR_IT, MEASURED, PRESETS, first_preset, offered_presets, read_presets
from ui.choice.selection import first_selection

pytestmark = pytest.mark.slow

D_HEAD = 64
WEIGHTS = ("Induction", "Duplicate", "Retrieval")


@pytest.fixture(params=MEASURED, ids=lambda example: example.name.split(":")[0])
def preset(request):
    return request.param


def answered(model, ids, off=None):
    """Logits after the last token, by transformers' modules: the head's part of W_O's input is zeroed."""

    def zero(_, given):
        changed = given[0].clone()
        changed[..., off[1] * D_HEAD : (off[1] + 1) * D_HEAD] = 0
        return (changed,)

    handles = []
    if off is not None:
        handles = [model.reference.layers[off[0]].self_attn.o_proj.register_forward_pre_hook(zero)]
    try:
        with torch.inference_mode():
            last = model.reference(input_ids=torch.tensor([ids.tolist()])).last_hidden_state[0, -1]
            return model.reference.embed_tokens.weight.double() @ last.double()
    finally:
        for handle in handles:
            handle.remove()


def outcome_number(logits, preset, model):
    """The outcome that the preset sets, from logits."""
    outcome = outcome_from(preset.outcome)
    ids = [
        model.tokenizer.encode(token.replace("␣", " "))[0]
        for token in (outcome.token, outcome.against)
        if token is not None
    ]
    if len(ids) == 2:
        return float(logits[ids[0]] - logits[ids[1]])
    return float(logits.softmax(dim=-1)[ids[0]])


def all_weights(model, ids):
    """Eager attention's weights of every head, [layer, head, query, key]."""
    weights = []

    def note(_, __, output):
        weights.append(output[1][0].numpy())

    handles = [layer.self_attn.register_forward_hook(note) for layer in model.reference.layers]
    try:
        with torch.inference_mode():
            model.reference(input_ids=torch.tensor([ids.tolist()]))
    finally:
        for handle in handles:
            handle.remove()
    return np.stack(weights)


def pairs_of(preset, ids, labels):
    """The pairs of query and key whose mean weight the example is about, by loops over the tokens."""
    if preset.name.startswith("Retrieval"):
        return [preset.at]
    pairs = []
    for query in range(len(ids)):
        for earlier in reversed(range(query)):
            if ids[earlier] == ids[query]:
                if preset.name.startswith("Induction") and earlier + 1 < query:
                    pairs.append((query, earlier + 1))
                if preset.name.startswith("Duplicate") and bare(labels[query]).isalpha():
                    pairs.append((query, earlier))
                break
    return pairs


def test_the_numbers_are_those_of_transformers(preset, smollm2):
    tokens = smollm2.tokenize(preset.text)
    labels = [bare(tokens.labels[at]) for at in preset.at]
    assert labels == [preset.query, preset.key]
    if preset.name.startswith(WEIGHTS):
        weights = all_weights(smollm2, tokens.ids)
        pairs = pairs_of(preset, tokens.ids, tokens.labels)
        assert preset.at in pairs
        means = np.mean([weights[:, :, query, key] for query, key in pairs], axis=0)
        assert means[preset.head] == pytest.approx(preset.numbers[0], abs=1e-4)
        assert means.max() == pytest.approx(means[preset.head], abs=1e-6)  # of all heads
        assert share_text(preset.numbers[0]) in preset.shows
        if preset.outcome:
            logits = answered(smollm2, tokens.ids)
            probability = outcome_number(logits, preset, smollm2)
            assert probability == pytest.approx(preset.numbers[1], abs=1e-4)
            assert probability == pytest.approx(float(logits.softmax(dim=-1).max()))  # the model's own answer
    else:
        whole, without = (
            outcome_number(answered(smollm2, tokens.ids, off), preset, smollm2) for off in (None, preset.head)
        )
        assert (whole, without) == pytest.approx(preset.numbers, abs=1e-3)
        form = share_text if "probability" in preset.shows else "{:.2f}".format
        assert all(form(number) in preset.shows for number in preset.numbers)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "preset",
    [example for example in MEASURED if not example.name.startswith(WEIGHTS)],
    ids=lambda example: example.name.split(":")[0],
)
def test_no_other_head_changes_the_answer_more(preset, smollm2):
    ids = smollm2.tokenize(preset.text).ids
    whole = outcome_number(answered(smollm2, ids), preset, smollm2)
    sizes = np.array(
        [
            [
                abs(outcome_number(answered(smollm2, ids, (layer, head)), preset, smollm2) - whole)
                for head in range(9)
            ]
            for layer in range(30)
        ]
    )
    assert tuple(np.unravel_index(sizes.argmax(), sizes.shape)) == tuple(preset.head)


def test_the_command_writes_what_the_file_holds(smollm2):
    """For one example, to save time; where it fails: `make showcases`."""
    [example] = [example for example in measured.EXAMPLES if example.name.startswith("Duplicate")]
    trace = smollm2.trace(example.text)
    written = measured._toml(measured.preset_of(example, trace, example.find(smollm2, trace, example)))
    assert read_presets(written) == tuple(known for known in MEASURED if known.name == example.name)
    assert [known.name for known in MEASURED] == [example.name for example in measured.EXAMPLES]


def test_which_are_offered_and_first():
    assert offered_presets(SMOLLM2, fills_blanks=False)[: len(MEASURED)] == MEASURED
    assert not set(offered_presets(EMBEDDED, fills_blanks=False)) & set(MEASURED)
    assert offered_presets(BERT, fills_blanks=True) == PRESETS
    assert first_preset(SMOLLM2) == MEASURED[0] and first_preset(EMBEDDED) == DOOR_IT
    first = first_selection(SMOLLM2)
    assert (first.text, first.place, first.outcome) == (
        MEASURED[0].text,
        MEASURED[0].head,
        MEASURED[0].outcome,
    )
