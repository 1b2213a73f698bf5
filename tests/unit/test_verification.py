"""The checks: they pass on what the model computes, and a trace that is wrong anywhere fails one."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers

import attnviz
from attnviz.errors import SelectionError, VerificationError
from attnviz.maths import attention, attribution, blocks
from attnviz.model import verification
from attnviz.model.catalogue import EMBEDDED
from attnviz.model.reference import _block, _call, in_float64, make_reference
from attnviz.model.trace import Trace
from attnviz.model.verification import reference_weights
from attnviz.records import FILE, AttentionPattern, LayerAttention
from tests import tiny

pytestmark = pytest.mark.slow

CHECKS = [
    FILE,
    *("tokens", "labels", "queries", "keys", "values", "scale", "attention mask", "attention weights"),
    *("norm-based weights", "head outputs", "output after W_O", "last hidden state"),
]


def with_layers(trace: Trace, change: Callable[[list[LayerAttention]], None]) -> Trace:
    """The trace with its first kind's layers changed in place of a copy."""
    kind = trace.kinds[0]
    layers = list(trace.layers[kind])
    change(layers)
    return replace(trace, layers={**trace.layers, kind: tuple(layers)})


def with_layer(trace: Trace, layer: int, **fields: object) -> Trace:
    def change(layers: list[LayerAttention]) -> None:
        layers[layer] = replace(layers[layer], **fields)

    return with_layers(trace, change)


def swapped(array: np.ndarray, first: int, other: int, axis: int) -> np.ndarray:
    order = np.arange(array.shape[axis])
    order[[first, other]] = other, first
    return array.take(order, axis)


def swap_keys_of_two_layers(trace: Trace) -> Trace:
    first, second = (trace.attention(layer).key for layer in (1, 2))
    return with_layer(with_layer(trace, 1, key=second), 2, key=first)


def swap_two_layers(trace: Trace) -> Trace:
    def change(layers: list[LayerAttention]) -> None:
        layers[1], layers[2] = replace(layers[2], layer=1), replace(layers[1], layer=2)

    return with_layers(trace, change)


def one_number_off(trace: Trace) -> Trace:
    query = trace.attention(4).query.copy()
    query[7, 5, 3] += 0.1
    return with_layer(trace, 4, query=query)


def one_not_a_number(trace: Trace) -> Trace:
    key = trace.attention(4).key.copy()
    key[7, 5, 3] = np.nan
    return with_layer(trace, 4, key=key)


def rotated(vectors: np.ndarray) -> np.ndarray:
    """All vectors turned by one rotation, which leaves every product of two of them as it is."""
    turn, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((vectors.shape[-1],) * 2))
    return np.asarray(vectors @ turn.astype(np.float32))


def with_tokens(trace: Trace, **fields: object) -> Trace:
    return replace(trace, tokens=replace(trace.tokens, **fields))


WRONG = {
    "keys of two layers swapped": swap_keys_of_two_layers,
    "two layers swapped": swap_two_layers,
    "keys of two heads swapped": lambda trace: with_layer(
        trace, 3, key=swapped(trace.attention(3).key, 1, 2, axis=0)
    ),
    "keys of two tokens swapped": lambda trace: with_layer(
        trace, 3, key=swapped(trace.attention(3).key, 4, 5, axis=1)
    ),
    "queries and keys swapped, which transposes the scores": lambda trace: with_layer(
        trace, 3, query=trace.attention(3).key, key=trace.attention(3).query
    ),
    "scale off by 1%": lambda trace: with_layer(trace, 3, scale=1.01 * trace.attention(3).scale),
    "scale forgotten": lambda trace: with_layer(trace, 0, scale=1.0),
    "last key masked": lambda trace: with_layer(
        trace, 5, allowed=np.arange(len(trace.tokens))[None, None] < len(trace.tokens) - 1
    ),
    "a bias that the model has not": lambda trace: with_layer(
        trace, 5, bias=np.eye(len(trace.tokens), dtype=np.float32)[None]
    ),
    "one number of one query off": one_number_off,
    "one key not a number": one_not_a_number,
}
"""What changes the weights."""

