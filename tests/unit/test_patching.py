"""States carried from one text's run into another's, against runs with that one state replaced."""

from dataclasses import replace

import numpy as np
import pytest

import attnviz
from attnviz.effects.outcome import Similarity, measured
from attnviz.effects.patching import (
    CARRIED,
    OF_HEADS,
    PatchEffects,
    differing,
    is_shifted,
    patch,
)
from attnviz.model.interventions import ReplacedOutput, ReplacedState
from attnviz.model.states import hidden_states
from tests import hand_made

TEXT, OTHER = "the cat sat on a mat", "the door sat on a cat"
TOLERANCE = 1e-4


def outcome(states):
    return states[:, 3, :4].sum(dim=1)


def of_trace(trace):
    return float(trace.last_hidden_state[3, :4].sum())


@pytest.fixture
def bert(tiny_model):
    return tiny_model("bert")


@pytest.mark.parametrize("carried", ["layer", "attention", "mlp", "heads"])
def test_every_layer_or_head_and_token(bert, carried):
    receiver, donor = bert.trace(TEXT), bert.trace(OTHER)
    patched = patch(bert, receiver, donor, outcome, carried=carried, layer=1)
    assert patched.base == pytest.approx(of_trace(receiver), abs=TOLERANCE)
    assert patched.donor == pytest.approx(of_trace(donor), abs=TOLERANCE)
    assert patched.outcomes.shape == (2 if carried == "heads" else 3, len(receiver.tokens))
    states = None if carried == "heads" else hidden_states(bert, donor).of(carried)
    for row, token in np.ndindex(patched.outcomes.shape):
        if states is None:
            replaced = ReplacedOutput(output=donor.output(1, row), layer=1, head=row, positions=(token,))
        else:
            replaced = ReplacedState(
                states=states["encoder", row], where=carried, layer=row, positions=(token,)
            )
        changed = bert.trace(TEXT, interventions=[replaced])
        assert patched.outcomes[row, token] == pytest.approx(of_trace(changed), abs=TOLERANCE)
    np.testing.assert_allclose(patched.changes, patched.outcomes - patched.base, atol=1e-6)
    if carried == "layer":  # after the last layer the outcome is of token 3 alone
        share = patched.changes[2] / (patched.donor - patched.base)
        np.testing.assert_allclose(share, np.arange(len(receiver.tokens)) == 3, atol=1e-4)


def test_some_rows_and_the_others_are_all_of_them(bert):
    receiver, donor, told = bert.trace(TEXT), bert.trace(OTHER), []
    whole = patch(bert, receiver, donor, outcome)
    first = patch(bert, receiver, donor, outcome, rows=[2], progress=told.append)
    both = first.joined(patch(bert, receiver, donor, outcome, rows=[0, 1]))
    assert np.isnan(first.outcomes[:2]).all() and told[-1] == 1
    np.testing.assert_allclose(both.outcomes, whole.outcomes, atol=TOLERANCE)


def test_a_text_patched_into_itself_has_no_share(bert):
    patched = patch(bert, bert.trace(TEXT), bert.trace(TEXT), outcome)
    assert not patched.has_difference and np.isnan(patched.shares).all()
    np.testing.assert_allclose(patched.outcomes, patched.base, atol=TOLERANCE)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
@pytest.mark.parametrize("carried", CARRIED)
def test_encoder_and_decoder(tiny_model, kind, carried):
    bart = tiny_model("bart")
    receiver, donor = bart.trace("the cat sat", "a door on mat"), bart.trace("the mat sat", "a cat on mat")
    patched = patch(
        bart, receiver, donor, lambda states: states[:, -1, :4].sum(dim=1), carried=carried, kind=kind
    )
    n_head = {"encoder": 2, "decoder": 5, "cross": 5}[kind]
    n_column = n_head if carried in OF_HEADS else len(receiver.query_tokens(kind))
    assert patched.outcomes.shape == (receiver.n_layers(kind), n_column)
    given = {"carried": carried, "kind": kind, "layer": 1}
    by_token = patch(bart, receiver, donor, lambda states: states[:, -1, :4].sum(dim=1), **given)
    tokens = receiver.key_tokens(kind) if carried in ("key", "value") else receiver.query_tokens(kind)
    assert by_token.outcomes.shape == (
        n_head if carried in OF_HEADS else receiver.n_layers(kind),
        len(tokens),
    )
    assert np.abs(patched.outcomes - patched.base).max() > 1e-3


