"""The story of Mary and John on the bundled language model, against transformers' own model in float64 with hooks.

Wang et al. 2022, "Interpretability in the Wild" (arXiv:2211.00593): heads move the name that is not repeated to the end.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
import transformers as tf

from attnviz.effects.ablation import ablate
from attnviz.effects.lens import follow_tokens
from attnviz.effects.logit_attribution import attribute_token
from attnviz.effects.outcome import TokenAnswer, measured
from attnviz.records import Head

TEXT = "When Mary and John went to the store, John gave a drink to"
AT, TOKEN, AGAINST = 13, " Mary", " John"
SECOND_JOHN = 9
TOLERANCE = 2e-3  # float32 through 30 layers, logits of up to 20


@pytest.fixture(scope="module")
def trace(smollm2):
    return smollm2.trace(TEXT)


@pytest.fixture(scope="module")
def theirs(smollm2) -> Iterator[tf.PreTrainedModel]:
    yield tf.AutoModelForCausalLM.from_pretrained(
        smollm2.folder, attn_implementation="eager", dtype=torch.float64
    ).eval()


@pytest.fixture(scope="module")
def ids(smollm2) -> tuple[torch.Tensor, int, int]:
    """Ids of the text, and of the two names with their spaces, as transformers' own tokenizer reads them."""
    read = tf.AutoTokenizer.from_pretrained(smollm2.folder)
    [first], [second] = (read(name, add_special_tokens=False)["input_ids"] for name in (TOKEN, AGAINST))
    return read(TEXT, return_tensors="pt")["input_ids"], first, second


@pytest.fixture(scope="module")
def difference_without(theirs, ids) -> Callable[..., float]:
    """The difference of the two logits while the output of a head is zeros before W_O."""
    given, first, second = ids
    size = theirs.config.head_dim

    def run(head: Head | None = None) -> float:
        def off(_, args):
            joined = args[0].clone()
            joined[..., size * head.head : size * (head.head + 1)] = 0
            return (joined,)

        handle = None
        if head is not None:
            handle = theirs.model.layers[head.layer].self_attn.o_proj.register_forward_pre_hook(off)
        with torch.inference_mode():
            logits = theirs(given).logits[0, AT]
        if handle is not None:
            handle.remove()
        return float(logits[first] - logits[second])

    return run


@pytest.fixture(scope="module")
def run(theirs, ids):
    """What passes at the last token: inputs of W_O, outputs of MLPs, values, weights, the states, and the frozen direction."""
    given, first, second = ids
    seen: dict[str, list[torch.Tensor]] = {"joined": [], "mlp": [], "value": []}
    handles = []
    for layer in theirs.model.layers:
        handles += [
            layer.self_attn.o_proj.register_forward_pre_hook(
                lambda _, args: seen["joined"].append(args[0][0, AT])
            ),
            layer.mlp.register_forward_hook(lambda _, __, made: seen["mlp"].append(made[0, AT])),
            layer.self_attn.v_proj.register_forward_hook(lambda _, __, made: seen["value"].append(made[0])),
        ]
    states = []
    handles.append(theirs.model.norm.register_forward_pre_hook(lambda _, args: states.append(args[0][0, AT])))
    with torch.inference_mode():
        output = theirs(given, output_attentions=True, output_hidden_states=True)
    for handle in handles:
        handle.remove()
    norm = theirs.model.norm
    scale = (states[0].square().mean() + norm.variance_epsilon).sqrt()
    apart = theirs.lm_head.weight[first] - theirs.lm_head.weight[second]
    return output, seen, states[0], (norm.weight * apart / scale).detach()


@pytest.mark.nightly
def test_the_outcome_without_heads(smollm2, trace, difference_without):
    outcome = measured(smollm2, trace, TokenAnswer(position=AT, token=TOKEN, against=AGAINST))
    assert outcome.value == pytest.approx(difference_without(), abs=TOLERANCE)
    ablation = ablate(smollm2, trace, outcome, layers=[2, 23, 24])
    for head in (Head(2, 7), Head(23, 3), Head(23, 0), Head(24, 4)):
        assert ablation.heads[head] == pytest.approx(difference_without(head), abs=TOLERANCE)
    assert ablation.effects[23, 3] == pytest.approx(-3.04, abs=0.005)
    assert ablation.effects[24, 4] > 0.5  # the model is surer of Mary without it