HIDDEN = {
    "values reversed": (
        "values",
        lambda trace: with_layer(trace, 2, value=trace.attention(2).value[:, ::-1].copy()),
    ),
    "values times 100": ("values", lambda trace: with_layer(trace, 2, value=100 * trace.attention(2).value)),
    "values all zero": (
        "values",
        lambda trace: with_layer(trace, 2, value=np.zeros_like(trace.attention(2).value)),
    ),
    "values off by one in a thousand": (
        "values",
        lambda trace: with_layer(trace, 2, value=np.float32(1.001) * trace.attention(2).value),
    ),
    "a random W_O": (
        "output after W_O",
        lambda trace: with_layer(
            trace,
            4,
            output_weight=np.random.default_rng(0)
            .standard_normal(trace.attention(4).output_weight.shape)
            .astype(np.float32),
        ),
    ),
    "heads of W_O swapped": (
        "output after W_O",
        lambda trace: with_layer(
            trace, 4, output_weight=swapped(trace.attention(4).output_weight, 1, 2, axis=0)
        ),
    ),
    "the bias of W_O forgotten": ("output after W_O", lambda trace: with_layer(trace, 4, output_bias=None)),
    "queries times 10 and keys divided by 10": (
        "queries",
        lambda trace: with_layer(
            trace, 3, query=10 * trace.attention(3).query, key=trace.attention(3).key / 10
        ),
    ),
    "queries and keys rotated together": (
        "queries",
        lambda trace: with_layer(
            trace, 3, query=rotated(trace.attention(3).query), key=rotated(trace.attention(3).key)
        ),
    ),
    "a constant added to the keys": (
        "keys",
        lambda trace: with_layer(trace, 3, key=trace.attention(3).key + np.float32(0.5)),
    ),
    "scale halved and queries doubled": (
        "scale",
        lambda trace: with_layer(
            trace, 3, query=2 * trace.attention(3).query, scale=trace.attention(3).scale / 2
        ),
    ),
    "a bias that is the same for all keys": (
        "score bias",
        lambda trace: with_layer(trace, 3, bias=np.full((1, 11, 11), 0.5, dtype=np.float32)),
    ),
    "labels reversed": ("labels", lambda trace: with_tokens(trace, labels=trace.tokens.labels[::-1])),
    "another text": (
        "tokens",
        lambda trace: with_tokens(trace, text="I was watching the cat when it opened."),
    ),
}
"""What leaves the weights as they are: the check that has to fail, and the fault."""