def test_the_share_of_a_difference():
    effects = PatchEffects(
        receiver_tokens=hand_made.tokens(["a"]),
        donor_tokens=hand_made.tokens(["a"]),
        kind="encoder",
        carried="layer",
        layer=None,
        base=0.25,
        donor=0.75,
        outcomes=np.array([[0.25, 0.5, 0.75, 0.125, 0.25, np.nan]], dtype=np.float32),
    )
    np.testing.assert_allclose(effects.shares, [[0, 0.5, 1, -0.25, 0, np.nan]])


@pytest.mark.parametrize(
    ("outcomes", "shared"),
    [
        ([0, 1], True),  # the most that outcomes between the two can spread: a standard deviation of 1/2
        ([0, 1, 0, 1, np.nan], True),
        ([0, 1.125], False),
        ([0, 0, 0, 0, 0, 0, 0, 0, 1.5], True),  # the standard deviation is 0.47
        ([0, 0, 0, 0, 0, 0, 0, 0, 1.75], False),  # 0.55
        ([0.375, 0.625, -7.75], False),
    ],
)
def test_a_difference_that_is_small_beside_the_spread_is_not_shared_out(outcomes, shared):
    effects = PatchEffects(
        receiver_tokens=hand_made.tokens(["a"]),
        donor_tokens=hand_made.tokens(["a"]),
        kind="encoder",
        carried="heads",
        layer=0,
        base=0.0,
        donor=1.0,
        outcomes=np.array([outcomes], dtype=np.float32),
    )
    assert effects.has_difference and effects.can_be_shared == shared
    assert np.isnan(effects.shares).all() != shared
    np.testing.assert_array_equal(effects.changes, effects.outcomes)


def test_where_two_texts_differ(bert):
    read = bert.tokenize
    assert differing(read("the cat sat"), read("the mat sat")) == (2,)
    assert differing(read(TEXT), read(TEXT)) == ()
    assert not is_shifted(read("the cat sat"), read("the mat sat"))
    assert is_shifted(read("the cat sat on"), read("cat sat on the"))


def test_words_that_a_long_text_repeats_are_aligned_too():
    """difflib leaves out what a text of 200 parts or more has often, unless told otherwise."""

    def read(*labels):
        return replace(
            hand_made.tokens(labels),
            ids=np.array([["the", "cat", "a", "mat"].index(label) for label in labels]),
        )

    repeated = ["the", "cat"] * 120
    assert is_shifted(read("a", *repeated), read(*repeated, "mat"))
    assert not is_shifted(read("a", *repeated), read("mat", *repeated))
    with pytest.raises(attnviz.ShapeError, match=r"have 240 and 241 tokens, and differ in “mat”\. Give"):
        differing(read(*repeated), read("mat", *repeated))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ("the cat sat", r"have 8 and 5 tokens, and differ in “on a mat”. Give a sentence of 8 tokens"),
        ("the door sat on a mat when", "differ in “cat” and “door”, “when”"),
        ("the door cat when sat it on a mat", r"differ in “door”, “when”, “it”\. "),
        ("the door cat when sat it on the a mat", r"differ in “door”, “when”, “it” and more\. "),
    ],
)
def test_texts_of_other_lengths(bert, other, message):
    with pytest.raises(attnviz.ShapeError, match=message):
        patch(bert, bert.trace(TEXT), bert.trace(other), outcome)


