"""The file of a model's weights is overwritten while the app runs: earlier verdicts no longer hold."""

import os
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from attnviz.errors import VerificationError
from tests.app.opened import verdict
from tests.app.screen import assert_no_exception, captions, open_page, unescaped
from tests.bundles import bundle_of
from tests.hub import save_tiny_bert
from ui.runtime import cache
from ui.runtime.remembered import MODELS, NUMBERS
from ui.runtime.source import Source

TEXT = "the door opened"


@pytest.fixture
def weights(tmp_path, monkeypatch):
    """The file of the weights of a model that the operator offers, "mine"."""
    folder = tmp_path / "mine"
    folder.mkdir()
    save_tiny_bert(folder)
    monkeypatch.setenv("ATTNVIZ_MODELS", str(folder))
    yield folder / "model.safetensors"
    MODELS.clear()
    NUMBERS.clear()


def change(weights: Path) -> None:
    """Replaces this file by one with other numbers, as a copy program does."""
    tensors = load_file(weights)
    tensors["encoder.layer.1.attention.self.query.weight"] *= 2
    save_file(tensors, weights.with_suffix(".new"), metadata={"format": "pt"})
    os.replace(weights.with_suffix(".new"), weights)


def first_row(at) -> str:
    return unescaped(at.table[0].value["compared"][0])


def test_the_first_row_counts_the_tensors_of_the_file(weights):
    at = open_page("pages/verification.py", model="mine", text=TEXT)
    assert_no_exception(at)
    n_tensor = len(load_file(weights))
    assert first_row(at).startswith(f"**Weights of the file.** {n_tensor} of {n_tensor} used: ")
    assert "of the file" not in captions(at)


def test_the_verdict_turns_red_and_says_what_to_do(weights):
    assert verdict(open_page(model="mine", text=TEXT)).startswith(":green[")
    change(weights)
    at = open_page(model="mine", text=TEXT)
    assert_no_exception(at)
    assert verdict(at).startswith(":red[")
    for words in ("model.safetensors changed on disk", "restart the app"):
        assert words in unescaped(verdict(at))
    at.switch_page("pages/verification.py").run()
    assert_no_exception(at)
    assert "model.safetensors changed on disk" in first_row(at)
    assert at.table[0].value["result"][0] == ":red[:material/cancel: failed]"
    assert all("passed" in result for result in at.table[0].value["result"][1:])


def test_a_verdict_holds_for_the_weights_that_were_loaded(weights):
    """Once the model is loaded anew, a trace that was kept belongs to the weights before."""
    source = Source(model="mine", text=TEXT)
    assert cache.report(source).passed
    change(weights)
    MODELS.clear()
    assert not cache.report(source).check("attention weights").passed


def test_a_verdict_on_a_bundle_holds_for_the_weights_that_it_was_made_with(weights, monkeypatch):
    model = cache.model("mine")
    bundle = bundle_of(model, model.trace(TEXT))
    monkeypatch.setattr(cache, "recorded", lambda digest: bundle)
    source = Source(model="mine", text=TEXT, bundle="a digest")
    assert cache.compared_report(source).passed
    change(weights)
    assert not cache.compared_report(source).passed
    MODELS.clear()
    with pytest.raises(VerificationError, match="has other weights"):
        cache.compared_report(source)
