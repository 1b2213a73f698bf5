"""Every model family: what attnviz shows against the library's own eager attention, in three rungs.

The model compared with is loaded here, a second time, with ``attn_implementation="eager"``, and its
inputs are made here: neither attnviz's reference nor its verification nor its inputs are relied on.
A rung that fails says where it broke: (1) weights, (2) head outputs, (3) the last hidden state.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer, PreTrainedModel

import attnviz
from attnviz.errors import CaptureError
from attnviz.maths import blocks
from attnviz.model import reference
from attnviz.model.capture import record_forward
from attnviz.model.families import REASONS
from attnviz.model.trace import Trace
from attnviz.records import KINDS
from tests import tiny, tiny_refused

# float32 (unit roundoff 6e-8). Scores of the tiny models reach 30, which costs 2e-6, and the
# roundings of up to 7 layers add up; a wrong formula is off by 1e-1.
WEIGHT_TOLERANCE = 1e-5
OUTPUT_TOLERANCE = 1e-5  # relative to values of about 1
HIDDEN_TOLERANCE = 1e-4  # relative to hidden values of up to 30

PAGE = Path(__file__).parents[2] / "docs" / "families.md"

TEXT = "I was watching the door"
SECOND_TEXT = "it opened ."
EAGER_OUTPUT = {
    "encoder": "encoder_attentions",
    "decoder": "decoder_attentions",
    "cross": "cross_attentions",
}


@dataclass(frozen=True)
class Case:
    """One family reading one text, alone or with a second one."""

    family: tiny.Family
    second_text: str | None = None

    def __str__(self) -> str:
        return f"{self.family.name}, {'two texts' if self.second_text else 'one text'}"


FAMILIES = tiny.TEXT_FAMILIES
CASES = [Case(family) for family in FAMILIES.values()] + [
    Case(family, SECOND_TEXT)
    for family in FAMILIES.values()
    if family.is_encoder_decoder or family.name in ("bert", "albert", "roberta")
]


@pytest.fixture(scope="module")
def eager(checkpoint):
    """The same checkpoint, loaded by transformers alone."""

    def load(name: str) -> PreTrainedModel:
        return AutoModel.from_pretrained(
            checkpoint(name), attn_implementation="eager", dtype=torch.float32
        ).eval()

    return cache(load)


@pytest.fixture(scope="module")
def eager_inputs(checkpoint):
    """Inputs made by transformers' tokenizer alone."""

    def make(case: Case, network: PreTrainedModel) -> dict[str, torch.Tensor]:
        tokenizer = AutoTokenizer.from_pretrained(checkpoint(case.family.name))
        if not case.family.is_encoder_decoder:
            return dict(tokenizer(TEXT, case.second_text, return_tensors="pt"))
        inputs = dict(tokenizer(TEXT, return_tensors="pt"))
        target = [start_of(network)]
        if case.second_text is not None:
            target += tokenizer(case.second_text)["input_ids"][:-1]  # all but </s>
        return inputs | {"decoder_input_ids": torch.tensor([target])}

    return make


def start_of(network: PreTrainedModel) -> int:
    """The token that a decoder reads first; T5Gemma's is the first of its decoder's texts."""
    config = network.config
    return config.decoder.bos_token_id if config.model_type == "t5gemma" else config.decoder_start_token_id


@pytest.fixture(scope="module")
def theirs(eager, eager_inputs):
    """By kind of attention the eager weights [layer][head, query, key], and the last hidden state."""

    def run(case: Case) -> tuple[dict[str, list[np.ndarray]], np.ndarray]:
        network = eager(case.family.name)
        with torch.inference_mode():
            if case.family.name == "big_bird":  # which hands out no weights when it turns to full attention
                network(**eager_inputs(case, network))
            output = network(**eager_inputs(case, network), output_attentions=True)
        names = {
            kind: EAGER_OUTPUT[kind] if case.family.is_encoder_decoder else "attentions"
            for kind in case.family.n_layers
        }
        weights = {kind: [of_layer[0].numpy() for of_layer in output[name]] for kind, name in names.items()}
        return weights, output.last_hidden_state[0].numpy()

    return cache(run)


@pytest.fixture(scope="module")
def ours(tiny_model):
    def trace(case: Case) -> Trace:
        return tiny_model(case.family.name).trace(TEXT, case.second_text)

    return cache(trace)


def heads_of(trace: Trace) -> list[tuple[int, int, str]]:
    return [
        (layer, head, kind)
        for kind in trace.kinds
        for layer in range(trace.n_layers(kind))
        for head in range(trace.n_heads(layer, kind))
    ]


