"""Every error of a checkpoint is one sentence: what its folder holds, with the name that helps, and what to do next."""

import ast
import errno
import io
import json
import os
import zipfile
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers as tf
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers

import attnviz
from attnviz.effects.token_embeddings import EmbeddedText
from attnviz.errors import (
    AttnvizError,
    ModelFailedError,
    ModelNotAvailableError,
    OutOfMemoryError,
    UnsupportedArchitectureError,
)
from attnviz.lessons.order import shuffle
from attnviz.model import checkpoint
from attnviz.model.anatomy import anatomy
from attnviz.model.answers import predict
from attnviz.model.catalogue import offers
from attnviz.model.configuration import end_ids
from attnviz.model.folder import foreign
from attnviz.model.states import hidden_states
from attnviz.model.stream import record_stream
from attnviz.model.variants import measured_variants
from tests import tiny
from tests.findings import assert_none
from tests.hub import save_tiny_bert, with_pickle_weights

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22e\nsize 90868376\n"
QUERY = "encoder.layer.1.attention.self.query.weight"
SAFE, PICKLE = "model.safetensors", "pytorch_model.bin"


@pytest.fixture
def folder(tmp_path):
    """A checkpoint that a test may break."""
    path = tmp_path / "mine"
    path.mkdir()
    return save_tiny_bert(path)


def refusal(folder, kind=AttnvizError):
    """What loading this folder is refused with: one line without its path."""
    with pytest.raises(kind) as caught:
        attnviz.load_model(str(folder))
    message = str(caught.value)
    assert str(folder.parent) not in message
    assert "\n" not in message
    assert message.endswith(".")
    return message


def change_config(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))


def change_tensors(folder, change):
    tensors = load_file(folder / SAFE)
    save_file(change(tensors), folder / SAFE, metadata={"format": "pt"})


def is_pointer(file):
    def make(folder):
        if file == PICKLE:
            (folder / SAFE).unlink()
        (folder / file).write_bytes(POINTER)

    return make


def has_instead(file):
    """A file in place of the weights."""

    def make(folder):
        (folder / SAFE).unlink()
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_bytes(b"weights")

    return make


def has_beside(file):
    return lambda folder: (folder / file).write_text("{}")


def is_only_adapter(folder):
    for file in folder.iterdir():
        file.unlink()
    (folder / "adapter_config.json").write_text("{}")
    (folder / "adapter_model.safetensors").write_bytes(b"weights")


def has_config(**changes):
    return lambda folder: change_config(folder, **changes)


def lacks_a_shard(folder):
    names = dict.fromkeys(load_file(folder / SAFE), "model-00001-of-00002.safetensors")
    names[QUERY] = "model-00002-of-00002.safetensors"
    (folder / SAFE).rename(folder / "model-00001-of-00002.safetensors")
    (folder / f"{SAFE}.index.json").write_text(json.dumps({"metadata": {}, "weight_map": names}))


def is_one_shard(folder):
    (folder / SAFE).rename(folder / "model-00001-of-00002.safetensors")


def holds(number):
    def make(folder):
        def change(tensors):
            tensors[QUERY][3, 5] = tensors[QUERY][7, 0] = number
            return tensors

        change_tensors(folder, change)

    return make


def has_rows(n_row):
    """Embeddings of only so many ids: [CLS] is 2 and [SEP] 3."""

    def make(folder):
        name = "embeddings.word_embeddings.weight"
        change_tensors(folder, lambda tensors: tensors | {name: tensors[name][:n_row].clone()})
        change_config(folder, vocab_size=n_row)

    return make


@dataclass
class Runs:
    """Unpickled, it runs a command."""

    command: str

    def __reduce__(self):
        return os.system, (self.command,)


def is_damaged_pickle(folder):
    (folder / SAFE).unlink()
    (folder / PICKLE).write_bytes(b"\x80\x02garbage")


def has_content(file, content):
    """A file with this content in place of its own."""

    def make(folder):
        if file == PICKLE:
            (folder / SAFE).unlink()
        (folder / file).write_bytes(content)

    return make


