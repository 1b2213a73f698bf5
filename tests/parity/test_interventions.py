"""Every model family: interventions do in the network what they say, and variants in a batch equal single runs.

The output projections are named by hand in `test_output_weights`, and asked with torch's hooks.
"""

import numpy as np
import pytest
import torch

from attnviz.model.interventions import (
    MaskedKeys,
    ReplacedOutput,
    ReplacedState,
    ReplacedWeights,
    ScaledOutput,
)
from attnviz.model.variants import states_of_variants
from tests import tiny
from tests.parity.test_output_weights import FAMILIES, PROJECTIONS
from tests.tiny import trace_of

OTHER, OTHER_SECOND = "the cat sat when opened", "a door ."
# float32: rows of a batch are summed in another order than one alone, and the sizes of states are up to 10.
TOLERANCE = 1e-4
ALL = list(tiny.TEXT_FAMILIES.values())


def by_name(family):
    return family.name


def read_other(model, family):
    return model.trace(OTHER, OTHER_SECOND if family.is_encoder_decoder else None)


def put_out(model, family, kind, layer, interventions):
    """What the model's own W_O of a layer gives for each query, its bias included."""
    path = PROJECTIONS[family.name][kind].format(layer)
    noted = []
    handle = model.network.get_submodule(path).register_forward_hook(
        lambda _, __, output: noted.append(output.reshape(-1, output.shape[-1]).clone())
    )
    trace = trace_of(model, family, interventions=interventions)
    handle.remove()
    return trace, noted[layer if len(noted) > 1 else 0].numpy()  # ALBERT has one for all layers


@pytest.mark.parametrize("family", FAMILIES, ids=by_name)
def test_a_head_switched_off_is_missing_from_its_layer_and_nothing_else_is(family, tiny_model):
    model = tiny_model(family.name)
    for kind, n_layer in family.n_layers.items():
        for layer in range(n_layer):
            head = (layer + 1) % family.heads_of(kind)[layer]
            plain, before = put_out(model, family, kind, layer, ())
            off = ScaledOutput(kind=kind, layer=layer, head=head, factor=0.0)
            changed, after = put_out(model, family, kind, layer, [off])
            call = plain.attention(layer, kind)
            missing = (
                plain.weights(layer, head, kind) @ plain.value(layer, head, kind) @ call.output_weight[head]
            )
            np.testing.assert_allclose(before - missing, after, atol=TOLERANCE, rtol=TOLERANCE)
            assert np.abs(missing).max() > 0.01
            assert not changed.output(layer, head, kind).any()  # the trace says what was used
            np.testing.assert_array_equal(changed.query(layer, head, kind), plain.query(layer, head, kind))


@pytest.mark.parametrize("family", FAMILIES, ids=by_name)
def test_an_attention_output_carried_over(family, tiny_model):
    """At the positions that are named, and at no other."""
    model = tiny_model(family.name)
    for kind, n_layer in family.n_layers.items():
        layer = n_layer - 1
        _, before = put_out(model, family, kind, layer, ())
        states = np.arange(before.size, dtype=np.float32).reshape(before.shape) / before.size
        replaced = ReplacedState(states=states, where="attention", kind=kind, layer=layer, positions=(1,))
        _, after = put_out(model, family, kind, layer, [replaced])
        np.testing.assert_allclose(after[1], states[1], atol=1e-6)
        np.testing.assert_array_equal(np.delete(after, 1, axis=0), np.delete(before, 1, axis=0))


@pytest.mark.parametrize("family", ALL, ids=by_name)
def test_the_residual_stream_of_another_text_gives_the_other_text(family, tiny_model):
    """All of it, after any layer: what follows is a function of it alone. None of it: nothing has changed."""
    model = tiny_model(family.name)
    plain, other = trace_of(model, family), read_other(model, family)
    if family.is_encoder_decoder:
        stream = [("encoder", layer) for layer in range(family.n_layers["encoder"])]
        stream += [("decoder", layer) for layer in range(family.n_layers["decoder"])]
        # the decoder reads the encoder's output as well, so only both texts in full are the other text
        stream = [
            [("encoder", family.n_layers["encoder"] - 1), place] for place in stream if place[0] == "decoder"
        ]
    else:
        (kind,) = family.n_layers
        stream = [[(kind, layer)] for layer in range(family.n_layers[kind])]
    assert len(plain.last_hidden_state) == len(other.last_hidden_state)
    assert np.abs(plain.last_hidden_state - other.last_hidden_state).max() > 0.1
    noted = states_after_layers(model, other)
    for places in stream:
        carried = [ReplacedState(states=noted[kind, layer], kind=kind, layer=layer) for kind, layer in places]
        changed = trace_of(model, family, interventions=carried)
        np.testing.assert_allclose(changed.last_hidden_state, other.last_hidden_state, atol=TOLERANCE)
        none = [
            ReplacedState(states=noted[kind, layer], kind=kind, layer=layer, positions=())
            for kind, layer in places
        ]
        unchanged = trace_of(model, family, interventions=none)
        np.testing.assert_array_equal(unchanged.last_hidden_state, plain.last_hidden_state)


def states_after_layers(model, trace):
    from attnviz.model.states import hidden_states

    return hidden_states(model, trace).layers


@pytest.mark.parametrize("family", ALL, ids=by_name)
def test_variants_of_a_batch_equal_one_at_a_time(family, tiny_model):
    model = tiny_model(family.name)
    plain = trace_of(model, family)
    variants = []
    for kind, n_layer in family.n_layers.items():
        n_query, n_key = len(plain.query_tokens(kind)), len(plain.key_tokens(kind))
        cell = np.ones((n_query, n_key), dtype=bool)
        cell[n_query - 1, 0] = False
        first = np.zeros((n_query, n_key), dtype=np.float32)
        first[:, 0] = 1
        output = plain.output(n_layer - 1, 0, kind)[:1]
        for layer in range(n_layer):
            place = {"kind": kind, "layer": layer, "head": (layer + 1) % family.heads_of(kind)[layer]}
            variants += [
                [ScaledOutput(factor=0.0, **place)],
                [MaskedKeys(allowed=cell, **place)],
                [ReplacedWeights(weights=first, **place), ScaledOutput(factor=2.0, kind=kind, layer=layer)],
                [ReplacedOutput(output=output, positions=(0, n_query - 1), **place)],
            ]
    variants.append([])
    together = np.zeros((len(variants), *plain.last_hidden_state.shape), dtype=np.float32)
    for places, states in states_of_variants(model, plain, variants):
        together[list(places)] = states.numpy()
    for variant, states in zip(variants, together, strict=True):
        alone = trace_of(model, family, interventions=variant).last_hidden_state
        np.testing.assert_allclose(states, alone, atol=TOLERANCE, rtol=TOLERANCE)
    moved = np.abs(together - plain.last_hidden_state).max(axis=(1, 2))
    assert moved[-1] < TOLERANCE and (moved[:-1] > 10 * TOLERANCE).mean() > 0.5


def test_after_all_of_it_the_models_are_as_they_were(tiny_model):
    """Last in this file: every family above has been changed in many passes."""
    for name in ("bert", "albert", "gpt2", "bart", "t5"):
        family, model = tiny.TEXT_FAMILIES[name], tiny_model(name)
        fresh = tiny.build(family)
        trace = trace_of(model, family)
        with torch.inference_mode():
            expected = fresh(**model.inputs(trace.tokens, trace.target_tokens)).last_hidden_state[0]
        np.testing.assert_allclose(trace.last_hidden_state, expected, atol=TOLERANCE)