@pytest.mark.parametrize("case", CASES, ids=str)
class TestLadder:
    def test_layers_and_heads_are_the_model_s(self, case, ours, theirs):
        trace, (weights, _) = ours(case), theirs(case)
        assert {kind: trace.n_layers(kind) for kind in trace.kinds} == case.family.n_layers
        for kind in trace.kinds:
            n_heads = tuple(trace.n_heads(layer, kind) for layer in range(trace.n_layers(kind)))
            assert n_heads == case.family.heads_of(kind)
            assert [len(weight) for weight in weights[kind]] == list(n_heads)
        assert {kind: len(layers) for kind, layers in weights.items()} == case.family.n_layers

    def test_weights(self, case, ours, theirs):
        trace, (weights, _) = ours(case), theirs(case)
        for layer, head, kind in heads_of(trace):
            np.testing.assert_allclose(
                trace.weights(layer, head, kind),
                weights[kind][layer][head],
                atol=WEIGHT_TOLERANCE,
                rtol=0,
                err_msg=f"{kind} layer {layer} head {head}",
            )

    def test_head_outputs(self, case, ours):
        trace = ours(case)
        for layer, head, kind in heads_of(trace):
            call = trace.attention(layer, kind)
            query, key, value = (
                torch.tensor(of(layer, head, kind)) for of in (trace.query, trace.key, trace.value)
            )
            mask = torch.zeros(1, 1, 1) if call.bias is None else torch.tensor(call.bias)
            if call.allowed is not None:
                mask = mask.masked_fill(torch.tensor(~call.allowed), -torch.inf)
            mask = mask[head if len(mask) > 1 else 0]
            if call.softcap is None:
                expected = torch.nn.functional.scaled_dot_product_attention(
                    query, key, value, attn_mask=mask, scale=call.scale
                )
            else:  # which torch's function does not have
                scores = call.softcap * torch.tanh(query @ key.T * call.scale / call.softcap)
                expected = (scores + mask).softmax(dim=-1) @ value
            np.testing.assert_allclose(
                trace.output(layer, head, kind),
                expected.numpy(),
                atol=OUTPUT_TOLERANCE,
                rtol=OUTPUT_TOLERANCE,
                err_msg=f"{kind} layer {layer} head {head}",
            )

    def test_last_hidden_state(self, case, ours, theirs):
        trace, (_, hidden) = ours(case), theirs(case)
        np.testing.assert_allclose(
            trace.last_hidden_state, hidden, atol=HIDDEN_TOLERANCE, rtol=HIDDEN_TOLERANCE
        )

    def test_attnviz_s_own_verification_passes(self, case, ours, tiny_model):
        report = attnviz.verify(tiny_model(case.family.name), ours(case))
        assert report.passed, report.failed
        compared = report.check("attention weights").compared
        for kind in case.family.n_layers:
            assert tuple(compared(kind).sum(axis=1)) == case.family.heads_of(kind)

    def test_and_so_it_does_some_queries_at_a_time(self, case, ours, tiny_model, monkeypatch):
        """As of a long text: the family's attention is called on three queries at a time."""
        monkeypatch.setattr(reference, "WHOLE", 1)
        monkeypatch.setattr(reference, "ROWS", 3)
        monkeypatch.setattr(blocks, "QUERY_BLOCK", 3)
        report = attnviz.verify(tiny_model(case.family.name), ours(case))
        assert report.passed, [check.name for check in report.failed]

    def test_the_attention_is_far_from_uniform(self, case, ours):
        """Otherwise wrong weights could hide in the tolerance: this is a check of the tests."""
        trace = ours(case)
        spreads = {
            (layer, head, kind): np.ptp(weights)
            for layer, head, kind in heads_of(trace)
            if (weights := trace.weights(layer, head, kind)).shape[1] > 1
        }
        assert min(spreads.values()) > 0.02, spreads
        assert max(spreads.values()) > 0.2, spreads