def is_cut(file, n_kept):
    def make(folder):
        if file == PICKLE:
            with_pickle_weights(folder)
        whole = (folder / file).read_bytes()
        (folder / file).write_bytes(whole[: n_kept % len(whole)])

    return make


def is_renamed(old, new):
    def make(folder):
        if old == PICKLE:
            with_pickle_weights(folder)
        (folder / old).rename(folder / new)

    return make


def zipped(name):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(name, "words")
    return packed.getvalue()


PAGE = b"\xef\xbb\xbf\n<!-- saved --> <!doctype HTML>\n<html lang=en>Sign in</html>"


def has_index(written):
    """An index in place of the weights, and a page of HTML that may be one of its files."""

    def make(folder):
        (folder / SAFE).unlink()
        (folder / f"{SAFE}.index.json").write_text(written)
        (folder / "a.safetensors").write_text("<html>")

    return make


def lacks_a_tensor(folder):
    change_tensors(
        folder, lambda tensors: {name: tensor for name, tensor in tensors.items() if name != QUERY}
    )


BROKEN = {
    "LFS safetensors": (is_pointer(SAFE), (SAFE, "git lfs pull", str(len(POINTER)))),
    "LFS pickle": (is_pointer(PICKLE), (PICKLE, "git lfs pull")),
    "LFS tokenizer": (is_pointer("tokenizer.json"), ("tokenizer.json", "git lfs pull")),
    "LFS config": (is_pointer("config.json"), ("config.json", "git lfs pull")),
    "PEFT": (is_only_adapter, ("PEFT", "adapter_config.json", "merge_and_unload")),
    "PEFT beside weights": (has_beside("adapter_config.json"), ("PEFT", "delete adapter_config.json")),
    **{
        f"{file} beside weights": (has_beside(file), ("PEFT adapter", f"({file})", f"delete {file}"))
        for file in ("adapter_model.safetensors", "adapter_model.bin", "pytorch_lora_weights.safetensors", "lora.pt")
    },
    "PEFT in a folder of its own": (has_instead("adapter/adapter_model.safetensors"), ("PEFT", "adapter/adapter_model")),
    "GGUF": (has_instead("tiny.Q4_1.gguf"), ("is a text, which begins with “weights”, not a GGUF file",)),
    **{
        f"a page as {file}": (has_content(file, page), (file, "is an HTML page", "the right file"))
        for file, page in [
            (SAFE, PAGE), (PICKLE, b"<html><body>"), ("config.json", b"\n <HTML>"), ("tokenizer.json", PAGE),
            ("tokenizer_config.json", PAGE), ("generation_config.json", PAGE), ("vocab.txt", PAGE), ("spiece.model", PAGE),
            ("chat_template.jinja", PAGE), ("special_tokens_map.json", b"<?xml version='1.0'?><Error>"),
        ]
    },
    **{
        f"nothing as {file}": (has_content(file, b""), (file, "is empty (0 bytes)"))
        for file in (SAFE, PICKLE, "config.json", "tokenizer.json", "vocab.txt", "merges.txt")
    },
    "LFS generation": (is_pointer("generation_config.json"), ("generation_config.json", "git lfs pull")),
    "LFS merges": (is_pointer("merges.txt"), ("merges.txt", "git lfs pull")),
    "a JSON error": (has_content(SAFE, b'{"error": "Not found"}'), ("a JSON document", '“{"error": "Not found"}”')),
    "a text": (has_content(SAFE, b"Entry not found"), ("is a text, which begins with “Entry not found”",)),
    "a long text": (has_content(SAFE, "ä".encode() * 600), (f"“{'ä' * 40}…”, not a safetensors file",)),
    "a zip": (has_content(SAFE, zipped("a.txt")), ("a zip archive, not a safetensors file",)),
    "a zip as pickle": (has_content(PICKLE, zipped("a.txt")), ("a zip archive, not a file that torch.save wrote",)),
    "a gzip": (has_content(PICKLE, b"\x1f\x8b\x08\0"), ("a gzip archive",)),
    "HDF5": (has_content(PICKLE, b"\x89HDF\r\n\x1a\n"), ("HDF5",)),
    "GGUF by another name": (has_content(SAFE, b"GGUF\3\0\0\0"), ("is a GGUF file", "ending .gguf")),
    "bytes": (has_content(SAFE, b"\xff\xfe\0\1"), ("of no format that attnviz knows, not a safetensors file",)),
    "a pickle as safetensors": (is_renamed(PICKLE, SAFE), ("torch.save wrote", f"Call it {PICKLE}")),
    "an old pickle as safetensors": (has_content(SAFE, b"\x80\x02}q\0."), (f"Call it {PICKLE}",)),
    "safetensors as pickle": (is_renamed(SAFE, PICKLE), ("is a safetensors file", f"Call it {SAFE}")),
    "cut in the numbers": (is_cut(SAFE, -8), (SAFE, "is cut off: ", " bytes are there")),
    "cut in the header": (is_cut(SAFE, 200), (SAFE, "is cut off: its header alone has")),
    "cut in the header's length": (is_cut(SAFE, 7), ("of no format",)),
    "a header of another kind": (
        has_content(SAFE, (13).to_bytes(8, "little") + b'{"a": [1, 2]}'),
        ("is damaged: its header",),
    ),
    "cut pickle": (is_cut(PICKLE, -8), (PICKLE, "is cut off: its end is missing")),
    "cut config": (is_cut("config.json", -4), ("config.json of mine is not valid JSON (line ",)),
    "cut tokenizer": (is_cut("tokenizer.json", -4), ("tokenizer.json of mine is not valid JSON",)),
    "config in UTF-16": (has_content("config.json", '{"a": 1}'.encode("utf-16")), ("config.json",)),
    "config in Latin 1": (has_content("config.json", b'{"a": "\xe4"}'), ("not text in UTF-8 (byte 8)",)),
    "a text as config": (has_content("config.json", b"404: Not Found"), ("“404: Not Found”, not a JSON document",)),
    "an index of nothing": (has_index("{}"), (f"{SAFE}.index.json", "lists no file")),
    "an index that is a page": (has_index("<html>"), (f"{SAFE}.index.json", "HTML page")),
    "a shard that is a page": (has_index(json.dumps({"weight_map": {QUERY: "a.safetensors"}})), ("a.safetensors", "HTML")),
    "ONNX": (has_instead("onnx/model.onnx"), ("ONNX", "onnx/model.onnx", "safetensors")),
    "TensorFlow": (has_instead("tf_model.h5"), ("TensorFlow", "tf_model.h5", "from_tf=True")),
    "TensorFlow 1": (has_instead("bert_model.ckpt.index"), ("TensorFlow", "bert_model.ckpt.index")),
    "Flax": (has_instead("flax_model.msgpack"), ("Flax", "flax_model.msgpack", "from_flax=True")),
    "another name": (has_instead("best.pt"), ("best.pt", SAFE, PICKLE)),
    "only training's files": (has_instead("optimizer.pt"), ("has no weights", SAFE, PICKLE)),
    "a shard is missing": (lacks_a_shard, ("model-00002-of-00002.safetensors", f"{SAFE}.index.json", "1 missing")),
    "a shard alone": (is_one_shard, ("model-00001-of-00002.safetensors", ".index.json")),
    "GPTQ": (has_config(quantization_config={"quant_method": "gptq", "bits": 4}), ("GPTQ, 4 bits", "delete quant")),
    "AWQ": (has_config(quantization_config={"quant_method": "awq", "bits": 4}), ("AWQ, 4 bits",)),
    "FP8": (has_config(quantization_config={"quant_method": "fp8"}), ("(FP8)",)),
    "bitsandbytes": (has_config(quantization_config={"load_in_8bit": True}), ("bitsandbytes, 8 bits",)),
    "bitsandbytes, half as many": (
        has_config(quantization_config={"load_in_4bit": True}),
        ("(bitsandbytes, 4 bits)",),
    ),
    "another quantization": (has_config(quantization_config={"quant_method": "hqq"}), ("(hqq)",)),
    "pruned heads": (has_config(pruned_heads={"0": [1], "2": [0]}), ("pruned_heads", "layers 0, 2", "before pruning")),
    "pruned heads of one layer": (has_config(pruned_heads={"1": [0]}), ("config.json: layer 1)",)),
    "NaN": (holds(float("nan")), (QUERY, "2 of its 576 numbers", "save_pretrained")),
    "infinity": (holds(float("-inf")), (QUERY, "2 of its 576 numbers")),
    "special token beyond": (has_rows(3), ("[SEP]", "the id 3", "3 rows", "resize_token_embeddings")),
    "pickle with code": (
        lambda folder: with_pickle_weights(folder, extra=Runs("exit 1")),
        ("code", f"{os.system.__module__}.system", "safetensors"),
    ),
    "damaged pickle": (is_damaged_pickle, ("damaged", "save_pretrained")),
    "a tensor is missing": (lacks_a_tensor, (QUERY, "save_pretrained")),
}  # fmt: skip


