"""Recording: each context its own, nothing left on the model, and clear errors for what is not known."""

import copy
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import nn

import attnviz
from attnviz.errors import CaptureError, ModelFailedError, UnsupportedArchitectureError
from attnviz.model import capture
from attnviz.model.capture import CallOrder, Length, _array, attnviz_attention, record_forward, split_mask

TEXTS = ("I was watching the door", "a cat sat on the mat .")


@pytest.fixture
def network(tiny_model):
    return tiny_model("bert").network


@pytest.fixture
def inputs(tiny_model):
    model = tiny_model("bert")
    return model.inputs(model.tokenize(TEXTS[0]))


class TestSeveralAtOnce:
    def test_two_threads_that_meet_in_every_layer_each_record_their_own_text(self, tiny_model, monkeypatch):
        model = tiny_model("bert")
        alone = [model.trace(text) for text in TEXTS]
        meeting = threading.Barrier(len(TEXTS), timeout=30)
        output = capture.attention_output_in_blocks

        def meet_and_attend(*args, **kwargs):
            meeting.wait()  # both are inside the same layer of the same model now
            return output(*args, **kwargs)

        monkeypatch.setattr(capture, "attention_output_in_blocks", meet_and_attend)
        with ThreadPoolExecutor(len(TEXTS)) as threads:
            together = list(threads.map(model.trace, TEXTS))

        for trace, other in zip(together, alone, strict=True):
            assert trace.tokens.labels == other.tokens.labels
            assert trace.n_layers() == other.n_layers()
            np.testing.assert_allclose(trace.last_hidden_state, other.last_hidden_state, atol=1e-5)  # float32
            for layer in range(trace.n_layers()):
                assert trace.query(layer, 0).shape == other.query(layer, 0).shape
                np.testing.assert_allclose(trace.query(layer, 1), other.query(layer, 1), atol=1e-5)  # float32

    def test_a_plain_forward_pass_in_another_thread_is_not_recorded(self, network, inputs, monkeypatch):
        output = capture.attention_output_in_blocks
        started = []

        def attend_beside_another(*args, **kwargs):
            if not started:
                started.append(True)
                with ThreadPoolExecutor(1) as thread:
                    thread.submit(network, **inputs).result()
            return output(*args, **kwargs)

        monkeypatch.setattr(capture, "attention_output_in_blocks", attend_beside_another)
        layers, _ = record_forward(network, **inputs)
        assert started
        assert len(layers["encoder"]) == 3

    def test_the_same_text_twice_gives_two_traces_of_equal_numbers_in_memory_of_their_own(self, tiny_model):
        trace, other = (tiny_model("bert").trace(TEXTS[0]) for _ in range(2))
        assert np.array_equal(trace.query(0, 0), other.query(0, 0))
        assert not np.shares_memory(trace.query(0, 0), other.query(0, 0))


def test_a_model_runs_outside_of_inference_mode_too(network, inputs):
    with torch.enable_grad():
        hidden = network(**inputs).last_hidden_state[0]
    _, expected = record_forward(network, **inputs)
    torch.testing.assert_close(hidden, expected)


class TestNothingIsLeft:
    @staticmethod
    def state(network: nn.Module) -> dict[str, tuple[dict[str, int], int]]:
        """For each module the identity of its attributes, and the number of its hooks."""
        return {
            name: (
                {key: id(value) for key, value in vars(module).items()},
                sum(len(value) for key, value in vars(module).items() if key.endswith("_hooks")),
            )
            for name, module in network.named_modules()
        }

    def test_on_the_model(self, network, inputs):
        before = self.state(network)
        record_forward(network, **inputs)
        assert self.state(network) == before

    def test_in_the_context(self, network, inputs):
        record_forward(network, **inputs)
        assert capture.current_recording.get() is None

    def test_in_the_context_after_an_error(self, network):
        with pytest.raises(ModelFailedError, match="BertModel failed on this text: IndexError"):
            record_forward(network, input_ids=torch.tensor([[10**6]]))
        assert capture.current_recording.get() is None

    def test_no_gradient_is_kept(self, network, inputs):
        _, hidden = record_forward(network, **inputs)
        assert not hidden.requires_grad
        assert all(parameter.grad is None for parameter in network.parameters())


