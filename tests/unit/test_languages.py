"""A translation model's texts are marked with their languages as transformers' own ``text_target`` marks them."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers as tf
from transformers.models.m2m_100.modeling_m2m_100 import shift_tokens_right as shift_of_m2m_100
from transformers.models.mbart.modeling_mbart import shift_tokens_right as shift_of_mbart

import attnviz
from attnviz.errors import SelectionError
from attnviz.model.model import Model
from tests.translation import FAMILIES, save

TEXT, TARGET = "a door opened", "it sat"


@pytest.fixture(scope="module", params=FAMILIES)
def name(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def folder(name: str, tmp_path_factory) -> Path:
    return save(name, tmp_path_factory.mktemp(name))


@pytest.fixture(scope="module")
def model(folder: Path) -> Model:
    return attnviz.load_model(str(folder))


@pytest.fixture(scope="module")
def own(folder: Path) -> tf.PreTrainedTokenizerBase:
    return tf.AutoTokenizer.from_pretrained(folder)


def decoder_ids(family: str, labels: list[int]) -> list[int]:
    """What the family's own model reads when it is trained on these labels."""
    given = torch.tensor([labels])
    shifted = shift_of_mbart(given, 1) if family == "mbart" else shift_of_m2m_100(given, 1, 2)
    return shifted[0].tolist()


def test_the_tokenizer_s_own_languages_are_taken_where_none_is_chosen(name, model, own):
    trace = model.trace(TEXT, TARGET)
    family = FAMILIES[name][0]
    assert trace.tokens.ids.tolist() == own(TEXT)["input_ids"]
    assert trace.target_tokens.ids.tolist() == decoder_ids(family, own(text_target=TARGET)["input_ids"])
    assert own.tgt_lang in trace.target_tokens.labels
    assert own.src_lang not in trace.target_tokens.labels
    assert (trace.tokens.language, trace.target_tokens.language) == (own.src_lang, own.tgt_lang)


def test_chosen_languages_are_those_of_transformers(name, model, folder):
    family, _, source, target = FAMILIES[name]
    own = tf.AutoTokenizer.from_pretrained(folder, src_lang=source, tgt_lang=target)
    trace = model.trace(TEXT, TARGET, source_language=source, target_language=target)
    assert trace.tokens.ids.tolist() == own(TEXT)["input_ids"]
    expected = decoder_ids(family, own(text_target=TARGET)["input_ids"])
    assert trace.target_tokens.ids.tolist() == expected
    assert source in trace.tokens.labels and target in trace.target_tokens.labels
    assert attnviz.verify(model, trace).passed

    network = tf.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    given = {
        "input_ids": torch.tensor([own(TEXT)["input_ids"]]),
        "decoder_input_ids": torch.tensor([expected]),
    }
    with torch.inference_mode():
        theirs = network(**given, output_attentions=True).cross_attentions
    for layer in range(trace.n_layers("cross")):
        np.testing.assert_allclose(
            trace.layer_weights(layer, "cross"),
            theirs[layer][0],
            atol=1e-6,  # float32
        )


def test_a_decoder_that_has_written_nothing_reads_its_start(name, model, own):
    trace = model.trace(TEXT)
    start = decoder_ids(FAMILIES[name][0], own(text_target=TARGET)["input_ids"])[0]
    assert trace.target_tokens.ids.tolist() == [start]
    assert attnviz.verify(model, trace).passed


def test_a_target_in_another_language_is_told_from_the_one_that_was_read(name, model):
    _, _, _, language = FAMILIES[name]
    trace = model.trace(TEXT, TARGET)
    other = replace(trace, target_tokens=replace(trace.target_tokens, language=language))
    assert "tokens" in [check.name for check in attnviz.verify(model, other).failed]


def test_texts_in_different_languages_that_are_read_at_once_do_not_mix(name, model, own):
    _, _, source, target = FAMILIES[name]
    languages = [(own.src_lang, own.tgt_lang), (source, target)] * 60

    def read(chosen: tuple[str, str]) -> bool:
        of_source = model.tokenize(TEXT, language=chosen[0])
        of_target = model.tokenize(TARGET, language=chosen[1], is_target=True)
        return chosen[0] in of_source.labels and chosen[1] in of_target.labels

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, languages))
    trace = model.trace(TEXT, TARGET)  # and the next text is in the tokenizer's own languages again
    assert (trace.tokens.language, trace.target_tokens.language) == (own.src_lang, own.tgt_lang)


def test_a_language_that_there_is_not_is_refused(model, tiny_model):
    with pytest.raises(
        SelectionError, match=r"^The language 'tlh' was asked for; the tokenizer has .* and more\."
    ):
        model.trace(TEXT, target_language="tlh")
    with pytest.raises(SelectionError, match="are not marked with a language"):
        tiny_model("bert").trace(TEXT, source_language="en_XX")


def test_a_target_that_is_cut_is_read_again_as_it_was(model):
    trace = model.trace(TEXT, "it sat on a mat when", cut=True, max_tokens=8)
    assert trace.target_tokens.n_cut[0] > 0
    assert attnviz.verify(model, trace).passed


def test_a_model_without_languages_has_none(tiny_model):
    assert tiny_model("bart").languages is None
    assert tiny_model("bart").trace(TEXT, TARGET).tokens.language is None