@pytest.mark.parametrize("name", FAMILIES)
class TestEveryFamily:
    def test_the_longest_text_that_is_promised_can_be_read(self, name, tiny_model):
        model = tiny_model(name)
        limit = model.max_tokens
        if name in ("t5", "mt5", "umt5"):
            assert limit is None  # relative positions have no end
            return
        n_special = int(model.tokenize("a").is_special.sum())
        length = limit - n_special
        text = "a" * length if FAMILIES[name].tokenizer == "bytes" else "a " * length
        assert len(model.trace(text).tokens) == limit
        with pytest.raises(attnviz.TextTooLongError):
            model.trace(text + " a")

    def test_a_trace_keeps_queries_keys_and_values_and_no_larger_buffer(self, name, tiny_model, kept_bytes):
        trace = tiny_model(name).trace(TEXT, None)
        calls = [call for calls in trace.layers.values() for call in calls]
        wanted = sum(array.nbytes for call in calls for array in (call.query, call.key, call.value))
        masks = {
            array.tobytes(): array.nbytes  # layers share their masks
            for call in calls
            for array in (call.allowed, call.bias)
            if array is not None
        }
        assert kept_bytes(trace) <= wanted + sum(masks.values()) + trace.last_hidden_state.nbytes


class TestDecoders:
    @pytest.mark.parametrize("name", ["gpt2", "llama", "gpt-neox"])
    def test_nothing_above_the_diagonal(self, name, ours):
        trace = ours(Case(FAMILIES[name]))
        assert trace.kinds == ("decoder",)
        for layer, head, kind in heads_of(trace):
            weights = trace.weights(layer, head, kind)
            assert np.array_equal(weights, np.tril(weights))

    def test_llama_s_heads_share_keys_and_values_by_threes(self, ours):
        trace = ours(Case(FAMILIES["llama"]))
        assert trace.attention(1).key.shape[0] == 2
        for head in range(6):
            assert np.array_equal(trace.key(1, head), trace.attention(1).key[head // 3])
            assert np.array_equal(trace.value(1, head), trace.attention(1).value[head // 3])


def test_modernbert_s_local_layers_see_two_tokens_to_each_side(ours):
    trace = ours(Case(FAMILIES["modernbert"]))
    n_token = len(trace.tokens)
    distance = np.abs(np.subtract.outer(np.arange(n_token), np.arange(n_token)))
    assert (trace.weights(0, 1) > 0).all()
    for layer in (1, 2):
        assert np.array_equal(trace.weights(layer, 1) > 0, distance <= 2)


def test_albert_s_layers_share_weights_but_not_what_passes_through(ours):
    trace = ours(Case(FAMILIES["albert"]))
    assert not np.allclose(trace.query(0, 0), trace.query(1, 0))


def test_a_pair_tells_bert_which_token_is_of_which_text(ours, tiny_model):
    case = Case(FAMILIES["bert"], SECOND_TEXT)
    trace = ours(case)
    assert trace.tokens.labels == (
        *("[CLS]", "i", "was", "watching", "the", "door", "[SEP]"),
        *("it", "opened", ".", "[SEP]"),
    )
    assert trace.tokens.segment.tolist() == [0] * 7 + [1] * 4
    joined = tiny_model("bert").trace(f"{TEXT} [SEP] {SECOND_TEXT}")
    assert np.array_equal(joined.tokens.ids, trace.tokens.ids)
    assert not np.allclose(joined.query(0, 0), trace.query(0, 0), atol=1e-3)


@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family.is_encoder_decoder])
class TestEncoderDecoders:
    def test_three_kinds_in_order(self, name, ours):
        assert ours(Case(FAMILIES[name])).kinds == KINDS == ("encoder", "decoder", "cross")

    def test_without_a_target_the_decoder_reads_its_start_token(self, name, ours, eager):
        trace = ours(Case(FAMILIES[name]))
        assert trace.target_tokens.ids.tolist() == [start_of(eager(name))]
        assert trace.weights(0, 0, "decoder").tolist() == [[1.0]]
        assert trace.weights(0, 0, "cross").shape == (1, len(trace.tokens))

    def test_with_a_target_the_axes_are_those_of_the_two_texts(self, name, ours):
        trace = ours(Case(FAMILIES[name], SECOND_TEXT))
        n_source, n_target = len(trace.tokens), len(trace.target_tokens)
        assert n_source != n_target > 1
        assert trace.target_tokens.labels[-3:] == ("it", "opened", ".")
        assert trace.weights(2, 1).shape == (n_source, n_source)
        assert trace.weights(3, 1, "decoder").shape == (n_target, n_target)
        assert trace.weights(3, 1, "cross").shape == (n_target, n_source)
        assert trace.key_tokens("cross") is trace.tokens
        assert trace.query_tokens("cross") is trace.key_tokens("decoder") is trace.target_tokens
        for layer in range(tiny.DECODER_LAYERS):
            weights = trace.weights(layer, 0, "decoder")
            assert np.array_equal(weights, np.tril(weights))


def test_t5_s_positions_are_a_bias_that_every_layer_shares(ours):
    trace = ours(Case(FAMILIES["t5"], SECOND_TEXT))
    for kind in ("encoder", "decoder"):
        biases = [call.bias for call in trace.layers[kind]]
        assert np.ptp(biases[0]) > 0.1
        assert all(np.array_equal(bias, biases[0]) for bias in biases)
        assert trace.attention(0, kind).scale == 1.0
    bias = trace.attention(0).bias
    assert not np.allclose(bias[0], bias[1])  # each head has its own
    assert not np.allclose(bias[0, 1, 2], bias[0, 2, 1])  # and it tells left from right


@pytest.mark.parametrize("family", tiny_refused.UNSUPPORTED_FAMILIES.values(), ids=lambda family: family.name)
class TestRefused:
    def test_with_a_reason(self, family, checkpoint):
        with pytest.raises(attnviz.UnsupportedArchitectureError, match=family.reason) as refused:
            attnviz.load_model(str(checkpoint(family.name)))
        assert f"| {family.name} | {refused.value.reason} |" in PAGE.read_text(encoding="utf-8")

    def test_because_it_does_not_pass_through_our_attention(self, family, checkpoint, monkeypatch):
        """A family that works by now would be refused needlessly."""
        monkeypatch.setattr("attnviz.model.checkpoint.refuse_unsupported", lambda name, config: None)
        try:
            model = attnviz.load_model(str(checkpoint(family.name)))
        except (attnviz.UnsupportedArchitectureError, CaptureError):
            return
        kinds = model.trace("a door", "a door" if family.is_encoder_decoder else None).kinds
        assert set(kinds) != set(family.n_layers)


def test_every_reason_is_tested():
    assert set(REASONS) <= set(tiny_refused.UNSUPPORTED_FAMILIES)


def test_a_vision_model_is_recorded_too():
    pixels = torch.randn(1, 3, 12, 12, generator=torch.Generator().manual_seed(0))
    network = tiny.build(tiny.VISION_FAMILY)
    network.set_attn_implementation("eager")
    with torch.inference_mode():
        theirs = network(pixel_values=pixels, output_attentions=True)
    network.set_attn_implementation("attnviz")

    layers, last_hidden_state = record_forward(network, pixel_values=pixels)

    assert {kind: len(calls) for kind, calls in layers.items()} == {"encoder": tiny.ENCODER_LAYERS}
    n_patch = (12 // 3) ** 2 + 1  # and the class token
    for call, weights in zip(layers["encoder"], theirs.attentions, strict=True):
        assert call.query.shape == (tiny.HEADS, n_patch, tiny.D_HEAD)
        for head in range(tiny.HEADS):
            scores = call.scale * torch.tensor(call.query[head]) @ torch.tensor(call.key[head]).T
            torch.testing.assert_close(
                scores.softmax(dim=-1), weights[0, head], atol=WEIGHT_TOLERANCE, rtol=0
            )
    torch.testing.assert_close(
        last_hidden_state, theirs.last_hidden_state[0], atol=HIDDEN_TOLERANCE, rtol=HIDDEN_TOLERANCE
    )


class TestEmbedded:
    def test_it_attends_to_the_door_in_layer_3_head_1(self, door_trace):
        trace = door_trace
        it, door = trace.tokens.labels.index("it"), trace.tokens.labels.index("door")
        of_heads = {(layer, head): trace.weights(layer, head)[it, door] for layer, head, _ in heads_of(trace)}
        assert len(of_heads) == 72
        assert max(of_heads, key=of_heads.get) == (3, 1)
        assert of_heads[3, 1] == pytest.approx(0.475, abs=5e-4)

    def test_weights_are_the_library_s(self, door_trace, embedded):
        network = AutoModel.from_pretrained(
            embedded.network.name_or_path, attn_implementation="eager", dtype=torch.float32
        )
        tokenizer = AutoTokenizer.from_pretrained(embedded.network.name_or_path)
        inputs = tokenizer(door_trace.tokens.text, return_tensors="pt")
        with torch.inference_mode():
            theirs = network(**inputs, output_attentions=True)
        for layer, head, _ in heads_of(door_trace):
            np.testing.assert_allclose(
                door_trace.weights(layer, head), theirs.attentions[layer][0, head].numpy(), atol=2e-6, rtol=0
            )  # float32, scores of at most 20; sums in another order than the library's