def test_what_each_part_adds_to_the_difference(smollm2, trace, run, theirs):
    effects = attribute_token(smollm2, trace, AT, TOKEN, against=AGAINST)
    output, seen, last, direction = run
    size, n_head = theirs.config.head_dim, theirs.config.num_attention_heads
    for layer, (joined, mlp) in enumerate(zip(seen["joined"], seen["mlp"], strict=True)):
        weight = theirs.model.layers[layer].self_attn.o_proj.weight.detach()  # [d_model, head x d_head]
        of_heads = [
            float(
                joined[size * head : size * (head + 1)]
                @ weight[:, size * head : size * (head + 1)].T
                @ direction
            )
            for head in range(n_head)
        ]
        np.testing.assert_allclose(effects.heads[layer], of_heads, atol=TOLERANCE)
        assert effects.mlps[layer] == pytest.approx(float(mlp @ direction), abs=TOLERANCE)
    start = output.hidden_states[0][0, AT]
    assert effects.embedding == pytest.approx(float(start @ direction), abs=TOLERANCE)
    assert effects.summed == pytest.approx(
        float(last @ direction), abs=TOLERANCE
    )  # the model's own difference
    assert effects.passed
    assert effects.ranked()[0] == Head(23, 3)
    assert effects.heads[23, 3] == pytest.approx(2.86, abs=0.005)
    assert effects.heads[24, 4] < -1
    assert all(effects.heads[head] > 0.5 for head in (Head(23, 0), Head(23, 1), Head(23, 7)))


def test_what_a_head_adds_by_the_token_that_it_reads(smollm2, trace, run, theirs):
    """L23 H3 looks at the second John, and what it carries from there is Mary."""
    effects = attribute_token(smollm2, trace, AT, TOKEN, against=AGAINST)
    output, seen, _, direction = run
    size = theirs.config.head_dim
    group = theirs.config.num_attention_heads // theirs.config.num_key_value_heads
    for layer, head in (Head(23, 3), Head(0, 8)):
        weights = output.attentions[layer][0, head, AT]  # [key]
        value = seen["value"][layer][:, size * (head // group) : size * (head // group + 1)]  # [key, d_head]
        along = (
            theirs.model.layers[layer].self_attn.o_proj.weight.detach()[:, size * head : size * (head + 1)].T
            @ direction
        )
        expected = (weights[:, None] * value @ along).numpy()
        np.testing.assert_allclose(effects.sources[layer][head], expected, atol=TOLERANCE)
        assert effects.sources[layer][head].sum() == pytest.approx(effects.heads[layer, head], abs=1e-5)
    assert int(effects.sources[23][3].argmax()) == SECOND_JOHN == int(trace.weights(23, 3)[AT].argmax())


def test_the_names_layer_by_layer(smollm2, trace, run, theirs, ids):
    followed = follow_tokens(smollm2, trace, AT, [TOKEN, AGAINST])
    output, _, last, _ = run
    states = [
        *(hidden_state[0, AT] for hidden_state in output.hidden_states[1:-1]),
        last,
    ]  # transformers' own last is normalised
    with torch.inference_mode():
        logits = theirs.lm_head(theirs.model.norm(torch.stack(states)))  # [layer, vocabulary]
    chosen = logits[:, list(ids[1:])]
    np.testing.assert_allclose(followed.logits, chosen, atol=TOLERANCE)
    np.testing.assert_allclose(followed.differences, chosen[:, 0] - chosen[:, 1], atol=TOLERANCE)
    np.testing.assert_allclose(
        followed.probabilities, logits.softmax(dim=-1)[:, list(ids[1:])], rtol=5e-3, atol=1e-9
    )
    for at, number in enumerate(ids[1:]):
        rank = 1 + (logits > logits[:, number : number + 1] + TOLERANCE).sum(dim=-1).numpy()
        lowest = 1 + (logits > logits[:, number : number + 1] - TOLERANCE).sum(dim=-1).numpy()
        assert (rank <= followed.ranks[:, at]).all() and (followed.ranks[:, at] <= lowest).all()
    assert followed.labels == ("␣Mary", "␣John")
    assert followed.ranks[-1, 0] == 1 and followed.probabilities[-1, 0] == pytest.approx(0.923, abs=0.0005)
    assert (followed.differences[:23] < 0).all() and (followed.differences[23:] > 0).all()


@pytest.mark.nightly
def test_no_head_matters_more_than_the_one_that_moves_mary(smollm2, trace):
    outcome = measured(smollm2, trace, TokenAnswer(position=AT, token=TOKEN, against=AGAINST))
    ablation = ablate(smollm2, trace, outcome)
    assert ablation.ranked()[0] == Head(23, 3)
