"""Ids, what a tokenizer gives, and the messages of a chat are traced as they are."""

import numpy as np
import pytest
import torch

import attnviz

TEXT = "I was watching the door"


@pytest.fixture(scope="module")
def encoded(embedded):
    return embedded.tokenizer(TEXT)


@pytest.mark.parametrize(
    "given",
    [
        lambda encoded: encoded["input_ids"],
        lambda encoded: tuple(encoded["input_ids"]),
        lambda encoded: np.array(encoded["input_ids"]),
        lambda encoded: torch.tensor(encoded["input_ids"]),
        lambda encoded: torch.tensor([encoded["input_ids"]]),
        lambda encoded: [encoded["input_ids"]],
        lambda encoded: {
            **encoded,
            "attention_mask": torch.ones(1, 7, dtype=torch.bool),
            "token_type_ids": None,
        },
        lambda encoded: encoded,
        dict,
        lambda encoded: encoded.convert_to_tensors("pt", prepend_batch_axis=True),
    ],
)
def test_ids_of_a_text_are_that_text(given, encoded, embedded):
    trace, expected = embedded.trace(given(embedded.tokenizer(TEXT))), embedded.trace(TEXT)
    assert trace.tokens.labels == expected.tokens.labels and trace.tokens.word.tolist() == [-1, *range(5), -1]
    np.testing.assert_array_equal(trace.weights(3, 1), expected.weights(3, 1))
    assert attnviz.verify(embedded, trace).check("tokens").passed


def test_rows_are_texts_without_their_padding(embedded):
    texts = [TEXT, "It opened.", "A door"]
    traces = embedded.trace(embedded.tokenizer(texts, padding=True, return_tensors="pt"))
    assert [len(trace.tokens) for trace in traces] == [7, 5, 4]
    for trace, text in zip(traces, texts, strict=True):
        np.testing.assert_allclose(trace.weights(2, 5), embedded.trace(text).weights(2, 5), atol=1e-6)


def test_ids_that_no_text_has_are_read_and_not_compared_with_the_tokenizer(embedded):
    """A tokenizer gives "doors" one id, and here are two; whatever stands there, the model's numbers are checked."""
    ids = embedded.tokenizer.convert_tokens_to_ids(["[CLS]", "door", "##s", "when", "[SEP]"])
    trace = embedded.trace(ids)
    report = attnviz.verify(embedded, trace)
    assert trace.tokens.labels == ("[CLS]", "door", "##s", "when", "[SEP]")
    assert trace.tokens.word.tolist() == [-1, 0, 0, 1, -1]
    assert trace.tokens.is_special.tolist() == [True, False, False, False, True]
    assert report.passed and report.not_compared["tokens"].startswith("The ids were given")
    with torch.no_grad():
        states = embedded.reference(input_ids=torch.tensor([ids])).last_hidden_state[0]
    torch.testing.assert_close(torch.tensor(trace.last_hidden_state), states, atol=1e-5, rtol=1e-5)


def test_the_second_text_of_a_pair_is_told(embedded):
    trace = embedded.trace(embedded.tokenizer("A door", "The window"))
    expected = embedded.trace("A door", "The window")
    assert trace.tokens.segment.tolist() == expected.tokens.segment.tolist() == [0, 0, 0, 0, 1, 1, 1]
    np.testing.assert_array_equal(trace.weights(3, 1), expected.weights(3, 1))


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ([1.5, 2], attnviz.ArgumentError, "whole numbers of 0 or more"),
        ([-1], attnviz.ArgumentError, "whole numbers of 0 or more"),
        (torch.zeros(1, 2, 2, dtype=torch.long), attnviz.ArgumentError, r"\[token\] or \[text, token\]"),
        ([10**7], attnviz.ModelFailedError, "embeddings of all-MiniLM-L6-v2 have 30,522 rows"),
        (
            list(range(600)),
            attnviz.TextTooLongError,
            "600 ids were given; all-MiniLM-L6-v2 reads at most 512",
        ),
        (
            {"input_ids": [5, 6], "attention_mask": [1]},
            attnviz.ShapeError,
            "attention_mask has another shape",
        ),
        ({"input_ids": [5, 6], "attention_mask": [0, 0]}, attnviz.EmptyTextError, "Text 1 of 1 has no ids"),
        (
            {"ids": [5]},
            attnviz.ArgumentError,
            "was given a dict as text; it takes a text, a list of texts, token",
        ),
        (["a", 3], attnviz.ArgumentError, "a list of str and int as text"),
        (None, attnviz.ArgumentError, "was given None as text"),
    ],
)
def test_what_is_no_text(given, error, words, embedded):
    with pytest.raises(error, match=words):
        embedded.trace(given)


def test_nothing_stands_beside_ids(encoded, embedded):
    for more in ({"max_tokens": 0}, {"text_pair": "b"}, {"masked": [1]}, {"cut": True}, {"template": "chat"}):
        with pytest.raises(attnviz.ArgumentError, match="ids and something beside them"):
            embedded.trace(encoded, **more)


def test_a_chat_is_what_the_template_makes_of_it(smollm2):
    messages = [
        {"role": "user", "content": "Who are you?"},
        {"role": "assistant", "content": "A model."},
        {"role": "user", "content": "Sure?"},
    ]
    trace = smollm2.trace_chat(messages)
    ids = smollm2.tokenizer.apply_chat_template(messages, add_generation_prompt=True)["input_ids"]
    assert trace.tokens.ids.tolist() == list(ids)
    assert attnviz.verify(smollm2, trace).passed
    answered = smollm2.trace_chat(messages[:2])
    ids = smollm2.tokenizer.apply_chat_template(messages[:2], add_generation_prompt=False)["input_ids"]
    assert answered.tokens.ids.tolist() == list(ids)


@pytest.mark.parametrize("messages", [[], [{"rolle": "user"}]])
def test_messages_that_the_template_refuses(messages, smollm2):
    with pytest.raises(attnviz.ModelFailedError, match="chat template of this model fails on these messages"):
        smollm2.trace_chat(messages)


def test_a_model_without_a_chat_template(embedded):
    with pytest.raises(attnviz.SelectionError, match="has no chat template"):
        embedded.trace_chat([{"role": "user", "content": "a"}])


def test_several_rows_are_several_texts(embedded):
    rows = [embedded.tokenizer(text)["input_ids"] for text in (TEXT, "It opened.")]
    for given in (rows, [np.array(row) for row in rows]):
        assert [len(trace.tokens) for trace in embedded.trace(given)] == [7, 5]


def test_a_chat_for_an_encoder_and_a_decoder(tiny_model):
    with pytest.raises(attnviz.SelectionError, match="has an encoder and a decoder"):
        tiny_model("t5").trace_chat([{"role": "user", "content": "a"}])