class TestRefusals:
    def test_a_batch_of_two(self, network, inputs):
        twice = {
            name: torch.cat([tensor, tensor]) for name, tensor in inputs.items() if torch.is_tensor(tensor)
        }
        with pytest.raises(CaptureError, match="A batch of 2 was being recorded as 1 text"):
            record_forward(network, **twice)

    def test_a_batch_of_two_that_is_not_recorded_is_none_of_our_business(self, network, inputs):
        twice = {
            name: torch.cat([tensor, tensor]) for name, tensor in inputs.items() if torch.is_tensor(tensor)
        }
        with torch.inference_mode():
            hidden = network(**twice).last_hidden_state
        torch.testing.assert_close(hidden[0], hidden[1])

    @pytest.mark.parametrize("promised", [2, 4])
    def test_another_number_of_layers_than_the_configuration_says(self, promised, network, inputs):
        wrong = copy.deepcopy(network)
        wrong.config.num_hidden_layers = promised
        with pytest.raises(CaptureError, match=f"has {promised} layers with encoder attention, but 3 passed"):
            record_forward(wrong, **inputs)

    def test_another_number_of_decoder_layers(self, tiny_model):
        model = tiny_model("bart")
        wrong = copy.deepcopy(model.network)
        wrong.config.decoder_layers = 3
        with pytest.raises(CaptureError, match="has 3 layers with decoder attention, but 4 passed"):
            record_forward(
                wrong,
                input_ids=torch.tensor([[7, 8]]),
                decoder_input_ids=torch.tensor([[7]]),
                use_cache=False,
            )

    def test_a_model_that_does_not_run_on_our_attention(self, tiny_model, inputs):
        with pytest.raises(
            UnsupportedArchitectureError, match="BertModel does not let its attention be replaced"
        ):
            record_forward(tiny_model("bert").reference, **inputs)


class TestArguments:
    """attnviz_attention called as transformers calls it."""

    query, key, value = (torch.randn(1, 2, n, 5) for n in (3, 4, 4))

    def attend(self, **arguments) -> torch.Tensor:
        return attnviz_attention(nn.Identity(), self.query, self.key, self.value, None, **arguments)[0]

    def test_axes_and_default_scale(self):
        expected = nn.functional.scaled_dot_product_attention(self.query, self.key, self.value)
        assert self.attend().shape == (1, 3, 2, 5)
        torch.testing.assert_close(self.attend(), expected.transpose(1, 2))

    def test_another_formula_is_refused_in_words(self):
        with pytest.raises(UnsupportedArchitectureError, match=r"^Identity .*a learned sink"):
            self.attend(s_aux=torch.ones(2), a_new_term=1)

    @pytest.mark.parametrize("name", ["head_mask", "a_new_term"])
    def test_a_term_that_is_not_known_is_refused_by_name(self, name):
        with pytest.raises(
            UnsupportedArchitectureError, match=f"Identity calls its attention with {name}, which"
        ):
            self.attend(**{name: torch.ones(2)})

    def test_several_are_all_named(self):
        with pytest.raises(UnsupportedArchitectureError, match="with a, b, which"):
            self.attend(b=1, a=1)

    def test_dropout_is_refused(self):
        with pytest.raises(UnsupportedArchitectureError, match=r"dropout 0\.1"):
            self.attend(dropout=0.1)

    def test_a_term_that_is_not_given_is_let_through(self):
        torch.testing.assert_close(self.attend(s_aux=None, softcap=None), self.attend())

    def test_one_that_is_accounted_for_elsewhere_is_let_through(self):
        torch.testing.assert_close(self.attend(is_causal=False, sliding_window=3), self.attend())

    def test_a_mask_is_added_and_a_position_bias_too(self):
        mask, bias = torch.randn(1, 1, 3, 4), torch.randn(1, 2, 3, 4)
        mask[..., 1:, 2] = torch.finfo(torch.float32).min
        expected = nn.functional.scaled_dot_product_attention(
            self.query, self.key, self.value, attn_mask=mask + bias, scale=0.7
        )
        output, _ = attnviz_attention(
            nn.Identity(), self.query, self.key, self.value, mask, scaling=0.7, position_bias=bias
        )
        torch.testing.assert_close(output.transpose(1, 2), expected)

    def test_a_row_that_is_masked_whole_is_zero(self):
        mask = torch.zeros(1, 1, 3, 4)
        mask[..., 1, :] = torch.finfo(torch.float32).min
        output, _ = attnviz_attention(nn.Identity(), self.query, self.key, self.value, mask)
        assert output[0, 1].count_nonzero() == 0
        assert output[0, 0].count_nonzero() == output[0, 0].numel()

    def test_a_boolean_mask_says_what_is_allowed(self):
        mask = torch.tensor([True, False, True, True]).expand(1, 1, 3, 4)
        expected = nn.functional.scaled_dot_product_attention(
            self.query, self.key, self.value, attn_mask=mask
        )
        output, _ = attnviz_attention(nn.Identity(), self.query, self.key, self.value, mask)
        torch.testing.assert_close(output.transpose(1, 2), expected)


