import importlib.metadata
import io
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from logging import StreamHandler
from threading import Barrier

import numpy as np
import pytest
import torch
import transformers as tf
from safetensors.torch import load_file, save_file
from transformers.utils import logging

import attnviz
from attnviz.errors import ModelFailedError, ModelNotAvailableError, UnsupportedArchitectureError
from attnviz.model import loading
from attnviz.model.anatomy import anatomy
from attnviz.model.catalogue import EMBEDDED, weights_digests, weights_files
from attnviz.model.checkpoint import load_tokenizer
from attnviz.model.loading import find_device
from tests import tiny, tiny_refused
from tests.hub import save_tiny_bert


@pytest.fixture
def folder(tmp_path):
    """A checkpoint that a test may break."""
    path = tmp_path / "mine"
    path.mkdir()
    return save_tiny_bert(path)


def change_config(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))


def refusal(folder):
    """What loading this folder is refused with: one line that names the model and not its path."""
    with pytest.raises((ModelNotAvailableError, UnsupportedArchitectureError)) as caught:
        attnviz.load_model(str(folder))
    message = str(caught.value)
    assert "mine" in message
    assert str(folder) not in message
    assert "\n" not in message
    return message


def test_says_in_one_line_what_it_is(folder):
    model = attnviz.load_model(str(folder))
    assert repr(model) == f"Model({folder.name!r}, BertModel, revision 'local folder')"


def test_a_folder_loads_under_its_own_name(folder):
    model = attnviz.load_model(str(folder))
    assert model.name == "mine"
    assert model.revision == "local folder"
    assert attnviz.verify(model, model.trace("it was a door")).passed


def test_a_folder_without_config_is_no_checkpoint(folder):
    (folder / "config.json").unlink()
    assert "has no config.json, so it is not a checkpoint" in refusal(folder)


@pytest.mark.parametrize("content", [b"{not json", b"", b"[]", b"\xff\xfe\x00"])
def test_garbage_in_place_of_the_config(folder, content):
    (folder / "config.json").write_bytes(content)
    assert refusal(folder).startswith("config.json of mine ")


@pytest.mark.parametrize("content", [b"", b"garbage", None])
def test_garbage_in_place_of_the_weights(folder, content):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000] if content is None else content)
    assert refusal(folder).startswith("model.safetensors of mine is ")


def test_no_weights(folder):
    (folder / "model.safetensors").unlink()
    assert "has no weights, neither model.safetensors nor pytorch_model.bin" in refusal(folder)


def test_a_missing_tensor_is_named(folder):
    tensors = load_file(folder / "model.safetensors")
    del tensors["embeddings.position_embeddings.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    assert "lacks 1 of the model's tensors, such as embeddings.position_embeddings.weight" in refusal(folder)


def test_a_missing_pooler_changes_no_attention(folder):
    tensors = load_file(folder / "model.safetensors")
    kept = {name: tensor for name, tensor in tensors.items() if not name.startswith("pooler")}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    assert len(kept) < len(tensors)
    attnviz.load_model(str(folder))


def test_tensors_of_another_size_are_named(folder):
    change_config(folder, intermediate_size=47)
    message = refusal(folder)
    assert message.startswith("9 tensors of mine, such as encoder.layer.0.intermediate.dense.bias")
    assert "config.json says" in message


def test_without_a_vocabulary_no_tokenizer_is_made_up(folder):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    assert "has no tokenizer" in refusal(folder)


def test_garbage_in_place_of_the_tokenizer(folder):
    (folder / "tokenizer.json").write_text("{")
    assert refusal(folder).startswith("tokenizer.json of mine is not valid JSON")


@pytest.fixture
def trap(folder, tmp_path, monkeypatch):
    """Code beside the checkpoint, a user who agrees to all, and the file that exists once it ran."""
    marker = tmp_path / "the code ran"
    (folder / "own.py").write_text(
        f"open({str(marker)!r}, 'w').close()\n"
        "from transformers import BertConfig, BertModel, BertTokenizer\n"
        "class Config(BertConfig): model_type = 'own'\n"
        "class Network(BertModel): config_class = Config\n"
        "class Words(BertTokenizer): pass\n"
    )
    change_config(folder, auto_map={"AutoConfig": "own.Config", "AutoModel": "own.Network"})
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings |= {"auto_map": {"AutoTokenizer": ["own.Words", None]}, "tokenizer_class": "Words"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n" * 9))  # transformers may ask whether to run it
    yield marker
    assert sys.stdin.tell() == 0
    assert not marker.exists()


def test_code_of_a_network_is_not_run(folder, trap):
    change_config(folder, model_type="own")
    assert "can only be loaded by running its own code" in refusal(folder)


def test_code_of_a_tokenizer_is_not_run(folder, trap):
    change_config(folder, model_type="vit")  # transformers has no tokenizer for it
    with pytest.raises(ModelNotAvailableError, match=r"The tokenizer of mine cannot be read: .* custom code"):
        load_tokenizer("mine", folder, repair="Save it again")


def test_code_is_not_run_where_transformers_has_its_own(folder, trap):
    attnviz.load_model(str(folder))


def test_a_name_that_is_nothing():
    with pytest.raises(ModelNotAvailableError, match="There is no model called 'no such model' here"):
        attnviz.load_model("no such model")


def test_a_family_that_does_not_take_our_attention(tmp_path):
    family = next(iter(tiny_refused.UNSUPPORTED_FAMILIES.values()))
    tiny.save(family, tmp_path)
    with pytest.raises(UnsupportedArchitectureError):
        attnviz.load_model(str(tmp_path))


def test_max_tokens_is_the_smaller_limit_of_model_and_tokenizer(folder):
    assert attnviz.load_model(str(folder)).max_tokens == 40
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    for limit, expected in ((7, 7), (10**30, 40)):
        (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "model_max_length": limit}))
        assert attnviz.load_model(str(folder)).max_tokens == expected


