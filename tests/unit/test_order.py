"""Another order of the same tokens: nothing changes without positions, and a hand-made shuffle agrees with positions."""

import copy

import numpy as np
import pytest
import torch

import attnviz
from attnviz.lessons.order import shuffle, without_positions


def test_without_positions_order_does_not_matter(embedded, door_trace):
    shuffled = shuffle(embedded, door_trace, seed=3)
    assert sorted(shuffled.order) == list(range(11))
    assert shuffled.order[0] == 0 and shuffled.order[10] == 10  # [CLS] and [SEP] stay
    assert not np.array_equal(shuffled.order, np.arange(11))
    assert shuffled.without_positions.max() < 1e-5  # float32
    assert shuffled.with_positions.max() > 0.05


def test_with_positions_it_is_the_shuffled_text(embedded):
    trace = embedded.trace("the door opened")
    shuffled = shuffle(embedded, trace, seed=1)
    ids = torch.tensor(trace.tokens.ids[shuffled.order])[None]
    with torch.inference_mode():
        theirs = embedded.reference(
            input_ids=ids, attention_mask=torch.ones_like(ids), token_type_ids=torch.zeros_like(ids)
        ).last_hidden_state[0]
    for place, token in enumerate(shuffled.order):
        cosine = torch.nn.functional.cosine_similarity(
            torch.tensor(trace.last_hidden_state[token]), theirs[place], dim=0
        )
        assert shuffled.with_positions[token] == pytest.approx(1 - float(cosine), abs=1e-5)


def test_same_seed_same_order(embedded, door_trace):
    first, again = (shuffle(embedded, door_trace, seed=5) for _ in range(2))
    np.testing.assert_array_equal(first.order, again.order)
    np.testing.assert_array_equal(first.with_positions, again.with_positions)


def test_a_causal_mask_tells_before_from_after_without_positions(tiny_model):
    model = tiny_model("gpt2")
    shuffled = shuffle(model, model.trace("the cat sat"), seed=0)
    assert shuffled.without_positions.max() > 0.01


def test_a_network_whose_position_vectors_are_zero_knows_the_order_only_under_a_causal_mask(tiny_model):
    """Transformers' own networks, zeroed by hand: the first token changes places with the second, the last stays."""
    changes = {}
    for name, table in (("gpt2", "wpe"), ("bert", "embeddings.position_embeddings")):
        network = copy.deepcopy(tiny_model(name).reference)
        torch.nn.init.zeros_(network.get_submodule(table).weight)
        ids = torch.tensor([[5, 9, 7, 11]])
        with torch.inference_mode():
            state, other = (
                network(input_ids=each).last_hidden_state[0, -1] for each in (ids, ids[:, [1, 0, 2, 3]])
            )
        changes[name] = float((state - other).abs().max())
    assert changes["bert"] < 1e-5 < 1e-2 < changes["gpt2"]


def test_without_positions_tokens_still_see_each_other(embedded, door_trace):
    """Otherwise order would not matter because nothing was attended to."""
    network = without_positions(embedded)
    ids = embedded.inputs(door_trace.tokens)["input_ids"]
    changed = ids.clone()
    changed[0, 5] = int(embedded.trace("bank").tokens.ids[1])
    with torch.inference_mode():
        first, second = (network(input_ids=token_ids).last_hidden_state[0] for token_ids in (ids, changed))
    others = np.arange(11) != 5
    assert (first - second)[others].abs().max() > 0.01


def test_a_family_that_takes_no_positions(tiny_model):
    model = tiny_model("bart")
    with pytest.raises(
        attnviz.UnsupportedArchitectureError, match=r"reads two texts.*Select a model such as BERT"
    ):
        shuffle(model, model.trace("the cat sat", "a door"))


def test_a_family_without_a_table_of_positions(tiny_model):
    model = tiny_model("llama")
    with pytest.raises(attnviz.UnsupportedArchitectureError, match="adds no position vectors"):
        shuffle(model, model.trace("the cat sat"))


def test_a_family_whose_scores_have_positions_too(tiny_model):
    """Without the vectors, MPNet would still tell one order from another."""
    model = tiny_model("mpnet")
    with pytest.raises(attnviz.UnsupportedArchitectureError, match="relative positions in its scores too"):
        shuffle(model, model.trace("the cat sat"))


@pytest.mark.parametrize(
    ("family", "n_row"), [("bert", 37), ("distilbert", 37), ("gpt2", 37), ("llama", None), ("t5", None)]
)
def test_the_learned_table(tiny_model, family, n_row):
    table = tiny_model(family).learned_positions
    assert (None if table is None else len(table)) == n_row


def test_the_embedded_models_table_is_its_own(embedded):
    own = embedded.network.embeddings.position_embeddings.weight.detach().numpy()
    table = embedded.learned_positions
    assert table is not None and np.shares_memory(table, own)
    np.testing.assert_array_equal(table, own)