class TestPasses:
    def test_on_the_embedded_model(self, embedded, door_trace):
        report = attnviz.verify(embedded, door_trace)
        assert report.passed
        assert [check.name for check in report.checks] == CHECKS
        assert report.max_abs_error == report.weight_error.max() < 4e-6  # float32; 9e-7 when tried
        assert (
            report.weight_error.shape == report.check("head outputs").differences["encoder"].shape == (6, 12)
        )
        assert report.check("output after W_O").differences["encoder"].shape == (6, 1)
        assert report.provenance is door_trace.provenance
        assert report.not_compared == {}

    def test_on_a_pair(self, embedded):
        assert attnviz.verify(embedded, embedded.trace("the door opened", "it was open")).passed

    @pytest.mark.parametrize(
        "text", ["a", "[MASK]", "\N{GRINNING FACE}", "door " * 510], ids=lambda text: text[:8]
    )
    def test_on_short_long_and_unknown_texts(self, text, embedded):
        assert attnviz.verify(embedded, embedded.trace(text)).passed

    def test_every_check_says_why_its_tolerance_is_what_it_is(self, embedded, door_trace):
        for check in attnviz.verify(embedded, door_trace).checks:
            assert check.reason.endswith(".")
            assert 0 <= check.tolerance <= 1e-3
            assert ("float32" in check.reason) == (check.tolerance > 0)

    @pytest.mark.parametrize(
        ("family", "changed", "reason"),
        [
            ("llama", {"head_dim": 16}, "the scale, 1/4, is a power of two"),
            ("gpt2", {"n_embd": 8}, "the scale, 1/2, is a power of two"),
            (
                "gpt2",
                {"n_embd": 8, "n_layer": 2, "scale_attn_by_inverse_layer_idx": True},
                "the scales, 1/4 and 1/2, are powers of two",
            ),
            ("llama", {"head_dim": 10}, ""),
        ],
    )
    def test_why_no_weight_differs_in_a_bit_follows_from_the_scale(self, family, changed, reason, tmp_path):
        """With a scale that is no power of two, some weight differs, or the reason is another."""
        own = tiny.TEXT_FAMILIES[family]
        config = own.config()
        config.update(changed)
        model = attnviz.load_model(str(tiny.save(replace(own, config=lambda: config), tmp_path)))
        check = attnviz.verify(model, model.trace("the cat sat when it opened")).check("attention weights")
        is_identical = not any(difference.any() for difference in check.differences.values())
        assert ("bit-identical" in check.reason) == (is_identical and bool(reason)) == bool(reason)
        assert reason in check.reason
        trace = model.trace("the cat sat when it opened")
        nearly = with_layer(trace, 1, query=trace.attention(1).query * np.float32(1 + 1e-6))
        check = attnviz.verify(model, nearly).check("attention weights")
        assert check.passed
        assert "bit-identical" not in check.reason

    def test_weights_that_are_equal_in_one_kind_of_attention_alone_get_none(self, tiny_model):
        """T5's decoder has the reference's weights to the bit where this was written, its encoder has not."""
        model = tiny_model("t5")
        check = attnviz.verify(model, model.trace("the cat sat", "it opened")).check("attention weights")
        assert check.differences["encoder"].any()
        assert "bit-identical" not in check.reason

    def test_weights_that_are_equal_for_another_reason_get_none(self, tiny_model):
        """A single key has the weight 1, whatever the scale."""
        model = tiny_model("gpt2")
        report = attnviz.verify(model, model.trace("a"))
        assert report.max_abs_error == 0
        assert "bit-identical" not in report.check("attention weights").reason

    def test_does_not_see_what_both_runs_compute_wrongly(self, tiny_model, monkeypatch):
        """As the page says: rotary positions that a family's module leaves out are left out of both."""
        from transformers.models.llama import modeling_llama

        model = tiny_model("llama")
        rotated = model.trace("the cat sat when it opened")
        monkeypatch.setattr(modeling_llama, "apply_rotary_pos_emb", lambda query, key, *_, **__: (query, key))
        trace = model.trace("the cat sat when it opened")
        assert np.abs(trace.weights(1, 2) - rotated.weights(1, 2)).max() > 0.01
        assert attnviz.verify(model, trace).passed

    @pytest.mark.nightly
    @pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
    def test_in_half_precision_with_tolerances_of_its_own(self, dtype):
        model = attnviz.load_model(EMBEDDED, dtype=dtype)
        trace = model.trace("I was watching the door when it opened.")
        report = attnviz.verify(model, trace)
        assert report.passed, report.failed
        assert report.provenance.dtype == dtype
        assert dtype in report.check("attention weights").reason
        assert report.max_abs_error > 1e-4  # what float32 would not pass
        for name in (
            "values reversed",
            "a random W_O",
            "queries and keys rotated together",
            "labels reversed",
        ):
            check, wrong = HIDDEN[name]
            assert check in [failing.name for failing in attnviz.verify(model, wrong(trace)).failed], name

    def test_where_a_model_amplifies_roundings(self, tmp_path, monkeypatch):
        """Weights so large that float32 itself is far from float64."""
        sizes = {
            "hidden_size": 144,
            "num_hidden_layers": 6,
            "num_attention_heads": 8,
            "intermediate_size": 300,
        }
        family = tiny.Family("large", lambda: transformers.BertConfig(vocab_size=tiny.VOCABULARY, **sizes))
        monkeypatch.setattr(tiny, "WEIGHT_STD", 1.0)
        model = attnviz.load_model(str(tiny.save(family, tmp_path)))
        trace = model.trace("I was watching the door when it opened. " * 3)
        asked = []
        monkeypatch.setattr(
            verification, "in_float64", lambda reference: asked.append(reference) or in_float64(reference)
        )
        assert attnviz.verify(model, trace).passed
        assert asked  # the usual bound was too small
        wrong = with_layer(trace, 1, value=trace.attention(1).value[:, ::-1].copy())
        assert "values" in [failing.name for failing in attnviz.verify(model, wrong).failed]