@pytest.mark.parametrize(("make", "facts"), BROKEN.values(), ids=BROKEN)
def test_a_broken_folder_is_named_with_what_helps(make, facts, folder):
    make(folder)
    message = refusal(folder)
    assert all(fact in message for fact in ("mine", *facts)), message
    assert "ownload" not in message  # which does not help with a folder of one's own


def test_a_file_in_place_of_a_folder(tmp_path, monkeypatch):
    for name, facts in {
        "mine.gguf": ("GGUF file of mine cannot be read",),
        "mine.txt": ("is a file", "mine.txt"),
    }.items():
        (tmp_path / name).write_bytes(b"GGUF")
        monkeypatch.setenv("ATTNVIZ_MODELS", str(tmp_path / name))
        with pytest.raises(ModelNotAvailableError) as caught:
            attnviz.load_model(offers()[-1].name)
        assert all(fact in str(caught.value) for fact in facts)
        assert str(tmp_path) not in str(caught.value)


def test_a_folder_that_may_not_be_read(folder, monkeypatch):
    def refuse(_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    assert "mine cannot be read (Permission denied)" in refusal(folder)


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("can't allocate memory: you tried to")])
def test_a_model_that_does_not_fit_is_not_called_damaged(error, folder, monkeypatch):
    def refuse(*_):
        raise error

    monkeypatch.setattr("attnviz.model.checkpoint._read", refuse)
    assert "select a smaller model" in refusal(folder, OutOfMemoryError)


