"""Logits of the language head: as many products with the vocabulary as there are calls, whatever the states' layout in memory."""

from types import SimpleNamespace

import pytest
import torch
import transformers as tf
from torch.utils._python_dispatch import TorchDispatchMode

import attnviz
from attnviz.effects.token_embeddings import _end_of_text
from attnviz.errors import SelectionError
from attnviz.model.answers import class_logits, class_number, token_logits
from tests import tiny


class _Products(TorchDispatchMode):
    """Notes which products of matrices torch makes."""

    def __init__(self):
        super().__init__()
        self.made = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if "mm" in function.__name__:
            self.made.append(function.__name__.split(".")[0])
        return function(*args, **(kwargs or {}))


def test_rows_that_lie_apart_are_multiplied_at_once(headed):
    """The last tokens of several variants; row by row, 27 variants of SmolLM2-135M-Instruct take 1.4 s in place of 0.02 s."""
    model, _ = headed("llama")
    states = torch.randn(5, 7, model.network.config.hidden_size)
    with torch.no_grad(), _Products() as products:
        logits = token_logits(model, states[:, -1])
    assert products.made == ["mm"]
    expected = states[:, -1].double() @ model.language_head.lm_head.weight.detach().double().T
    torch.testing.assert_close(logits.double(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n_class", [1, 8, 9])
def test_of_many_classes_the_first_are_named(n_class, types_unchecked):
    names = [f"CLASS{number}" for number in range(n_class)]
    config = SimpleNamespace(id2label=dict(enumerate(names)))
    model = SimpleNamespace(name="mine", classifier=SimpleNamespace(config=config))
    assert class_number(model, names[-1]) == n_class - 1
    named = {
        1: "CLASS0.",
        8: "CLASS0, CLASS1, CLASS2, CLASS3, CLASS4, CLASS5, CLASS6, CLASS7.",
        9: "CLASS0, CLASS1, CLASS2, CLASS3, CLASS4, CLASS5, CLASS6, CLASS7 and more.",
    }[n_class]
    with pytest.raises(SelectionError) as caught:
        class_number(model, "OTHER")
    assert str(caught.value) == (
        f"The class “OTHER” was asked for; the classes of mine are {named} Select one of those."
    )


@pytest.mark.parametrize(
    ("tokenizers", "configured", "expected"),
    [
        ((5, 6), 7, 5),
        ((None, 6), 7, 6),
        ((None, None), 7, 7),
        ((None, None), [9, 8], 9),
        ((None, None), [], None),
        ((None, None), None, None),
        ((0, 6), None, 0),
    ],
)
def test_the_token_that_ends_a_text(tokenizers, configured, expected):
    """The tokenizer's end, its separator, then the configuration's, the first of several."""
    tokenizer = SimpleNamespace(eos_token_id=tokenizers[0], sep_token_id=tokenizers[1])
    network = SimpleNamespace(config=SimpleNamespace(eos_token_id=configured))
    assert _end_of_text(SimpleNamespace(tokenizer=tokenizer, network=network)) == expected


@pytest.mark.parametrize("padding", [None, 0])
def test_several_texts_are_classified_at_once(tmp_path, padding):
    """Also by a classifier whose checkpoint names no padding token, which transformers runs on one text at a time."""
    folder = tiny.save_with_classifier("gpt2", tmp_path, pad_token_id=padding)
    model = attnviz.load_model(str(folder))
    network = tf.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    texts = ("the cat sat", "the dog sat", "the mat sat")
    traces = [model.trace(text) for text in texts]
    states = torch.stack([torch.tensor(trace.last_hidden_state) for trace in traces])
    with torch.no_grad():
        logits = class_logits(model, states)
        own = torch.cat([network(**model.tokenizer(text, return_tensors="pt")).logits for text in texts])
    torch.testing.assert_close(logits, own, rtol=1e-4, atol=1e-4)
    assert own.std(dim=0).min() > 1e-3