class TestFails:
    @pytest.mark.parametrize("wrong", WRONG.values(), ids=list(WRONG))
    def test_when_the_weights_are_not_the_model_s(self, wrong, embedded, door_trace):
        report = attnviz.verify(embedded, wrong(door_trace))
        assert not report.check("attention weights").passed
        assert not report.passed

    @pytest.mark.parametrize(("check", "wrong"), HIDDEN.values(), ids=list(HIDDEN))
    def test_when_the_weights_are_the_model_s_and_other_numbers_are_not(
        self, check, wrong, embedded, door_trace
    ):
        report = attnviz.verify(embedded, wrong(door_trace))
        assert check in [failing.name for failing in report.failed]
        assert report.check("attention weights").passed

    @pytest.mark.parametrize(
        ("check", "module", "name"),
        [
            ("attention weights", attention, "softmax"),
            ("attention weights", attention, "attention_scores"),
            ("norm-based weights", attribution, "head_norms"),
            ("norm-based weights", attribution, "value_lengths"),
            ("head outputs", blocks, "attention_output_in_blocks"),
        ],
    )
    def test_when_what_draws_it_is_broken(self, check, module, name, embedded, door_trace, monkeypatch):
        """The trace is right; the function that computes what is shown is not."""
        right = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *args, **kwargs: 0.75 * right(*args, **kwargs))
        report = attnviz.verify(embedded, door_trace)
        assert check in [failing.name for failing in report.failed]

    @pytest.mark.parametrize("measure", ["weights", "norms"])
    def test_the_matrix_that_is_drawn_is_the_one_that_is_compared(
        self, measure, embedded, door_trace, monkeypatch
    ):
        drawn = Trace.pattern

        def wrong(self: Trace, *args: object, **kwargs: object) -> AttentionPattern:
            pattern = drawn(self, *args, **kwargs)
            return replace(pattern, weights=pattern.weights[::-1].copy())

        monkeypatch.setattr(Trace, "pattern", wrong)
        assert not attnviz.verify(embedded, door_trace).check("attention weights").passed

    def test_and_points_at_the_layer_and_the_head(self, embedded, door_trace):
        errors = attnviz.verify(embedded, one_number_off(door_trace)).weight_error
        wrong = np.argwhere(errors > 1e-5)
        assert wrong.tolist() == [[4, 7]]
        assert attnviz.verify(embedded, one_number_off(door_trace)).check("queries").worst == (
            "encoder",
            4,
            7,
        )

    def test_when_the_last_hidden_state_is_not_the_model_s(self, embedded, door_trace):
        hidden = door_trace.last_hidden_state.copy()
        hidden[5, 100] += 0.01
        report = attnviz.verify(embedded, replace(door_trace, last_hidden_state=hidden))
        assert report.check("attention weights").passed
        assert report.check("head outputs").passed
        assert not report.check("last hidden state").passed
        assert not report.passed

    def test_when_the_last_hidden_state_is_not_a_number(self, embedded, door_trace):
        hidden = door_trace.last_hidden_state.copy()
        hidden[0, 0] = np.nan
        assert not attnviz.verify(embedded, replace(door_trace, last_hidden_state=hidden)).passed

    def test_when_the_output_is_not_that_of_torch(self, embedded, door_trace, monkeypatch):
        right = Trace.outputs
        monkeypatch.setattr(Trace, "outputs", lambda *args, **kwargs: 1.001 * right(*args, **kwargs))
        report = attnviz.verify(embedded, door_trace)
        assert report.check("attention weights").passed
        assert not report.check("head outputs").passed

    def test_when_values_are_not_a_number(self, embedded, door_trace):
        value = door_trace.attention(2).value.copy()
        value[0, 0, 0] = np.nan
        assert not attnviz.verify(embedded, with_layer(door_trace, 2, value=value)).passed

    def test_when_the_causal_mask_is_missed(self, tiny_model):
        model = tiny_model("gpt2")
        trace = model.trace("the door")
        assert attnviz.verify(model, trace).passed
        assert not attnviz.verify(model, with_layer(trace, 1, allowed=None)).check("attention mask").passed

    def test_when_a_position_bias_is_missed(self, tiny_model):
        model = tiny_model("t5")
        trace = model.trace("I was watching the door")
        assert attnviz.verify(model, trace).passed
        assert not attnviz.verify(model, with_layer(trace, 1, bias=None)).check("score bias").passed

    def test_when_the_trace_is_of_other_weights(self, embedded, door_trace):
        """A trace of the same shape, of another text."""
        other = embedded.trace("I was watching the cat when it opened.")
        assert not attnviz.verify(embedded, replace(door_trace, layers=other.layers)).passed

    def test_when_one_id_is_of_another_token(self, embedded, door_trace):
        ids = np.where(np.arange(11) == 5, door_trace.tokens.ids[4], door_trace.tokens.ids)
        assert not attnviz.verify(embedded, with_tokens(door_trace, ids=ids)).check("tokens").passed

    @pytest.mark.parametrize(("label", "n_wrong"), [("é 1/2", 0), ("x 1/2", 1), ("1/2", 1)])
    def test_when_a_label_names_another_character_that_tokens_share(self, label, n_wrong, tiny_model):
        model = tiny_model("gpt2")
        trace = model.trace("a é b")
        at = trace.tokens.labels.index("é 1/2")
        labels = (*trace.tokens.labels[:at], label, *trace.tokens.labels[at + 1 :])
        check = attnviz.verify(model, with_tokens(trace, labels=labels)).check("labels")
        assert check.difference == n_wrong

    @pytest.mark.parametrize(
        "character", ["\u200d", "\u200c", "\ufe0f", "\u00ad", "\ue000", "\u2028", "👩"], ids=ascii
    )
    def test_but_not_when_a_character_is_visible_only_beside_others(self, character, tiny_model):
        model = tiny_model("gpt2")
        trace = model.trace(f"👩{character}👩 {character}")
        assert any(" 1/" in label for label in trace.tokens.labels)
        assert attnviz.verify(model, trace).check("labels").difference == 0

    def test_loudly_when_there_is_nothing_to_compare_with(self, embedded, tiny_model):
        trace = tiny_model("bert").trace("the door")  # 3 layers of 2 heads
        with pytest.raises(
            VerificationError, match=r"encoder layer 0, attnviz recorded \(\(2, 4, 5\).*they cannot be"
        ):
            attnviz.verify(embedded, trace)


