"""Forms of queries, keys and values: a family's own weights where nothing turns them, and None where they are no form."""

import numpy as np
import pytest
import torch

from attnviz.model.linear_forms import Wanted, _form, linear_forms

D_MODEL, TOKENS, AT = 5, 4, 2


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_keys_and_values_of_a_model_with_an_encoder_are_its_own_maps(kind, tiny_model):
    """BART's layers are normalised at their ends, so that keys and values are made of what enters by one map."""
    model = tiny_model("bart")
    trace = model.trace("the cat sat", "a door")
    layer, head = 1, 1
    attention = getattr(model.reference, kind).layers[layer].self_attn
    wanted = [Wanted(layer=layer, role=role, head=head, position=2) for role in ("key", "value")]
    forms = linear_forms(model, trace, kind, wanted)
    for form, asked, linear in zip(forms, wanted, (attention.k_proj, attention.v_proj), strict=True):
        d_head = attention.head_dim
        rows = slice(head * d_head, (head + 1) * d_head)
        np.testing.assert_allclose(form.weight, linear.weight.detach()[rows], atol=1e-6)
        np.testing.assert_allclose(form.bias, linear.bias.detach()[rows], atol=1e-4)
        assert getattr(trace.head(layer, head, kind), asked.role).shape[1] == d_head


class TestOneVector:
    """Of two heads and four tokens, in float32."""

    asked = Wanted(layer=0, role="key", head=1, position=AT)
    weight = torch.tensor([[1.0, -2.0, 0.5, 0.0, 3.0], [0.0, 1.0, 1.0, -1.0, 0.25]])
    bias = torch.tensor([0.5, -4.0])

    def form(self, vector_of):
        """The form of a function of the states [token, d_model] that gives the vector of the token in question."""

        def made(entering):
            vectors = torch.zeros(1, 2, TOKENS, 2)
            place = torch.zeros(1, 2, TOKENS, 1)
            place[0, 1, AT] = 1
            return vectors + place * vector_of(entering[0])

        entering = torch.randn(1, TOKENS, D_MODEL, generator=torch.manual_seed(0)).requires_grad_()
        return _form(self.asked, entering, made(entering), made(torch.zeros_like(entering)))

    def test_that_is_linear_has_its_weight_and_bias(self):
        form = self.form(lambda states: self.weight @ states[AT] + self.bias)
        np.testing.assert_allclose(form.weight, self.weight, atol=1e-6)
        np.testing.assert_allclose(form.bias, self.bias, atol=1e-5)

    def test_slopes_are_taken_some_at_a_time(self, monkeypatch):
        monkeypatch.setattr("attnviz.model.linear_forms._MOST_SLOPES", TOKENS * D_MODEL)
        form = self.form(lambda states: self.weight @ states[AT] + self.bias)
        np.testing.assert_allclose(form.weight, self.weight, atol=1e-6)

    @pytest.mark.parametrize(
        "vector_of",
        [
            lambda states: TestOneVector.weight @ states[AT] ** 2,
            lambda states: TestOneVector.weight @ (states[AT] + 0.01 * states[AT - 1]),
            lambda states: TestOneVector.weight @ torch.nn.functional.layer_norm(states[AT], (D_MODEL,)),
            lambda states: TestOneVector.weight @ states[AT] + float("nan"),
        ],
        ids=["square", "another token", "norm", "nan"],
    )
    def test_that_is_not_linear_in_its_token_has_none(self, vector_of):
        assert self.form(vector_of) is None

    def test_that_does_not_depend_on_what_enters_has_none(self):
        """Such as one that is learned."""
        learned = torch.ones(1, 2, TOKENS, 2, requires_grad=True)
        entering = torch.ones(1, TOKENS, D_MODEL, requires_grad=True)
        assert _form(self.asked, entering, 2 * learned, 2 * learned) is None
