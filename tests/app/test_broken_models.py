"""A model whose files or code are broken: one sentence, and nothing of another text or model is drawn."""

import subprocess
import sys

import pytest
from safetensors.torch import load_file, save_file

from attnviz.errors import ModelFailedError
from tests.app.screen import (
    ROOT,
    assert_no_exception,
    assert_nothing_drawn,
    errors,
    open_page,
    shown,
    type_text,
    unescaped,
)
from tests.calls import Failing
from tests.hub import save_tiny_bert
from tests.tiers import first_gates
from ui.runtime import cache
from ui.shell.errors import UNFORESEEN


def raises(*_, **__):
    raise RuntimeError("their scale\nwith secrets")


def words(at):
    """All that a page says."""
    return unescaped(str(at.main))


@pytest.mark.parametrize("page", ["attention.py", "pages/compare.py"])
def test_an_error_of_a_network_s_own_code_is_a_sentence_and_the_next_text_is_shown(page):
    at = type_text(open_page(page), "The old door creaked.")
    network = cache.model("all-MiniLM-L6-v2").network
    hook = network.encoder.layer[2].register_forward_hook(raises)
    try:
        type_text(at, f"A text that {page} has not shown.")
    finally:
        hook.remove()
    assert_no_exception(at)
    [error] = errors(at)
    assert "BertModel" in error and "RuntimeError: their scale. " in error
    assert_nothing_drawn(at)
    assert "creaked" not in words(at)
    type_text(at, f"Another text that {page} has not shown.")
    assert errors(at) == []
    assert shown(at)["text"].startswith("Another text")


def test_an_error_of_a_job_s_network_is_a_sentence_that_offers_no_second_try(monkeypatch, tmp_path):
    failed = ModelFailedError("BertModel failed on this text: RuntimeError: their scale.")
    never = Failing("attnviz.effects.input_attribution:attribute_inputs", tmp_path / "never", failed)
    monkeypatch.setattr("ui.rooms.cause.inputs.attributions.attribute_inputs", never)
    at = open_page("pages/inputs.py", text="A door that no other test has opened.")
    assert_no_exception(at)
    assert errors(at) == [str(failed)]
    assert not any(element.label == "Try again" for element in at.button)


def test_a_tensor_with_nan_is_named_and_another_model_can_be_selected(tmp_path, monkeypatch):
    folder = tmp_path / "odd"
    folder.mkdir()
    weights = save_tiny_bert(folder) / "model.safetensors"
    tensors = load_file(weights)
    tensors["encoder.layer.1.output.dense.weight"][2, 3] = float("nan")
    save_file(tensors, weights, metadata={"format": "pt"})
    monkeypatch.setenv("ATTNVIZ_MODELS", str(folder))
    at = type_text(open_page(), "The old door creaked.")
    at.selectbox(key="field_model").set_value("odd").run()
    [error] = errors(at)
    assert "encoder.layer.1.output.dense.weight of odd" in error
    assert_nothing_drawn(at)
    assert shown(at)["model"] == "odd"
    at.selectbox(key="field_model").set_value("all-MiniLM-L6-v2").run()
    assert errors(at) == []
    assert shown(at)["text"] == "The old door creaked."


def test_two_folders_of_one_name_are_both_on_offer(tmp_path, monkeypatch):
    folders = [tmp_path / parent / "door" for parent in ("first", "second")]
    for folder in folders:
        folder.mkdir(parents=True)
        save_tiny_bert(folder)
    monkeypatch.setenv("ATTNVIZ_MODELS", ",".join(map(str, folders)))
    at = open_page(text="the door opened")
    for name in ("door (first)", "door (second)"):
        at.selectbox(key="field_model").set_value(name).run()
        assert_no_exception(at)
        assert errors(at) == []
        assert shown(at)["model"] == name
    assert str(tmp_path) not in words(at)


@pytest.mark.parametrize("page", first_gates("attention.py", "pages/effects.py"))
@pytest.mark.usefixtures("ends_in_a_sentence")
def test_an_unforeseen_error_ends_a_page_in_a_sentence(page, monkeypatch):
    at = open_page(page)
    monkeypatch.setattr(cache, "report", raises)  # the verdict, which every page ends with
    at.run()
    assert_no_exception(at)
    assert errors(at) == [UNFORESEEN]
    assert "secrets" not in words(at) and "RuntimeError" not in words(at)


@pytest.mark.usefixtures("ends_in_a_sentence")
def test_an_error_in_a_block_leaves_what_is_beside_it(monkeypatch):
    def drawn(at):
        return {field.key for field in [*at.selectbox, *at.get("bidi_component")]}

    whole = drawn(open_page())
    monkeypatch.setattr(cache, "projection", raises)
    at = open_page()
    assert errors(at) == 2 * [UNFORESEEN]  # of the stage's map, and of Export, which says how that was made
    assert whole - drawn(at) == {"map", "save_picture"}


@pytest.mark.nightly
def test_the_server_shows_that_sentence_and_nothing_of_streamlit_s():
    code = """if True:
        import app  # as `streamlit run` imports it
        from streamlit import config

        print(app.app._on_script_error.__qualname__, config.get_option("client.showErrorLinks"))
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["uncaught", "false"]