class TestReference:
    def test_shares_every_parameter_and_buffer(self, embedded):
        ours, theirs = embedded.network, embedded.reference
        assert theirs is not ours
        for of in ("named_parameters", "named_buffers"):
            shared = {name: tensor.data_ptr() for name, tensor in getattr(ours, of)()}
            assert {name: tensor.data_ptr() for name, tensor in getattr(theirs, of)()} == shared
        assert len(shared) > 0
        assert len(dict(ours.named_parameters())) > 90

    def test_the_traced_model_keeps_its_own_implementation(self, embedded):
        implementations = (
            embedded.network.config._attn_implementation,
            embedded.reference.config._attn_implementation,
        )
        assert implementations == ("attnviz", "attnviz_reference")
        make_reference(embedded.network)
        assert embedded.network.config._attn_implementation == "attnviz"
        for module in embedded.network.modules():
            if hasattr(module, "config"):
                assert module.config._attn_implementation == "attnviz"
        for module in embedded.reference.modules():
            if hasattr(module, "config"):
                assert module.config._attn_implementation == "attnviz_reference"

    def test_a_verification_leaves_the_model_as_it_was(self, embedded, door_trace):
        attnviz.verify(embedded, door_trace)
        again = embedded.trace(door_trace.tokens.text)
        assert np.array_equal(again.weights(3, 1), door_trace.weights(3, 1))

    def test_is_in_evaluation_mode(self, embedded):
        assert not embedded.network.training
        assert not embedded.reference.training

    def test_weights_of_one_layer(self, embedded, door_trace):
        theirs = reference_weights(embedded, door_trace, 3)
        for head in range(12):
            np.testing.assert_allclose(theirs[head], door_trace.weights(3, head), atol=2e-6)  # float32
        assert not np.allclose(theirs[1], door_trace.weights(3, 2), atol=2e-6)

    def test_weights_of_a_layer_that_is_not_there(self, embedded, door_trace):
        with pytest.raises(SelectionError):
            reference_weights(embedded, door_trace, 6)


@pytest.mark.parametrize(("scaling", "scale"), [(None, 0.5), (0.3, 0.3)])
def test_without_a_factor_of_its_own_a_family_divides_by_the_root_of_the_width(scaling, scale):
    """transformers' attention functions take None for 1 / sqrt(d_head)."""
    query = torch.ones(1, 2, 3, 4)
    given = {"query": query, "key": query, "value": query, "attention_mask": None}
    given |= {} if scaling is None else {"scaling": scaling}
    call = _call(given)
    assert call["scale"] == scale
    assert call["position_bias"] is call["mask"] is call["softcap"] is None
    block = _block(slice(0, 3), scores=None, weights=torch.ones(1, 2, 3, 3), output=query)
    assert block.weights.shape == (2, 3, 3) and block.output.shape == (2, 3, 4)