def test_files_of_other_formats_beside_weights_do_not_matter(folder):
    for file in (
        "tf_model.h5",
        "flax_model.msgpack",
        "model.onnx",
        "tiny.gguf",
        "rust_model.ot",
        "training_args.bin",
    ):
        (folder / file).write_bytes(POINTER)
    attnviz.load_model(str(folder))


def test_a_hub_s_repository_is_looked_at_by_the_same_names():
    assert foreign(["config.json", SAFE, "onnx/model.onnx"]) is None
    assert "adapter_config.json" in foreign(
        ["config.json", "adapter_config.json", "adapter_model.safetensors"]
    )
    assert "GGUF" in foreign(["README.md", "a.Q8_0.gguf"])


def test_what_reads_no_text_says_so(tmp_path):
    text = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 7}
    for family, config, facts in (
        ("vit", tiny.VISION_FAMILY.config(), ("reads images,",)),
        ("wav2vec2", tf.Wav2Vec2Config(**text), ("reads audio",)),
    ):  # fmt: skip
        folder = tmp_path / family / "mine"
        folder.mkdir(parents=True)
        save_tiny_bert(folder)  # its tokenizer and weights, which are not read
        config.save_pretrained(folder)
        message = refusal(folder)
        assert all(fact in message for fact in (f"family {family}", *facts)), message


def test_what_runs_text_alone_is_not_refused_for_its_input():
    from attnviz.model.families import refuse_unsupported

    for family in tiny.TEXT_FAMILIES.values():
        refuse_unsupported(family.name, family.config())


