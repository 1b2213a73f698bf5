"""What a decoder starts with and where it ends: as transformers' own ``generate``, whichever of the two files says it."""

import json

import pytest
import torch
import transformers as tf

import attnviz
from attnviz.model.configuration import end_ids
from tests import tiny, translation

NAMES = ("decoder_start_token_id", "bos_token_id")
FILES = {
    "only config.json": ({"decoder_start_token_id": 5, "bos_token_id": 6}, None),
    "config.json with its begin token alone": ({"bos_token_id": 6}, None),
    "only generation_config.json": ({}, {"decoder_start_token_id": 7}),
    "both, which disagree": ({"decoder_start_token_id": 5}, {"decoder_start_token_id": 7, "bos_token_id": 8}),
    "generation_config.json with its begin token alone": ({"decoder_start_token_id": 5}, {"bos_token_id": 8}),
    "zero": ({"decoder_start_token_id": 5}, {"decoder_start_token_id": 0}),
}
"""What config.json and generation_config.json say; None where there is no such file."""


@pytest.fixture(scope="module", params=["bart", "t5", "marian", "mbart", "m2m-100"])
def folder(request, tmp_path_factory):
    path = tmp_path_factory.mktemp(request.param)
    tiny.save(tiny.TEXT_FAMILIES[request.param], path)
    return path


def write(folder, config, generation):
    """Both files, with these settings and no others of `NAMES`."""
    kept = json.loads((folder / "config.json").read_text())
    kept = {name: value for name, value in kept.items() if name not in NAMES}
    (folder / "config.json").write_text(json.dumps(kept | config))
    (folder / "generation_config.json").unlink(missing_ok=True)
    if generation is not None:
        (folder / "generation_config.json").write_text(json.dumps(generation))


def first_of_generate(folder):
    network = tf.AutoModelForSeq2SeqLM.from_pretrained(folder)
    return int(network.generate(torch.tensor([[9, 8, 7]]), max_new_tokens=1, use_cache=False)[0, 0])


@pytest.mark.parametrize(("config", "generation"), FILES.values(), ids=FILES)
def test_a_decoder_starts_as_generate_does(config, generation, folder):
    write(folder, config, generation)
    model = attnviz.load_model(str(folder))
    trace = model.trace("a door")
    expected = first_of_generate(folder)
    assert trace.target_tokens.ids.tolist() == [expected]
    report = attnviz.verify(model, trace)
    assert report.passed
    [tokens] = [check for check in report.checks if check.name == "tokens"]
    other = config.get("decoder_start_token_id", expected)
    assert (f"the token of id {expected}, as generation_config.json" in tokens.reason) == (other != expected)
    assert (f"config.json has {other}." in tokens.reason) == (other != expected)


def test_where_generate_fails_training_s_start_is_taken(folder):
    write(folder, {"decoder_start_token_id": 5}, {"max_new_tokens": 3})
    with pytest.raises(ValueError, match="has to be defined"):
        first_of_generate(folder)
    assert attnviz.load_model(str(folder)).trace("a door").target_tokens.ids.tolist() == [5]


@pytest.mark.parametrize("name", translation.FAMILIES)
def test_a_target_is_in_the_language_that_generate_writes(name, tmp_path):
    folder = translation.save(name, tmp_path)
    own = tf.AutoTokenizer.from_pretrained(folder)
    language = translation.FAMILIES[name][3]
    assert language != own.tgt_lang
    setting = "decoder_start_token_id" if name == "mbart" else "forced_bos_token_id"
    write(folder, {}, {"decoder_start_token_id": 2} | {setting: own.convert_tokens_to_ids(language)})
    trace = attnviz.load_model(str(folder)).trace("a door", "it")
    network = tf.AutoModelForSeq2SeqLM.from_pretrained(folder)
    begun = network.generate(torch.tensor([[9, 8, 7]]), max_new_tokens=1, use_cache=False)[0].tolist()
    begun = begun[:1] if name == "mbart" else begun  # whose second token is its first word
    assert trace.target_tokens.ids.tolist()[: len(begun)] == begun
    assert (trace.target_tokens.language, trace.tokens.language) == (language, own.src_lang)


def test_a_text_ends_where_generate_ends_it(tmp_path):
    """Its configuration names another end, which `generate` reads only without generation_config.json."""
    network = tiny.build(tiny.TEXT_FAMILIES["gpt2"])
    network.save_pretrained(tmp_path)
    tiny.tokenizer(tiny.TEXT_FAMILIES["gpt2"].tokenizer).save_pretrained(tmp_path)
    assert end_ids(attnviz.load_model(str(tmp_path)).network) == {network.config.eos_token_id} == {3}
    for ends in ([7, 11], None):
        (tmp_path / "generation_config.json").write_text(
            json.dumps({"eos_token_id": ends, "bos_token_id": 2})
        )
        theirs = tf.AutoModelForCausalLM.from_pretrained(tmp_path).generation_config.eos_token_id
        assert end_ids(attnviz.load_model(str(tmp_path)).network) == set(theirs or ()) == set(ends or ())
