"""The modules of a network's layers and of their MLPs, against their names in transformers' code and sums on paper."""

import pytest
import torch
from attnviz.model.layer_modules import _rows_joined
from attnviz.model.mlp_modules import _is_sum, _Layer, _mlp_of
from torch import nn

from attnviz.model.states import hidden_states


@pytest.mark.parametrize(
    ("name", "layers"),
    [
        ("bert", [f"encoder.layer.{layer}" for layer in range(3)]),
        ("gpt2", [f"h.{layer}" for layer in range(3)]),
        ("llama", [f"layers.{layer}" for layer in range(3)]),
        (
            "bart",
            [f"encoder.layers.{layer}" for layer in range(3)]
            + [f"decoder.layers.{layer}" for layer in range(4)],
        ),
        ("albert", ["encoder.albert_layer_groups.0"]),  # which runs three times
    ],
)
def test_layers_are_the_entries_of_the_outermost_list(name, layers, tiny_model):
    assert list(tiny_model(name).layers) == layers


def test_states_are_those_of_their_modules(tiny_model):
    """Of an encoder-decoder model: each place against a hook on transformers' own module; across there are heads alone."""
    model = tiny_model("bart")
    seen = {}

    def note(place, at):
        def keep(module, given, made):
            seen[place, at] = (made[0] if isinstance(made, tuple) else made)[0]

        return keep

    network, hooks = model.reference, []
    for kind in ("encoder", "decoder"):
        for number, layer in enumerate(getattr(network, kind).layers):
            parts = {
                ("layer", kind): layer,
                ("attention", kind): layer.self_attn.out_proj,
                ("mlp", kind): layer.fc2,
            }
            if kind == "decoder":
                parts["attention", "cross"] = layer.encoder_attn.out_proj
            hooks += [
                module.register_forward_hook(note(place, (of, number)))
                for (place, of), module in parts.items()
            ]
    trace = model.trace("the cat sat", "a door")
    with torch.inference_mode():
        network(**model.inputs(trace.tokens, trace.target_tokens))
    for hook in hooks:
        hook.remove()
    states = hidden_states(model, trace)
    for place in ("layer", "attention", "mlp"):
        expected = {at: made for (where, at), made in seen.items() if where == place}
        assert states.of(place).keys() == expected.keys()
        for at, made in states.of(place).items():
            torch.testing.assert_close(torch.tensor(made), expected[at], rtol=1e-4, atol=1e-5)


def layer_of(*calls, given=(1.0, 2.0), attention=(0.5, 1.5), left, n_before=0):
    """A layer of one row and token, with the modules that ran in it: each with its input and output."""

    def tensor(numbers):
        return torch.tensor([[numbers]])

    return _Layer(
        given=tensor(given),
        left=None if left is None else tensor(left),
        attention=None if attention is None else tensor(attention),
        calls=[(module, tensor(taken), tensor(made)) for module, taken, made in calls],
        n_before=n_before,
    )


class TestMlp:
    """What enters is (1, 2) and what W_O gives (0.5, 1.5): the stream between is (1.5, 3.5)."""

    mlp, other, wrapper = nn.Identity(), nn.Identity(), nn.Identity()
    norm = nn.LayerNorm(2)

    def test_adds_what_is_missing_to_what_leaves(self):
        calls = (self.other, (1.0, 2.0), (7.0, 7.0)), (self.mlp, (1.5, 3.5), (4.0, -8.0))
        assert _mlp_of(layer_of(*calls, left=(5.5, -4.5))) is self.mlp
        assert _mlp_of(layer_of(*calls, left=(5.5, -4.0))) is None
        assert _mlp_of(layer_of(*calls[:1], left=(5.5, -4.5))) is None

    def test_is_the_innermost_with_its_output(self):
        calls = (self.mlp, (1.5, 3.5), (4.0, -8.0)), (self.wrapper, (1.5, 3.5), (4.0, -8.0))
        assert _mlp_of(layer_of(*calls, left=(5.5, -4.5))) is self.mlp

    def test_ends_after_the_attention(self):
        """Two modules that fit: the one that ended before the layer's last attention is none."""
        calls = (self.other, (1.0, 2.0), (4.0, -8.0)), (self.mlp, (1.5, 3.5), (4.0, -8.0))
        assert _mlp_of(layer_of(*calls, left=(5.5, -4.5), n_before=1)) is self.mlp
        assert _mlp_of(layer_of(*calls, left=(5.5, -4.5), n_before=2)) is None

    def test_is_added_to_what_a_norm_gives(self):
        """BERT: the stream is normalised after the attention and again at the end."""
        middle, end = (-1.0, 1.0), (9.0, 9.0)
        calls = (
            (self.norm, (1.5, 3.5), middle),
            (self.mlp, middle, (4.0, -8.0)),
            (self.norm, (3.0, -7.0), end),
        )
        assert _mlp_of(layer_of(*calls, left=end)) is self.mlp
        assert _mlp_of(layer_of(*calls[:2], left=end)) is None
        assert _mlp_of(layer_of(*calls[:2], (self.other, (3.0, -7.0), end), left=end)) is None

    @pytest.mark.parametrize("missing", [{"attention": None}, {"left": None}])
    def test_is_not_known_where_its_layer_is_not(self, missing):
        calls = [(self.mlp, (1.5, 3.5), (4.0, -8.0))]
        assert _mlp_of(layer_of(*calls, **{"left": (5.5, -4.5)} | missing)) is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_sums_are_told_within_the_rounding_of_their_dtype(dtype):
    first = torch.tensor([3.0, -40.0, 0.0], dtype=dtype)
    second = torch.tensor([0.125, 41.0, 5.0], dtype=dtype)
    total = first + second
    eps = torch.finfo(dtype).eps
    assert _is_sum(total, first, second)
    assert _is_sum(total * (1 + eps), first, second)
    for at in range(3):
        off = total.clone().float()
        off[at] += 40 * eps * float(first.abs()[at] + second.abs()[at])
        assert not _is_sum(off.to(dtype), first, second)
    nothing = torch.zeros_like(total)
    assert not _is_sum(total, total, nothing) and not _is_sum(total, nothing, total)  # which is no sum of two


def test_a_state_gets_as_many_rows_as_there_are_variants():
    """Rows that are new are copies of the first; what has another number of rows stays."""
    join = _rows_joined((1, 2, 4))
    state = torch.arange(6.0).reshape(1, 3, 2)
    assert join(state).tolist() == state.tolist() * 4
    two = torch.stack([state[0], state[0] + 10])
    assert join(two).tolist() == [*two.tolist(), *state.tolist() * 2]
    for other in (torch.zeros(4, 3, 2), torch.zeros(3, 3, 2), torch.zeros(1, 2), "a", None):
        assert join(other) is other
