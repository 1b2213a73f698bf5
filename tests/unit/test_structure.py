"""Where the layers of a network and their MLPs are, against their names in transformers' code and sums on paper."""

import numpy as np
import pytest
import torch
from torch import nn

from attnviz.model.states import _rows_joined, hidden_states
from attnviz.model.structure import LayerRun, find_mlp, is_state, is_sum, looked_up_by


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
    assert list(tiny_model(name).structure.layers) == layers


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


WRITES_OUT = nn.Linear(2, 2)
"""W_O of the layers below."""


def mlp_of(*before, after, left, attention=(0.5, 1.5)):
    """The MLP of a layer of one token, from the modules that ran before and after W_O, each with its input and output."""
    calls = *before, *([] if attention is None else [(WRITES_OUT, (9.0, 9.0), attention)]), *after
    run = LayerRun(
        layer=nn.Identity(),
        args=(),
        named={},
        state=None,
        entered=np.array([[1.0, 2.0]], dtype=np.float32),
        n_before=0,
        left=None if left is None else np.array([left], dtype=np.float32),
        calls=[
            (module, *(np.array([row], dtype=np.float32) for row in (given, made)))
            for module, given, made in calls
        ],
    )
    return find_mlp(run, {WRITES_OUT}, float(np.finfo(np.float32).eps))


class TestMlp:
    """What enters is (1, 2) and what W_O gives (0.5, 1.5): the stream between is (1.5, 3.5)."""

    mlp, other, wrapper = nn.Identity(), nn.Identity(), nn.Identity()
    norm = nn.LayerNorm(2)
    adds = (mlp, (1.5, 3.5), (4.0, -8.0))

    def test_adds_what_is_missing_to_what_leaves(self):
        aside = (self.other, (1.0, 2.0), (7.0, 7.0))
        assert mlp_of(after=(aside, self.adds), left=(5.5, -4.5)) is self.mlp
        assert mlp_of(after=(aside, self.adds), left=(5.5, -4.0)) is None
        assert mlp_of(after=(aside,), left=(5.5, -4.5)) is None

    def test_is_the_innermost_with_its_output(self):
        assert mlp_of(after=(self.adds, (self.wrapper, *self.adds[1:])), left=(5.5, -4.5)) is self.mlp

    def test_ends_after_the_attention(self):
        """Two modules that fit: the one that ended before W_O is none."""
        fits = (self.other, (1.0, 2.0), (4.0, -8.0))
        assert mlp_of(fits, after=(self.adds,), left=(5.5, -4.5)) is self.mlp
        assert mlp_of(fits, self.adds, after=(), left=(5.5, -4.5)) is None

    def test_is_added_to_what_a_norm_gives(self):
        """BERT: the stream is normalised after the attention and again at the end."""
        middle, end = (-1.0, 1.0), (9.0, 9.0)
        calls = (self.norm, (1.5, 3.5), middle), (self.mlp, middle, (4.0, -8.0))
        assert mlp_of(after=(*calls, (self.norm, (3.0, -7.0), end)), left=end) is self.mlp
        assert mlp_of(after=calls, left=end) is None
        assert mlp_of(after=(*calls, (self.other, (3.0, -7.0), end)), left=end) is None

    def test_adds_something_to_something(self):
        """A sum of which one term is 0 tells of no MLP."""
        assert mlp_of(after=((self.mlp, (1.5, 3.5), (0.0, 0.0)),), left=(1.5, 3.5)) is None
        assert mlp_of(after=(self.adds,), attention=(-1.0, -2.0), left=(4.0, -8.0)) is None

    @pytest.mark.parametrize("missing", [{"attention": None}, {"left": None}])
    def test_is_not_known_where_its_layer_is_not(self, missing):
        assert mlp_of(after=(self.adds,), **{"left": (5.5, -4.5)} | missing) is None


@pytest.mark.parametrize("eps", [np.finfo(np.float32).eps, torch.finfo(torch.bfloat16).eps])
def test_a_sum_may_be_rounded_as_often_as_its_dtype_adds(eps):
    """8 units in the last place of the sum of the sizes, here 4, 4 and 0."""
    terms = [
        np.array(numbers, dtype=np.float32)
        for numbers in ([1.0, -2.0, 0.0], [1.0, 1.5, 0.0], [2.0, 0.5, 0.0])
    ]
    total = np.array([4.0, 0.0, 0.0])
    assert is_sum(total, *terms, eps=eps)
    for at, size in enumerate((4.0, 4.0, 0.0)):
        near, far = total.copy(), total.copy()
        near[at] += 7 * size * eps
        far[at] += 9 * size * eps + 1e-30
        assert is_sum(near, *terms, eps=eps) and not is_sum(far, *terms, eps=eps)
    assert not is_sum(total, terms[0], terms[1], np.zeros(2, dtype=np.float32))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_vectors_are_no_ids(dtype):
    """mBART's table of positions is called with the tokens' vectors."""
    assert looked_up_by(torch.tensor([[3, 4]]), np.array([3, 4]))
    assert not looked_up_by(torch.tensor([[3, 4]]), np.array([3, 5]))
    assert not looked_up_by(torch.tensor([[3, 4]], dtype=dtype), np.array([3, 4]))
    assert not looked_up_by(torch.Size([1, 2]), np.array([1, 2]))


def test_a_state_gets_as_many_rows_as_there_are_variants():
    """Rows that are new are copies of the first; what has another number of rows stays."""
    join = _rows_joined((1, 2, 4))
    state = torch.arange(6.0).reshape(1, 3, 2)
    assert join(state).tolist() == state.tolist() * 4
    two = torch.stack([state[0], state[0] + 10])
    assert join(two).tolist() == [*two.tolist(), *state.tolist() * 2]
    for other in (torch.zeros(4, 3, 2), torch.zeros(3, 3, 2), torch.zeros(1, 2), "a", None):
        assert join(other) is other


@pytest.mark.parametrize(
    ("given", "is_one"),
    [
        (torch.zeros(1, 5, 4), True),
        (torch.zeros(5, 4), True),  # rows and tokens joined
        (torch.zeros(5, 1, 4), True),
        (torch.zeros(5, 4, dtype=torch.bfloat16), True),
        (torch.zeros(1, 6, 4), False),
        (torch.zeros(2, 5, 4), False),
        (torch.zeros(1, 1, 5, 4), False),
        (torch.zeros(5), False),
        (torch.zeros(1, 5, 4, dtype=torch.int64), False),
        ("a text", False),
        (None, False),
    ],
)
def test_states_are_a_vector_for_each_token(given, is_one):
    assert is_state(given, 5) == is_one
