"""The direct path of one token: directions carried back, against the same steps carried forwards in plain Python."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch import nn

from attnviz.effects.score_sources import embedded
from attnviz.errors import UnsupportedArchitectureError
from attnviz.model.anatomy import LayerAnatomy
from attnviz.model.direct_path import (
    Affine,
    FrozenNorm,
    LayerPath,
    carried,
    carried_back,
    final_steps,
    frozen_norm,
    layer_paths,
)
from attnviz.model.normalisation import Normalisation
from attnviz.model.stream import Call, Stream, _chain
from attnviz.model.structure import OutputMap

D_MODEL = 6


def normalised(norm, vector):
    """What a frozen norm makes of a vector, number by number; the vector itself for no norm."""
    if norm is None:
        return vector
    mean = math.fsum(vector) / len(vector) if norm.is_centred else 0.0
    return [
        gain * (number - mean) + bias
        for gain, number, bias in zip(norm.gain.tolist(), vector, norm.bias.tolist(), strict=True)
    ]


def product(first, second):
    return math.fsum(a * b for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("norms", list(itertools.product((False, True), repeat=3)), ids=str)
@pytest.mark.parametrize("has_bias", [False, True])
def test_a_direction_carried_back_meets_the_same_numbers(norms, has_bias):
    """Its product with what leaves a layer is the sum of its products with what enters, is read, is added and stays the same."""
    random = np.random.default_rng(0)
    drawn = [
        FrozenNorm(gain=random.normal(size=D_MODEL), is_centred=number != 1, bias=random.normal(size=D_MODEL))
        if there
        else None
        for number, there in enumerate(norms)
    ]
    rest, entering, directions = (
        random.normal(size=D_MODEL),
        random.normal(size=D_MODEL),
        random.normal(size=(2, 3, D_MODEL)),
    )
    output_map = OutputMap(
        name="W_O",
        weight=random.normal(size=(2, 3, D_MODEL)),
        bias=random.normal(size=D_MODEL) if has_bias else None,
    )
    heads = random.normal(size=(2, 3))
    without_bias = [
        math.fsum(heads[h, v] * output_map.weight[h, v, d] for h in range(2) for v in range(3))
        for d in range(D_MODEL)
    ]
    attention = [
        number + (float(output_map.bias[d]) if has_bias else 0.0) for d, number in enumerate(without_bias)
    ]
    joined = [a + b for a, b in zip(normalised(drawn[0], attention), entering.tolist(), strict=True)]
    left = normalised(
        drawn[2], [a + b for a, b in zip(normalised(drawn[1], joined), rest.tolist(), strict=True)]
    )
    path = LayerPath(
        middle=rest, rest=rest, of_attention=drawn[0], after_attention=drawn[1], after_rest=drawn[2]
    )
    back = carried_back(path, output_map, directions)
    for place in np.ndindex(2, 3):
        parts = (
            product(back.entering[place].tolist(), entering.tolist()),
            product(back.of_attention[place].tolist(), without_bias),
            float(back.rest[place]),
            float(back.biases[place]),
        )
        assert math.fsum(parts) == pytest.approx(product(directions[place].tolist(), left), abs=1e-9)
    # What the MLP adds is told apart from what does not depend on the text.
    nothing = LayerPath(
        middle=rest, rest=0 * rest, of_attention=drawn[0], after_attention=drawn[1], after_rest=drawn[2]
    )
    np.testing.assert_allclose(carried_back(nothing, output_map, directions).biases, back.biases)
    if not (has_bias or any(norms)):
        assert not back.biases.any()


def test_no_step_changes_nothing():
    directions = np.arange(12.0).reshape(2, 6)
    same, biases = carried(None, directions)
    np.testing.assert_array_equal(same, directions)
    np.testing.assert_array_equal(biases, [0.0, 0.0])


@pytest.mark.parametrize("method", ["layer", "rms"])
@pytest.mark.parametrize("has_bias", [False, True])
def test_a_frozen_norm_is_torch_s_for_its_own_vector(method, has_bias):
    """With an eps that counts."""
    vector, weight, bias = (
        torch.randn(D_MODEL, dtype=torch.float64, generator=torch.manual_seed(n)) for n in range(3)
    )
    norm = frozen_norm(
        Normalisation(
            method=method,
            weight=weight.numpy(),
            bias=bias.numpy() if has_bias else None,
            eps=0.5,
            made=np.zeros((1, D_MODEL)),
        ),
        vector.numpy(),
    )
    if method == "layer":
        expected = nn.functional.layer_norm(vector, (D_MODEL,), weight, eps=0.5)
    else:
        expected = nn.functional.rms_norm(vector, (D_MODEL,), weight, eps=0.5)
    expected = expected + bias if has_bias else expected
    np.testing.assert_allclose(normalised(norm, vector.tolist()), expected, rtol=1e-12)


class Drawn:
    """A layer whose numbers are drawn: norms where asked, W_O's output, an MLP's and a module's that adds nothing."""

    def __init__(self, norms: tuple[bool, bool, bool], start: torch.Tensor) -> None:
        torch.manual_seed(1)
        self.norms = [nn.LayerNorm(D_MODEL, eps=1e-3) if there else None for there in norms]
        for norm in filter(None, self.norms):
            norm.weight.data.normal_()
            norm.bias.data.normal_()
        self.calls: list[Call] = []
        self.attention = torch.randn(D_MODEL)
        self.rest = torch.randn(D_MODEL)
        other, narrow = torch.randn(D_MODEL), nn.LayerNorm(4)
        self._called(narrow, other[:4], narrow(other[:4]).detach())  # such as one of a head's queries
        self._called(nn.Identity(), other, 3 * other)
        middle = self._normalised(1, start + self._normalised(0, self.attention))
        self._called(nn.Identity(), middle, self.rest)
        self._called(nn.Identity(), torch.randn(4), torch.randn(4))
        self.left = self._normalised(2, middle + self.rest)

    def _normalised(self, number: int, given: torch.Tensor) -> torch.Tensor:
        norm = self.norms[number]
        if norm is None:
            return given
        made = norm(given).detach()
        self._called(norm, given, made)
        return made

    def _called(self, module: nn.Module, given: torch.Tensor, made: torch.Tensor) -> None:
        self.calls.append(Call(module=module, given=given.numpy(), made=made.numpy()))


