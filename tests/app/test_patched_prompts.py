"""Sets of prompts on the page "Patching": the mean is that of runs worked out anew here, and bad lines are said."""

import numpy as np
import pytest

from attnviz.effects.outcome import TokenAnswer, measured
from attnviz.effects.patching import patch
from tests.app.screen import (
    assert_no_exception,
    captions,
    charts,
    errors,
    figure,
    headline,
    numbers,
    open_page,
    unescaped,
    until_drawn,
)
from ui.rooms.cause import prompts as section

PAGE = "pages/patching.py"
ROWS = (
    ("the cat sat on", "the dog sat on", "a", "b"),
    ("a mat when it", "a mat when he", "b", "a"),
    ("the cat", "the cats", "a", "b"),
)


@pytest.fixture
def folder(headed, monkeypatch, offer_to_workers):
    """A tiny GPT-2 with a language head, on offer, and a table of two good pairs and one that is not."""
    _, folder = headed("gpt2")
    offer_to_workers(folder)
    monkeypatch.setattr(section, "OF_DECODERS", ROWS)
    return folder.name


@pytest.mark.parametrize("carried", ["heads", pytest.param("value", marks=pytest.mark.nightly)])
def test_the_mean_over_the_pairs(folder, headed, carried):
    at = until_drawn(open_page(PAGE, model=folder, text="the cat sat", prompts="set", patch_carried=carried))
    assert_no_exception(at)
    model, _ = headed("gpt2")
    effects = []
    for row in ROWS[:2]:
        receiver, donor = model.trace(row[0]), model.trace(row[1])
        answer = TokenAnswer(position=len(receiver.tokens) - 1, token=row[2], against=row[3])
        effects.append(patch(model, receiver, donor, measured(model, receiver, answer), carried=carried))
    changes = np.mean([of_pair.changes for of_pair in effects], axis=0)
    difference = np.mean([of_pair.donor - of_pair.base for of_pair in effects])
    drawn = numbers(figure(at, "patching_shares")["data"][0]["z"])
    shared = "Shares are of the mean difference" in unescaped(captions(at))
    assert shared
    is_share = figure(at, "patching_shares")["data"][0]["colorbar"]["title"]["text"].startswith("share")
    np.testing.assert_allclose(drawn, changes / difference if is_share else changes, atol=2e-4)
    assert "mean over 2 pairs" in headline(at)
    assert "Line 3: " in unescaped(captions(at)) and "tokens, and differ in" in unescaped(captions(at))


def test_a_model_without_answers_leads_to_one_that_has_them():
    at = open_page(PAGE, model="all-MiniLM-L6-v2", prompts="set")
    assert_no_exception(at)
    assert not errors(at) and not charts(at)
    assert any("has no language head" in element.value for element in at.markdown)
    assert at.button(key="use_language_model").label == "Use SmolLM2-135M-Instruct"


def test_what_is_measured_leads_there_too():
    """The fields of the outcome offer it, where no prediction can be measured."""
    at = until_drawn(open_page(PAGE, model="all-MiniLM-L6-v2"))
    assert at.button(key="use_language_model").label == "Use SmolLM2-135M-Instruct"
    assert charts(at)  # what can be measured is


def test_a_file_replaces_the_table(folder):
    at = until_drawn(open_page(PAGE, model=folder, text="the cat sat", prompts="set", patch_carried="heads"))
    [uploader] = [element for element in at.file_uploader if element.key.startswith("prompts_file")]
    data = b"clean,corrupted,answer,wrong_answer\nthe cat sat,the dog sat,a,b\nthe cat,,a,b\n"
    at = until_drawn(uploader.set_value(("pairs.csv", data, "text/csv")).run())
    assert "1 pair" in headline(at) and "2 pairs" not in headline(at)
    assert any("Line 3 has no corrupted" in error for error in errors(at))
