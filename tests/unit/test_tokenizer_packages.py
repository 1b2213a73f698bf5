"""Tokenizers that are written in Python, as their families publish them: read if what they need is installed, refused if not."""

import json
import sys

import pytest
import transformers as tf

import attnviz
from attnviz.errors import ModelNotAvailableError
from attnviz.records import Axis
from tests import tiny
from tests.unit.test_token_spans import ALPHABET

VOCABULARY = '{"<unk>": 0, "</s>": 1, "<pad>": 2}'


@pytest.mark.parametrize(
    ("family", "tokenizer", "files", "package"),
    [
        (
            "marian",
            "MarianTokenizer",
            {"vocab.json": VOCABULARY, "source.spm": "x", "target.spm": "x"},
            "sentencepiece",
        ),
        (
            "m2m-100",
            "M2M100Tokenizer",
            {"vocab.json": VOCABULARY, "sentencepiece.bpe.model": "x"},
            "sentencepiece",
        ),
        ("mbart", "MBart50Tokenizer", {"sentencepiece.bpe.model": "x"}, "sentencepiece"),
        ("t5", "T5Tokenizer", {"spiece.model": "x"}, "sentencepiece"),
        ("llama", "LlamaTokenizer", {"tokenizer.model": "x"}, "sentencepiece"),
        ("biogpt", "BioGptTokenizer", {"vocab.json": VOCABULARY, "merges.txt": "x"}, "sacremoses"),
    ],
)
def test_a_package_that_a_tokenizer_needs_is_named(family, tokenizer, files, package, tmp_path, monkeypatch):
    for name in ("sentencepiece", "sacremoses"):
        monkeypatch.setitem(sys.modules, name, None)  # as it is where only attnviz's own packages are
    folder = tmp_path / "mine"
    tiny.build(tiny.TEXT_FAMILIES[family]).save_pretrained(folder)
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": tokenizer}))
    for name, text in files.items():
        (folder / name).write_text(text)
    with pytest.raises(
        ModelNotAvailableError,
        match=rf"^The tokenizer of mine .* package {package}, .*pip install {package}\b",
    ):
        attnviz.load_model(str(folder))


def test_esm_as_its_tokenizer_writes_it(tmp_path):
    vocabulary = tmp_path / "letters.txt"
    vocabulary.write_text("\n".join(ALPHABET), encoding="utf-8")
    folder = tmp_path / "protein"
    network = tiny.build(tiny.TEXT_FAMILIES["esm"])
    network.config.mask_token_id = ALPHABET.index("<mask>")
    network.save_pretrained(folder)
    tf.EsmTokenizer(str(vocabulary)).save_pretrained(folder)
    assert not (folder / "tokenizer.json").exists()

    model = attnviz.load_model(str(folder))
    trace = model.trace("MKTAYIAK QR")
    assert trace.tokens.labels == ("<cls>", *"MKTAYIAKQR", "<eos>")
    assert trace.tokens.ids.tolist() == tf.AutoTokenizer.from_pretrained(folder)("MKTAYIAK QR")["input_ids"]
    assert Axis.of(trace.tokens, "words").labels == ("<cls>", "MKTAYIAK", "QR", "<eos>")
    assert attnviz.verify(model, trace).passed
    assert model.read_as("K") == [ALPHABET.index("K")]
