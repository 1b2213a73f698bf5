"""Several texts through a model at once, against one at a time: of every family, with whatever padding follows them."""

import numpy as np
import pytest

from attnviz.errors import EmptyTextError, ModelFailedError, SelectionError, ShapeError
from attnviz.model.batch import batches
from tests import tiny

TEXTS = [
    "it opened .",
    "I was watching the door",
    "a cat sat on the mat",
    "door",
    "the cat opened the door .",
]
SECONDS = [None, "it opened .", "a cat", None, "I was watching the door"]
TOLERANCE = 2e-5  # float32; products of other shapes are summed in another order


def compare(together, alone):
    """Everything that a trace keeps is that of its text alone."""
    assert together.kinds == alone.kinds
    for kind in alone.kinds:
        for ours, theirs in zip(together.layers[kind], alone.layers[kind], strict=True):
            for name in ("query", "key", "value"):
                np.testing.assert_allclose(
                    getattr(ours, name), getattr(theirs, name), rtol=TOLERANCE, atol=TOLERANCE, err_msg=name
                )
            assert (ours.scale, ours.softcap) == (theirs.scale, theirs.softcap)
            for name in ("allowed", "bias"):
                mine, its = getattr(ours, name), getattr(theirs, name)
                assert (mine is None) == (its is None), name
                if mine is not None:
                    np.testing.assert_allclose(mine, its, rtol=TOLERANCE, atol=TOLERANCE, err_msg=name)
        for layer, head in alone.heads(kind):
            np.testing.assert_allclose(
                together.weights(layer, head, kind), alone.weights(layer, head, kind), atol=TOLERANCE
            )
    scale = np.abs(alone.last_hidden_state).max()
    np.testing.assert_allclose(together.last_hidden_state, alone.last_hidden_state, atol=TOLERANCE * scale)


@pytest.mark.parametrize("name", tiny.TEXT_FAMILIES)
def test_traces_of_a_list_are_those_of_its_texts(name, tiny_model):
    model = tiny_model(name)
    seconds = SECONDS if model.network.config.is_encoder_decoder else None
    together = model.trace(TEXTS, seconds)
    assert len(together) == len(TEXTS)
    for number, trace in enumerate(together):
        alone = model.trace(TEXTS[number], seconds and seconds[number])
        assert trace.tokens.labels == alone.tokens.labels
        compare(trace, alone)


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_side_that_the_tokenizer_pads_changes_nothing(side, tiny_model, monkeypatch):
    model = tiny_model("gpt2")
    alone = [model.trace(text) for text in TEXTS]
    monkeypatch.setattr(model.tokenizer, "padding_side", side)
    for trace, single in zip(model.trace(TEXTS), alone, strict=True):
        compare(trace, single)


def test_a_trace_of_a_list_keeps_nothing_of_the_other_texts(tiny_model):
    short, _ = tiny_model("bert").trace(["door", "I was watching the door when it opened ."])
    for call in short.layers["encoder"]:
        for array in (call.query, call.key, call.value):
            assert array.base is None or array.base.nbytes == array.nbytes
        assert call.allowed is None  # nothing is hidden from a text without padding


def test_pairs_of_sentences(tiny_model):
    model = tiny_model("bert")
    for trace, (first, other) in zip(
        model.trace(TEXTS, SECONDS), zip(TEXTS, SECONDS, strict=True), strict=True
    ):
        compare(trace, model.trace(first, other))


def test_no_text_gives_no_trace(tiny_model):
    assert tiny_model("bert").trace([]) == []


class TestRefused:
    def test_the_text_is_named(self, tiny_model):
        with pytest.raises(EmptyTextError, match=r"^Text 2 of 3: "):
            tiny_model("bert").trace(["door", "", "cat"])

    def test_the_text_that_makes_numbers_that_are_not_finite_is_named(self, tiny_model, monkeypatch):
        model = tiny_model("bert")
        ids = model.tokenize("cat").ids
        weight = model.network.get_input_embeddings().weight
        before = weight.data[ids[1]].clone()
        try:
            weight.data[ids[1]] = np.nan
            with pytest.raises(
                ModelFailedError, match=r"^Text 3 of 3: The last hidden states of BertModel hold NaN"
            ):
                model.trace(["door", "it opened", "cat"])
        finally:
            weight.data[ids[1]] = before

    def test_what_belongs_to_one_text(self, tiny_model):
        with pytest.raises(SelectionError, match="were given for 2 texts; they belong to one"):
            tiny_model("bert").trace(["door", "cat"], masked=[1])

    def test_another_number_of_second_texts(self, tiny_model):
        with pytest.raises(ShapeError, match="2 texts and 1 second texts"):
            tiny_model("bert").trace(["door", "cat"], ["it"])


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([], []),
        ([5, 3, 9, 4], [[1, 3], [0], [2]]),  # 3 x 5 would be 15 tokens
        ([20, 2], [[1], [0]]),
        ([1, 1, 1, 1, 1], [[0, 1, 2], [3, 4]]),
    ],
)
def test_batches_hold_texts_of_about_one_length(lengths, expected):
    assert list(batches(lengths, most_texts=3, most_tokens=10)) == expected