def test_numbers_near_the_lowest_hide_a_key_and_other_numbers_are_a_bias():
    lowest = torch.finfo(torch.float32).min
    allowed, bias = split_mask(torch.tensor([[[[0.0, lowest, 0.75 * lowest, -1e4]]]]))
    assert allowed.flatten().tolist() == [True, False, False, True]
    assert bias.flatten().tolist() == [0.0, 0.0, 0.0, -1e4]


class TestOrderOfCalls:
    def test_an_attention_that_does_not_say_that_it_is_causal_is_not(self, network, tiny_model):
        assert CallOrder(network).upcoming(nn.Identity()) == ("encoder", 0)
        assert CallOrder(tiny_model("bart").network).upcoming(nn.Identity()) == ("cross", 0)

    def test_only_calls_that_were_made_are_counted(self, network):
        order = CallOrder(network)
        order.upcoming(nn.Identity())
        assert (order.n_calls, order.last) == (0, None)
        assert [order.next(nn.Identity()) for _ in range(2)] == [("encoder", 0), ("encoder", 1)]
        assert (order.n_calls, order.last) == (2, ("encoder", 1))


def test_what_padding_hides_is_recorded_as_not_allowed(tiny_model):
    model = tiny_model("bert")
    inputs = model.inputs(model.tokenize(TEXTS[0])) | {
        "attention_mask": torch.tensor([[1, 1, 1, 1, 1, 0, 0]])
    }
    layers, _ = record_forward(model.network, **inputs)
    for call in layers["encoder"]:
        assert call.allowed.shape == (1, 7, 7)
        assert call.allowed[0].tolist() == [[True] * 5 + [False] * 2] * 7
        assert call.bias is None


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_bias_that_layers_share_is_kept_once(checkpoint, dtype):
    """On a GPU and in half precision an array is a copy; 512 tokens and 12 heads have 12 MB of it."""
    model = attnviz.load_model(str(checkpoint("t5")), device="cpu", dtype=dtype)
    first, *others = model.trace("the door", "the door").layers["encoder"]
    assert first.bias is not None and others
    assert all(np.shares_memory(first.bias, other.bias) for other in others)


@pytest.mark.parametrize(
    ("length", "sizes"),
    [
        (Length(read=7), {"encoder": (7, 7), "decoder": (7, 7)}),
        (Length(read=7, written=4), {"encoder": (7, 7), "decoder": (4, 4), "cross": (4, 7)}),
    ],
)
def test_queries_and_keys_of_a_text(length, sizes):
    """A decoder's queries are what is written; across, its keys are what is read."""
    for kind, expected in sizes.items():
        assert length.of(kind) == expected


def test_an_array_keeps_no_more_memory_than_it_shows():
    """A tensor's own memory is shared; a part of a larger one is copied."""
    whole = torch.arange(12.0).reshape(3, 4)
    assert np.shares_memory(_array(whole), whole.numpy())
    part = _array(whole[:, 1:3])
    assert not np.shares_memory(part, whole.numpy())
    assert part.tolist() == [[1.0, 2.0], [5.0, 6.0], [9.0, 10.0]]