def test_max_tokens_leaves_out_the_positions_that_roberta_keeps_for_padding(tiny_model):
    model = tiny_model("roberta")
    assert model.network.config.max_position_embeddings == tiny.LIMIT
    assert model.network.config.pad_token_id == 1
    assert model.max_tokens == tiny.LIMIT - 2
    longest = torch.full((1, model.max_tokens), 5)
    model.network(longest)  # as many are read
    with pytest.raises((IndexError, RuntimeError)):
        model.network(torch.full((1, model.max_tokens + 1), 5))


def test_relative_positions_have_no_limit(tiny_model):
    assert tiny_model("t5").max_tokens is None


@pytest.mark.parametrize("limit", [-1, 0, None])
def test_a_limit_that_is_none_in_other_words_is_none(limit, tmp_path):
    """XLNet's configuration says -1."""
    tiny.save(tiny.TEXT_FAMILIES["t5"], tmp_path)
    change_config(tmp_path, max_position_embeddings=limit)
    model = attnviz.load_model(str(tmp_path))
    assert model.network.config.max_position_embeddings == limit
    assert model.max_tokens is None
    assert len(model.trace("a door " * 30).tokens) == 61


def test_a_family_that_lists_its_own_attentions_is_refused_though_it_is_not_known(tmp_path, monkeypatch):
    """transformers says only KeyError: 'attnviz'."""
    monkeypatch.setattr("attnviz.model.checkpoint.refuse_unsupported", lambda name, config: None)
    tiny.save(tiny_refused.UNSUPPORTED_FAMILIES["gptj"], tmp_path)
    with pytest.raises(UnsupportedArchitectureError, match="does not let its attention be replaced"):
        attnviz.load_model(str(tmp_path))