@pytest.fixture
def plain(headed):
    """The checkpoint that is wrapped: a BERT with its language head."""
    return headed("bert")[1]


def with_prefix(prefix, tensors):
    return {f"{prefix}{name}": tensor for name, tensor in tensors.items()}


WRAPPINGS = {
    "state_dict": (PICKLE, lambda tensors: {"state_dict": tensors, "epoch": 3}),
    "model": (PICKLE, lambda tensors: {"model": tensors, "optimizer": {"state": {}, "lr": 0.1}}),
    "with a number inside": (PICKLE, lambda tensors: {"state_dict": tensors | {"version": 2}}),
    "with a number": (PICKLE, lambda tensors: tensors | {"epoch": 3}),
    "prefix": (PICKLE, lambda tensors: with_prefix("module.", tensors)),
    "both": (PICKLE, lambda tensors: {"model_state_dict": with_prefix("module.", tensors)}),
    "safetensors": (SAFE, lambda tensors: with_prefix("module.", tensors)),
    "compiled": (SAFE, lambda tensors: with_prefix("module._orig_mod.", tensors)),
}


class TestWrapped:
    """A training script's wrapping: such a checkpoint loads, and equals the plain one."""

    @pytest.mark.parametrize(
        ("names", "prefix"),
        [
            (["module.a", "module.b"], "module."),
            (["_orig_mod.a"], "_orig_mod."),
            (["module.a", "b"], ""),
            (["a", "module.b"], ""),
            ([], ""),
        ],
    )
    def test_a_prefix_is_one_of_all_names(self, names, prefix):
        assert checkpoint._prefix(names) == prefix

    @pytest.mark.parametrize(("file", "wrap"), WRAPPINGS.values(), ids=WRAPPINGS)
    def test_loads_and_equals_the_plain_one(self, file, wrap, plain, tmp_path):
        tensors = {name: tensor.clone() for name, tensor in load_file(plain / SAFE).items()}
        for path in plain.iterdir():
            if path.name != SAFE:
                (tmp_path / path.name).write_bytes(path.read_bytes())
        if file == SAFE:
            save_file(wrap(tensors), tmp_path / SAFE, metadata={"format": "pt"})
        else:
            torch.save(wrap(tensors), tmp_path / PICKLE)
        self.assert_equal(attnviz.load_model(str(tmp_path)), attnviz.load_model(str(plain)))

    def test_in_parts(self, plain, tmp_path):
        tensors = load_file(plain / SAFE)
        names = {
            name: f"model-0000{1 + at % 2}-of-00002.safetensors" for at, name in enumerate(sorted(tensors))
        }
        for path in plain.iterdir():
            if path.name != SAFE:
                (tmp_path / path.name).write_bytes(path.read_bytes())
        for part in set(names.values()):
            held = {name: tensor for name, tensor in tensors.items() if names[name] == part}
            save_file(with_prefix("module.", held), tmp_path / part, metadata={"format": "pt"})
        index = {"metadata": {}, "weight_map": with_prefix("module.", names)}
        (tmp_path / f"{SAFE}.index.json").write_text(json.dumps(index))
        self.assert_equal(attnviz.load_model(str(tmp_path)), attnviz.load_model(str(plain)))

    def test_with_the_settings_of_its_generation(self, headed, tmp_path):
        """A decoder's end tokens may be nowhere else."""
        plain = headed("gpt2")[1]
        for path in plain.iterdir():
            (tmp_path / path.name).write_bytes(path.read_bytes())
        (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [7, 11]}))
        change_tensors(tmp_path, lambda tensors: with_prefix("module.", tensors))
        model = attnviz.load_model(str(tmp_path))
        assert end_ids(model.network) == {7, 11}

    def assert_equal(self, model, expected):
        assert model.language_head is not None
        for part in ("network", "language_head"):
            theirs = dict(getattr(expected, part).named_parameters())
            ours = dict(getattr(model, part).named_parameters())
            assert ours.keys() == theirs.keys()
            assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
        trace = model.trace(tiny.TEXT)
        np.testing.assert_array_equal(trace.last_hidden_state, expected.trace(tiny.TEXT).last_hidden_state)
        assert attnviz.verify(model, trace).passed