def test_second_texts_of_other_lengths(tiny_model):
    model = tiny_model("t5")
    receiver, donor = model.trace("the cat", "the cat sat on"), model.trace("the cat", "a mat")
    n_own, n_other = len(receiver.target_tokens), len(donor.target_tokens)
    assert n_own > n_other
    with pytest.raises(
        attnviz.ShapeError, match=f"{n_own} and {n_other} tokens.*Give a sentence of {n_own} tokens"
    ):
        patch(model, receiver, donor, outcome)


def test_places_that_are_not_there(bert, tiny_model):
    with pytest.raises(attnviz.SelectionError, match="Layer 3 was asked for"):
        patch(bert, bert.trace(TEXT), bert.trace(OTHER), outcome, rows=[3])
    bitnet = tiny_model("bitnet")
    for carried, part in (("attention", "its W_O"), ("mlp", "its MLP")):
        with pytest.raises(attnviz.SelectionError, match=f"does not know {part}"):
            patch(bitnet, bitnet.trace("the cat"), bitnet.trace("the mat"), outcome, carried=carried)
    with pytest.raises(attnviz.SelectionError, match="Token 8 was asked for"):
        patch(bert, bert.trace(TEXT), bert.trace(OTHER), outcome, carried="value", position=8)


@pytest.mark.parametrize("family", ["deberta", "deberta-v2"])
def test_queries_and_keys_that_also_make_a_bias_are_refused(tiny_model, family):
    model = tiny_model(family)
    given = model, model.trace(TEXT), model.trace(OTHER), outcome
    for carried, what in (("query", "queries"), ("key", "keys")):
        with pytest.raises(
            attnviz.UnsupportedArchitectureError, match=f"The {what} of .* a bias of the distance"
        ):
            patch(*given, carried=carried)
    patched = patch(*given, carried="pattern")
    assert np.isfinite(patched.outcomes).all()


def test_of_shared_keys_there_are_as_many_as_the_model_has(tiny_model):
    llama = tiny_model("llama")
    patched = patch(llama, llama.trace("the cat sat"), llama.trace("the mat sat"), outcome, carried="key")
    assert patched.outcomes.shape == (3, 2)  # six heads read them


@pytest.mark.parametrize(
    ("unit", "base", "donor", "there"),
    [
        ("probability", 3e-7, 8e-6, True),  # 27 times as likely, and both are rare
        ("probability", 0.5, 0.50001, False),
        ("probability", 0.5, 0.5004, False),  # a thousandth of .5004 is .0005004
        ("probability", 0.5, 0.502, True),
        ("probability", 1.0, 0.9990005, False),  # above a thousandth of the smaller one, not of the larger
        ("cosine", 3e-7, 8e-6, False),  # rounding
        ("cosine", 0.5, 0.5001, True),
    ],
)
def test_what_counts_as_a_difference_of_outcomes(unit, base, donor, there):
    effects = PatchEffects(
        receiver_tokens=hand_made.tokens(["a"]),
        donor_tokens=hand_made.tokens(["a"]),
        kind="encoder",
        carried="layer",
        layer=None,
        unit=unit,
        base=base,
        donor=donor,
        outcomes=np.zeros((1, 1), dtype=np.float32),
    )
    assert effects.has_difference is there
    assert np.isfinite(effects.shares).all() == there


def test_the_unit_is_that_of_what_is_measured(bert):
    receiver, donor = bert.trace(TEXT), bert.trace(OTHER)
    patched = patch(bert, receiver, donor, measured(bert, receiver, Similarity(text=OTHER)))
    assert patched.unit == "cosine"
    assert patched.joined(patched).unit == "cosine"


@pytest.mark.stand_ins
def test_states_that_cannot_be_carried(bert, types_unchecked):
    with pytest.raises(attnviz.SelectionError, match="“logits” was to be carried over; what can be is "):
        patch(bert, bert.trace(TEXT), bert.trace(OTHER), outcome, carried="logits")