def test_a_refusal_names_the_model_and_no_folder(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    tiny.save(tiny_refused.UNSUPPORTED_FAMILIES["xlnet"], folder)
    assert refusal(folder).startswith("mine is of the family xlnet, which attnviz cannot show: its scores")


def test_loading_prints_nothing_and_leaves_transformers_as_it_was(folder, capfd, monkeypatch):
    records = []
    handler = StreamHandler()
    monkeypatch.setattr(handler, "emit", records.append)
    logger = logging.get_logger("transformers")
    had_bar, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.enable_progress_bar()
    logging.set_verbosity_warning()
    logger.addHandler(handler)
    try:
        attnviz.load_model(str(folder))
        change_config(folder, intermediate_size=47)
        refusal(folder)
        assert logging.is_progress_bar_enabled()
        assert logging.get_verbosity() == logging.WARNING
    finally:
        logger.removeHandler(handler)
        logging.set_verbosity(verbosity)
        if not had_bar:
            logging.disable_progress_bar()
    assert records == []
    assert capfd.readouterr() == ("", "")


def test_attnviz_need_not_be_installed_to_say_its_version(embedded, monkeypatch):
    """After `pip install -r requirements.txt` alone there is no installed package of that name."""
    right = importlib.metadata.version

    def not_installed(name):
        if name == "attnviz":
            raise importlib.metadata.PackageNotFoundError(name)
        return right(name)

    monkeypatch.setattr(importlib.metadata, "version", not_installed)
    assert embedded.provenance.versions["attnviz"] == attnviz.__version__


@pytest.mark.nightly
def test_models_are_loaded_by_several_threads_at_once(checkpoint, monkeypatch):
    """transformers ties no weights while it reads a checkpoint, whichever thread asks."""
    tie_weights = tf.PreTrainedModel.tie_weights
    monkeypatch.setattr(tf.PreTrainedModel, "tie_weights", tie_weights)  # is put back
    folders = [str(checkpoint(family)) for family in ("bart", "t5") * 4]
    start = Barrier(len(folders))

    def load(folder):
        start.wait()
        return attnviz.load_model(folder)

    with ThreadPoolExecutor(len(folders)) as threads:
        names = [model.name for model in threads.map(load, folders)]
    assert names == ["bart", "t5"] * 4
    assert tf.PreTrainedModel.tie_weights is tie_weights


class TestDevice:
    def test_without_a_word_it_is_cuda_where_there_is_one_and_the_cpu_otherwise(self, monkeypatch):
        monkeypatch.delenv("ATTNVIZ_DEVICE", raising=False)
        for there, expected in ((False, "cpu"), (True, "cuda")):
            monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
            assert find_device().type == expected
            assert find_device("auto").type == expected

    def test_the_environment_names_one_and_an_argument_another(self, monkeypatch):
        monkeypatch.setenv("ATTNVIZ_DEVICE", "meta")  # a device of torch that every machine has
        assert find_device().type == "meta"
        assert find_device("cpu").type == "cpu"

    @pytest.mark.parametrize("name", ["cuda:99", "gpu", "npu"])
    def test_one_that_is_not_there_is_refused(self, name, monkeypatch):
        monkeypatch.setenv("ATTNVIZ_DEVICE", name)
        with pytest.raises(
            ModelNotAvailableError, match=f"The device '{name}' was asked for; this machine has cpu"
        ):
            attnviz.load_model("all-MiniLM-L6-v2")


def test_in_half_precision_all_that_is_made_of_a_trace_is_float32():
    model = attnviz.load_model("all-MiniLM-L6-v2", dtype="bfloat16")
    trace = model.trace("I was watching the door when it opened.")
    assert model.provenance.dtype == "bfloat16"
    assert trace.query(3, 1).dtype == trace.weights(3, 1).dtype == trace.last_hidden_state.dtype == np.float32
    assert trace.weights(3, 1)[7, 5] == pytest.approx(0.475, abs=0.02)  # float32's, within bfloat16
    of_layer = anatomy(model, trace, 3)
    assert of_layer.output.dtype == np.float32


class TestFilesThatChange:
    """While a model is loaded, its folder is truncated or goes."""

    @pytest.mark.nightly
    def test_a_truncated_file_does_not_end_a_process_that_copied_the_weights(self, folder):
        code = """if True:
            import os, sys
            import attnviz

            weights = os.path.join(sys.argv[1], "model.safetensors")
            model = attnviz.load_model(sys.argv[1], is_mapped=False)
            before = model.trace("the door")
            os.truncate(weights, 100)
            after = model.trace("the door")
            assert (after.pattern(0, 0, measure="norms").weights == before.pattern(0, 0, measure="norms").weights).all()
            [failed] = attnviz.verify(model, after).failed
            assert failed.name == "weights of the file"
        """
        subprocess.run([sys.executable, "-c", code, str(folder)], check=True)

    def test_only_a_package_keeps_its_weights_in_their_file_where_they_are_to_be_copied(
        self, folder, monkeypatch
    ):
        copied = []
        monkeypatch.setattr(loading, "copy_weights", copied.append)
        attnviz.load_model(str(folder))
        attnviz.load_model(EMBEDDED, is_mapped=False)
        assert copied == []
        network = attnviz.load_model(str(folder), is_mapped=False).network
        assert copied[0] is network

    def test_the_digest_of_weights_that_are_gone_is_still_known(self, folder):
        path = folder / "model.safetensors"
        digest = sha256(path.read_bytes()).hexdigest()
        model = attnviz.load_model(str(folder))
        path.unlink()
        assert model.weights_sha256 == {"model.safetensors": digest}

    @pytest.mark.parametrize(
        ("content", "reason"),
        [(None, r"\. Put them back"), ("folder", r" \(Is a directory\)\. Put them back")],
    )
    def test_weights_that_cannot_be_read_have_no_digest(self, content, reason, tmp_path):
        if content:
            (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"a": "part"}}')
            (tmp_path / "part").mkdir()
        with pytest.raises(ModelNotAvailableError, match=f"weights of mine can no longer be read{reason}"):
            weights_digests("mine", weights_files(tmp_path))


def test_a_device_that_takes_nothing_is_said_in_a_sentence(embedded, monkeypatch):
    """As a GPU after an error inside of it."""
    tokens = embedded.tokenize("the door")

    def refuse(numbers, device):
        raise RuntimeError(f"CUDA error: {len(numbers)} numbers for the {device.type}")

    monkeypatch.setattr(torch, "tensor", refuse)
    with pytest.raises(
        ModelFailedError,
        match="all-MiniLM-L6-v2 cannot be given this text: RuntimeError: CUDA error: 4 numbers",
    ):
        embedded.inputs(tokens)


@pytest.mark.parametrize(
    "texts", [("the door", "it opened when I was watching"), ("it opened when I was watching", "the door")]
)
def test_ids_of_a_pair_of_which_one_text_is_cut(embedded, texts):
    tokens = embedded.tokenize(*texts, cut=True, max_tokens=8)
    assert sorted(number > 0 for number in tokens.n_cut) == [False, True]
    assert embedded.token_ids(tokens) == tokens.ids.tolist()