class TestTokensBeyondTheEmbeddings:
    def test_one_is_refused_by_name_where_a_text_has_it_and_nowhere_else(self, folder):
        tokenizer = tf.AutoTokenizer.from_pretrained(folder)
        tokenizer.add_tokens(["umbrella"])
        tokenizer.save_pretrained(folder)
        model = attnviz.load_model(str(folder))
        assert attnviz.verify(model, model.trace("the door opened")).passed
        with pytest.raises(ModelFailedError) as caught:
            model.trace("the umbrella opened")
        n_row = model.network.config.vocab_size
        for fact in ("umbrella", f"id {n_row};", f"mine have {n_row} rows", f"0 to {n_row - 1}"):
            assert fact in str(caught.value)

    def test_of_a_decoder_too(self, tmp_path):
        tiny.save(tiny.TEXT_FAMILIES["bart"], tmp_path)
        tokenizer = tf.AutoTokenizer.from_pretrained(tmp_path)
        n_more = 300 - len(tokenizer)
        tokenizer.add_tokens([*(f"x{number}y" for number in range(n_more)), "umbrella"])
        tokenizer.save_pretrained(tmp_path)
        model = attnviz.load_model(str(tmp_path))
        model.trace("the door", f"x{n_more - 1}y")  # the last that has a row
        with pytest.raises(ModelFailedError, match=r"umbrella has the id 300; .* 300 rows"):
            model.trace("the door", "umbrella")