def stream_of(start, *layers, attentions=None, final=()):
    return Stream(
        kind="encoder",
        states=np.zeros((len(layers), 1, D_MODEL), dtype=np.float32),
        left=tuple(layer.left.numpy() for layer in layers),
        start=start.numpy(),
        attentions=tuple(layer.attention.numpy() for layer in layers) if attentions is None else attentions,
        calls=tuple(tuple(layer.calls) for layer in layers),
        final=final,
    )


@pytest.mark.parametrize("norms", list(itertools.product((False, True), repeat=3)), ids=str)
def test_the_norms_and_the_mlp_of_a_layer_are_found(norms):
    start = torch.randn(D_MODEL, generator=torch.manual_seed(0))
    first = Drawn(norms, start)
    second = Drawn(norms, first.left)
    paths = layer_paths(stream_of(start, first, second))
    assert len(paths) == 2
    for path, layer, entered in zip(paths, (first, second), (start, first.left), strict=True):
        np.testing.assert_array_equal(path.rest, layer.rest)
        steps = path.of_attention, path.after_attention, path.after_rest
        assert tuple(step is not None for step in steps) == norms
        attention = normalised(steps[0], layer.attention.tolist())
        middle = normalised(steps[1], [a + b for a, b in zip(entered.tolist(), attention, strict=True)])
        left = normalised(steps[2], [a + b for a, b in zip(middle, layer.rest.tolist(), strict=True)])
        np.testing.assert_allclose(left, layer.left, atol=1e-5)
    assert len(layer_paths(stream_of(start, first, second), 1)) == 1


def test_a_layer_that_adds_in_another_way_is_refused():
    start = torch.randn(D_MODEL, generator=torch.manual_seed(0))
    layer = Drawn((False, False, False), start)
    other = Drawn((False, False, False), start)
    other.left = start + 2 * other.attention + other.rest
    with pytest.raises(UnsupportedArchitectureError, match="how layer 0 of this family"):
        layer_paths(stream_of(start, other))
    other.left = layer.left + 0.01 * nn.functional.one_hot(torch.tensor(2), D_MODEL)  # in one dimension alone
    with pytest.raises(UnsupportedArchitectureError, match="how layer 0 of this family"):
        layer_paths(stream_of(start, other))
    with pytest.raises(UnsupportedArchitectureError, match="how layer 0 of this family"):
        layer_paths(stream_of(start, layer, attentions=()))


