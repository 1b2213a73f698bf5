"""What a model would put in a place, against transformers' own models with a language head."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers as tf
from safetensors.torch import load_file, save_file

import attnviz
from attnviz.model import capture
from attnviz.model.interventions import MaskedKeys
from tests import tiny

pytestmark = pytest.mark.slow

TEXT = "the cat sat when it opened"
FAMILIES = tiny.WITH_HEAD


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Callable[[str], Path]:
    root = tmp_path_factory.mktemp("with_head")
    return cache(lambda name: tiny.save_with_head(name, root / name))


@pytest.fixture(scope="module")
def bert(folder):
    return attnviz.load_model(str(folder("bert")))


def shares(whole: tf.PreTrainedModel, inputs: dict[str, torch.Tensor]) -> np.ndarray:
    """Softmax of the logits of a model with its head, [token, vocabulary], in float64."""
    with torch.inference_mode():
        return whole(**inputs).logits[0].double().softmax(dim=-1).numpy()


def assert_are_the_likeliest(
    predictions: attnviz.Predictions, expected: np.ndarray, model: attnviz.Model
) -> None:
    order = np.argsort(-expected)[: len(predictions.labels)]
    np.testing.assert_allclose(
        predictions.probabilities, expected[order], rtol=2e-4
    )  # float32 through three layers
    names = [model.tokenizer.convert_ids_to_tokens(int(index)) or f"id {index}" for index in order]
    if model.tokenizer.mask_token == "[MASK]":  # word pieces are shown as they are
        assert list(predictions.labels) == names


@pytest.mark.parametrize("name", FAMILIES)
def test_every_position_as_transformers_own(name, folder):
    model = attnviz.load_model(str(folder(name)))
    theirs = FAMILIES[name].from_pretrained(folder(name), attn_implementation="eager").eval()
    trace = model.trace(TEXT, masked=() if model.mask_label is None else [3])
    expected = shares(theirs, model.inputs(trace.tokens))
    for position in range(len(trace.tokens)):
        assert_are_the_likeliest(attnviz.predict(model, trace, position, top=7), expected[position], model)
    assert attnviz.verify(model, trace).passed


def test_under_a_causal_mask_as_the_causal_model_of_the_same_weights(bert, folder):
    config = tf.BertConfig.from_pretrained(folder("bert"), is_decoder=True)
    config._attn_implementation = "eager"
    theirs = tf.BertForMaskedLM.from_pretrained(folder("bert"), config=config).eval()
    n = len(bert.trace(TEXT).tokens)
    causal = [MaskedKeys(allowed=np.tril(np.ones((n, n), dtype=bool)))]
    plain, masked = bert.trace(TEXT, masked=[4]), bert.trace(TEXT, masked=[4], interventions=causal)
    expected = shares(theirs, bert.inputs(masked.tokens))
    for position in range(n):
        assert_are_the_likeliest(attnviz.predict(bert, masked, position), expected[position], bert)
    before, after = attnviz.predict(bert, plain, 4), attnviz.predict(bert, masked, 4)
    assert np.abs(before.probabilities - after.probabilities).max() > 0.01


def test_where_more_are_asked_for_than_there_are_all_are_given(bert):
    predictions = attnviz.predict(bert, bert.trace(TEXT), 1, top=10**6)
    assert sorted(predictions.ids.tolist()) == list(range(tiny.VOCABULARY))
    assert predictions.probabilities.sum() == pytest.approx(1, abs=1e-5)  # float32


def test_parameters_are_shared_and_none_is_left_over(bert, folder):
    theirs = tf.BertForMaskedLM.from_pretrained(folder("bert"))
    network = {id(parameter) for parameter in bert.network.parameters()}
    assert network == {id(parameter) for parameter in bert.reference.parameters()}
    own = {id(parameter) for parameter in bert.language_head.parameters()} - network
    assert len(network) + len(own) == len(list(theirs.parameters()))
    assert bert.language_head.get_output_embeddings().weight is bert.network.get_input_embeddings().weight


def test_two_threads_that_meet_do_not_share_predictions(bert, monkeypatch):
    n = len(bert.trace(TEXT).tokens)
    masks = [np.tril(np.ones((n, n), dtype=bool)), np.eye(n, dtype=bool)]

    def read(allowed: np.ndarray) -> attnviz.Predictions:
        return attnviz.predict(bert, bert.trace(TEXT, interventions=[MaskedKeys(allowed=allowed)]), 5)

    alone = [read(mask) for mask in masks]
    meeting, real = threading.Barrier(2, timeout=30), capture.attention_output_in_blocks

    def met(*args, **kwargs):
        meeting.wait()
        return real(*args, **kwargs)

    monkeypatch.setattr(capture, "attention_output_in_blocks", met)
    head = bert.language_head.forward

    def head_met(*args, **kwargs):
        meeting.wait()
        return head(*args, **kwargs)

    monkeypatch.setattr(bert.language_head, "forward", head_met)
    with ThreadPoolExecutor(2) as threads:
        together = list(threads.map(read, masks))
    for ours, expected in zip(together, alone, strict=True):
        assert ours.labels == expected.labels
        np.testing.assert_array_equal(ours.probabilities, expected.probabilities)
    assert alone[0].labels != alone[1].labels


def test_a_checkpoint_without_a_head_gets_none(checkpoint, embedded):
    for model in (attnviz.load_model(str(checkpoint("bert"))), embedded):
        assert model.language_head is None
        with pytest.raises(attnviz.UnsupportedArchitectureError, match="no language head"):
            attnviz.predict(model, model.trace("a door"), 1)


@pytest.mark.parametrize("lost", ["cls.predictions.bias", "cls.predictions.transform.dense.weight"])
def test_a_head_that_is_not_whole_is_none(lost, tmp_path):
    tiny.save_with_head("bert", tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    before = attnviz.load_model(str(tmp_path)).trace(TEXT).last_hidden_state
    del tensors[lost]
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    model = attnviz.load_model(str(tmp_path))
    assert model.language_head is None
    np.testing.assert_array_equal(model.trace(TEXT).last_hidden_state, before)


def test_a_network_that_is_not_whole_is_refused(tmp_path):
    tiny.save_with_head("bert", tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["bert.embeddings.position_embeddings.weight"]
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        attnviz.ModelNotAvailableError, match=r"such as embeddings\.position_embeddings\.weight"
    ):
        attnviz.load_model(str(tmp_path))


@pytest.mark.parametrize(
    ("asked", "message"), [({"position": 99}, "Token 99"), ({"position": 1, "top": 0}, "one or more")]
)
def test_what_is_not_there(bert, asked, message):
    with pytest.raises(attnviz.SelectionError, match=message):
        attnviz.predict(bert, bert.trace(TEXT), **asked)