class TestVocabularies:
    """Without the letters of a probe's text, or without an unknown token."""

    CODONS = ("TTT", "TTC", "GGA", "CAT", "AAA", "ACG", "CCC")

    @pytest.fixture
    def dna(self, folder):
        """Knows seven codons, and raises an error of its own for all else."""
        special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
        pieces = (*special[:1], *special[2:], *self.CODONS)  # without the unknown token
        backend = Tokenizer(
            models.WordLevel({piece: at for at, piece in enumerate(pieces)}, unk_token="[UNK]")
        )
        backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        tf.PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="[PAD]").save_pretrained(folder)
        return attnviz.load_model(str(folder))

    def test_a_model_is_loaded_without_reading_any_text(self, dna):
        trace = dna.trace("GGA CAT TTT")
        assert trace.tokens.labels == ("GGA", "CAT", "TTT")
        assert attnviz.verify(dna, trace).passed
        assert dna.output_maps["encoder"][1].name == "encoder.layer.1.attention.output.dense"

    def test_the_table_of_positions_is_found_without_reading_any_text(self, dna):
        table = dna.network.embeddings.position_embeddings.weight.numpy()
        np.testing.assert_array_equal(dna.learned_positions, table)
        assert shuffle(dna, dna.trace("GGA CAT TTT AAA")).with_positions.max() > 1e-3

    @pytest.mark.parametrize(
        "read", [lambda model: model.trace("the door"), lambda model: model.read_as("door")]
    )
    def test_what_the_tokenizer_itself_raises_is_one_sentence(self, dna, read):
        with pytest.raises(ModelFailedError) as caught:
            read(dna)
        message = str(caught.value)
        assert all(
            fact in message
            for fact in ("of mine failed on this text: WordLevel error", "Missing [UNK] token")
        )
        assert "\n" not in message

    def test_a_probe_is_of_as_many_ordinary_tokens_as_are_asked_for(self, folder):
        tokens = attnviz.load_model(str(folder)).probe(10).tokens
        assert tokens.labels[:2] == ("[CLS]", "[SEP]")  # which the tokenizer adds to every text
        assert tokens.is_special.tolist() == 2 * [True] + 10 * [False]
        assert len(set(tokens.ids.tolist())) == 12
        assert tokens.ids[2:].min() > 4  # the last special token's

    @pytest.mark.parametrize("n_token", [1, 5, 200])
    def test_a_probe_goes_from_the_middle_downwards_and_then_on_from_the_middle(self, n_token, tiny_model):
        """Without special tokens, as far as there are rows and entries."""
        model = tiny_model("modernbert")
        n_row = len(model.network.get_input_embeddings().weight)
        known = min(n_row, len(model.tokenizer))
        special = {*model.tokenizer.all_special_ids}
        order = [*reversed(range(known // 2 + 1)), *range(known // 2 + 1, known)]
        expected = [number for number in order if number not in special][:n_token]
        added = model.tokenizer("")["input_ids"]
        assert model.probe(n_token).tokens.ids.tolist() == [*added, *expected]

    def test_a_probe_stays_within_the_rows(self, tiny_model, monkeypatch):
        """Where the tokenizer knows more tokens than the embeddings have rows."""
        model = tiny_model("bert")
        monkeypatch.setattr("attnviz.model.model.n_rows", lambda reader: 20)
        tokens = model.probe(100).tokens
        added = model.tokenizer("")["input_ids"]
        assert tokens.ids[len(added)] == 10 and tokens.ids.max() == 19

    def test_of_several_texts_the_one_without_a_row_is_named(self, tiny_model):
        model = tiny_model("bert")
        n_row = len(model.network.get_input_embeddings().weight)
        texts = [model.tokenize(text) for text in ("the door", "the cat", "a door")]
        ids = texts[1].ids.copy()
        ids[2] = n_row
        texts[1] = replace(texts[1], ids=ids)
        with pytest.raises(ModelFailedError, match=rf"^Text 2 of 3: The token .* has the id {n_row}; "):
            model.trace_texts([(tokens, None) for tokens in texts])


CALLS = {
    "trace": lambda model, trace: model.trace("A door."),
    "verify": attnviz.verify,
    "states": hidden_states,
    "variants": lambda model, trace: measured_variants(model, trace, [()], lambda states: states[:, 0, 0]),
    "stream": lambda model, trace: record_stream(model, trace, 0),
    "anatomy": lambda model, trace: anatomy(model, trace, 0),
    "embeddings": EmbeddedText,
    "shuffle": shuffle,
}


class TestOwnErrors:
    """What a family's own code raises in a forward pass: its type and first line, in one sentence."""

    def raises(self, *_, **__):
        raise RuntimeError("their scale\nand their second line")

    @pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
    def test_are_a_sentence(self, call, embedded, door_trace):
        hooks = [
            network.encoder.layer[2].register_forward_hook(self.raises)
            for network in (embedded.network, embedded.reference)
        ]
        try:
            with pytest.raises(ModelFailedError) as caught:
                call(embedded, door_trace)
        finally:
            for hook in hooks:
                hook.remove()
        assert "BertModel" in str(caught.value)
        assert "RuntimeError: their scale. " in str(caught.value)
        assert isinstance(caught.value.__cause__, RuntimeError)
        assert attnviz.verify(embedded, embedded.trace("A door.")).passed  # and the next text goes through

    def test_of_a_language_head(self, headed):
        model, _ = headed("bert")
        hook = model.language_head.cls.register_forward_hook(self.raises)
        try:
            with pytest.raises(ModelFailedError, match=r"BertForMaskedLM .*RuntimeError: their scale"):
                predict(model, model.trace(tiny.TEXT), 1)
        finally:
            hook.remove()

    def test_while_a_model_is_loaded(self, folder, monkeypatch):
        monkeypatch.setattr(tf.BertModel, "forward", self.raises)
        message = refusal(folder, ModelFailedError)
        assert "RuntimeError: their scale. " in message

    def test_before_its_first_pass(self, folder, monkeypatch):
        monkeypatch.setattr("attnviz.model.loading.make_reference", self.raises)
        assert "mine cannot be shown: RuntimeError: their scale. " in refusal(folder)

    def test_numbers_that_are_not_finite_are_refused_with_their_layer(self, embedded):
        def overflow(_, __, output):
            return output * float("inf")

        hook = embedded.network.encoder.layer[2].register_forward_hook(overflow)
        try:
            with pytest.raises(ModelFailedError, match=r"NaN or infinity .* first in .* encoder layer 3"):
                embedded.trace("A door.")
        finally:
            hook.remove()

    @pytest.mark.parametrize(
        ("dtype", "advice"),
        [("float32", "or select another model."), ("bfloat16", "or load the model in float32.")],
    )
    def test_one_number_that_is_not_finite_is_enough(self, folder, dtype, advice):
        model = attnviz.load_model(str(folder), dtype=dtype)
        layers = model.network.encoder.layer

        def spoil(_, __, output):
            state = output[0] if isinstance(output, tuple) else output
            state[0, 1, 2] = float("inf")
            return output

        hook = layers[-1].output.dense.register_forward_hook(spoil)
        try:
            with pytest.raises(ModelFailedError) as caught:
                model.trace("A door.")
        finally:
            hook.remove()
        message = str(caught.value)
        assert (
            " hold NaN or infinity for this text, so there is nothing to show. " in message
        )  # after all attention
        assert message.endswith(f"Try another text, {advice}")

    @pytest.mark.parametrize("projection", ["query", "key", "value"])
    def test_one_number_of_one_projection_is_enough(self, embedded, projection):
        part = getattr(embedded.network.encoder.layer[4].attention.self, projection)

        def spoil(_, __, output):
            output[0, 1, 2] = float("nan")
            return output

        hook = part.register_forward_hook(spoil)
        try:
            with pytest.raises(ModelFailedError, match=r"NaN or infinity .* first in .* encoder layer 4"):
                embedded.trace("A door.")
        finally:
            hook.remove()

    @pytest.mark.parametrize("projection", ["query", "key", "value"])
    def test_one_of_queries_keys_and_values_is_enough(self, embedded, projection):
        part = getattr(embedded.network.encoder.layer[2].attention.self, projection)
        hook = part.register_forward_hook(lambda _, __, output: output * float("nan"))
        try:
            with pytest.raises(ModelFailedError, match=r"NaN or infinity .* first in .* encoder layer 2"):
                embedded.trace("A door.")
        finally:
            hook.remove()

    @pytest.mark.parametrize("is_shown", [False, True])
    def test_the_progress_bar_of_transformers_is_left_as_it_was(self, folder, is_shown):
        before = tf.utils.logging.is_progress_bar_enabled()
        switch = {True: tf.utils.logging.enable_progress_bar, False: tf.utils.logging.disable_progress_bar}
        switch[is_shown]()
        try:
            attnviz.load_model(str(folder))
            assert tf.utils.logging.is_progress_bar_enabled() == is_shown
        finally:
            switch[before]()


def test_what_loading_refuses_keeps_its_class(folder):
    """A wrong family is no broken file: trying another folder would not help."""
    change_config(folder, model_type="roformer", architectures=["RoFormerModel"])
    assert "family roformer" in refusal(folder, UnsupportedArchitectureError)


def direct_calls(source, besides=()):
    """Lines in which a network, or what is above it, is called and not by `attnviz.model.capture.forward`."""
    names = {"network", "_network", "reference", "_reference", "head", "classifier"}
    arguments = {None, "input_ids", "inputs_embeds"}  # None for **inputs
    functions = [node for node in ast.parse(source).body if getattr(node, "name", "") not in besides]
    return [
        node.lineno
        for node in chain.from_iterable(map(ast.walk, functions))
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", getattr(node.func, "id", "")) in names
        and arguments & {keyword.arg for keyword in node.keywords}
    ]


def test_no_pass_goes_round_what_explains_its_errors():
    # a classifier is split off while a model is loaded, which explains errors too
    besides = {"capture.py": ("forward",), "parts.py": ("split_classifier", "_logits")}
    assert_none(
        f"{path}:{line} calls a network"
        for path in Path(attnviz.__file__).parent.rglob("*.py")
        for line in direct_calls(path.read_text(encoding="utf-8"), besides.get(path.name, ()))
    )
    assert direct_calls("states = model.network(**inputs)") == direct_calls("head(inputs_embeds=x)") == [1]
    assert direct_calls("forward(model.network, **inputs); trace.head(3, head=1)") == []