@pytest.mark.parametrize("has_bias", [False, True])
def test_a_map_after_the_last_layer(has_bias):
    linear = nn.Linear(D_MODEL, 4, bias=has_bias)
    given = torch.randn(D_MODEL)
    made = linear(given).detach()
    call = Call(module=linear, given=given.numpy(), made=made.numpy())
    start = torch.zeros(D_MODEL)
    (step,) = final_steps(stream_of(start, final=(call,)))
    assert isinstance(step, Affine)
    np.testing.assert_allclose(given.double().numpy() @ step.weight + step.bias, made, atol=1e-6)
    direction = np.array([1.0, -2.0, 0.5, 3.0])
    before, of_bias = carried(step, direction)
    assert product(before.tolist(), given.tolist()) + float(of_bias) == pytest.approx(
        product(direction.tolist(), made.tolist()), abs=1e-5
    )
    for unknown in (None, (Call(module=nn.Identity(), given=given.numpy(), made=given.numpy()),)):
        with pytest.raises(UnsupportedArchitectureError, match="that attnviz does not know"):
            final_steps(stream_of(start, final=unknown))


TABLES = {"token": [[9.0, 9.0, 9.0], [600.0, 0.25, -2.0]], "position": [[9.0, 9.0, 9.0], [400.0, 0.25, 1.0]]}
"""Of two tokens; the second's vectors sum to 1000, 0.5 and -1."""


def first_layer(made=None):
    norm = None
    if made is not None:
        norm = Normalisation(
            method="rms",
            weight=np.array([1.0, 2.0, 1.0]),
            bias=None,
            eps=0.0,
            made=np.array([[9.0, 9.0, 9.0], made]),
        )
    return LayerAnatomy(
        kind="encoder",
        layer=0,
        ingredients={name: np.array(rows) for name, rows in TABLES.items()},
        norm=norm,
        leads_to_first_layer="as it is",
        hidden=None,
        sources=None,
        projections={},
        output=None,
        output_weight=None,
        output_bias=None,
    )


@pytest.mark.parametrize(
    ("start", "made", "names"),
    [
        ([1000.0, 0.5, -1.0], None, ["token", "position"]),
        ([1000.0, 0.505, -1.0], None, ["token", "position"]),  # float32 of a sum of 1000 is no closer
        ([1000.0, 0.52, -1.0], None, ["embedding"]),
        ([900.0, 0.5, -1.0], None, ["embedding"]),
        ([900.0, 0.5, -1.0], [900.0, 0.505, -1.0], ["token", "position"]),
        ([900.0, 0.5, -1.0], [900.0, 0.52, -1.0], ["embedding"]),
        ([900.0, 0.5, -1.0], [1000.0, 0.5, -1.0], ["embedding"]),
    ],
)
def test_what_enters_the_first_layer_is_made_of_the_tables(start, made, names):
    """Where their rows sum to it, or the first norm makes it of them; otherwise it is one part."""
    parts, norm = embedded(first_layer(made), np.array(start), 1)
    assert list(parts) == names
    if names == ["embedding"]:
        np.testing.assert_array_equal(parts["embedding"], start)
    else:
        for name, part in parts.items():
            np.testing.assert_array_equal(part, TABLES[name][1])
    assert (norm is None) == (made is None or names == ["embedding"])
    if norm is not None:
        size = math.sqrt((1000.0**2 + 0.5**2 + 1.0) / 3)
        np.testing.assert_allclose(norm.gain, [1 / size, 2 / size, 1 / size])


def test_the_final_modules_are_those_that_lead_to_the_last_state():
    """One after another, each from what the one before gave; modules beside the way and those that change nothing are left out."""
    first, middle, last = (np.full(3, number, dtype=np.float32) for number in (1.0, 2.0, 3.0))

    def call(given, made):
        return Call(module=nn.Identity(), given=given, made=made)

    aside, idle, norm, linear, after = (
        call(middle, first),
        call(first, first),
        call(first, middle),
        call(middle, last),
        call(last, first),
    )
    assert _chain(first, (aside, idle, norm, linear, after), last) == (norm, linear)
    assert _chain(first, (norm,), last) is None
    assert _chain(first, (norm,), first) == ()
    assert _chain(first, (), last) is None
