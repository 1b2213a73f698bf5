"""The page "Generation": tokens and probabilities are those of transformers' own generate, rows those of a run of their own."""

import numpy as np
import pytest
import streamlit as st
import torch
import transformers as tf

from attnviz.figures.theme import Figure
from attnviz.model.catalogue import EMBEDDED, SMOLLM2
from tests import tiny
from tests.app.screen import (
    assert_no_exception,
    captions,
    component,
    errors,
    facts,
    figure,
    headline,
    notices,
    numbers,
    open_page,
    shown,
    type_text,
    until_drawn,
)
from ui.rooms.generate import step

PAGE = "pages/generation.py"
TEXT = "the cat sat when"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.save_with_head("gpt2", tmp_path_factory.mktemp("decoder") / "writer")


@pytest.fixture
def offered(folder, offer_to_workers):
    offer_to_workers(folder)


@pytest.fixture(scope="module")
def generated(folder):
    """Ids of the text and what transformers' own model writes, with the probabilities of each step."""
    theirs = tf.GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager").eval()
    given = tf.AutoTokenizer.from_pretrained(folder)(TEXT, return_tensors="pt")
    with torch.inference_mode():
        made = theirs.generate(
            **given, max_new_tokens=6, do_sample=False, output_scores=True, return_dict_in_generate=True
        )
        attentions = theirs(made.sequences, output_attentions=True).attentions
    probabilities = torch.stack(made.scores)[:, 0].softmax(dim=-1).numpy()
    return made.sequences[0].tolist(), given["input_ids"].shape[1], probabilities, attentions


@pytest.fixture
def clickable(monkeypatch):
    """A button for each row of a list, since AppTest cannot click in a component."""
    real = step.ranked_list

    def with_buttons(rows, *, on_pick, key, **named):
        real(rows, on_pick=on_pick, key=key, **named)
        for row in range(len(rows)):
            st.button(f"{key} {row}", key=f"{key}_{row}", on_click=on_pick, args=(row,))

    monkeypatch.setattr(step, "ranked_list", with_buttons)


def click(at, key, row):
    until_drawn(at.button(key=f"{key}_{row}").click().run())
    assert errors(at) == []


def drawn(**asked):
    at = until_drawn(open_page(PAGE, model="writer", text=TEXT, layer=1, head=0, write_tokens=6, **asked))
    assert_no_exception(at)
    assert errors(at) == []
    return at


def test_the_tokens_and_the_attention_of_transformers(offered, generated):
    ids, n_read, probabilities, attentions = generated
    at = drawn(write_step=3)
    assert len(component(at, "token_strip")["tokens"]) == len(ids) == n_read + 6
    np.testing.assert_allclose(
        np.nan_to_num(numbers(figure(at, "written_matrix")["data"][0]["z"])),
        attentions[1][0, 0].numpy(),
        atol=2e-5,
    )
    row = attentions[1][0, 0, n_read + 1].numpy().copy()  # what the token before the third one read
    assert facts(headline(at)).numbers[:2] == ("3", f"{100 * probabilities[2].max():.1f}%")
    chips = component(at, "token_strip")["tokens"]
    labels = [chip["label"] for chip in chips]
    row[[0, n_read + 1]] = -1  # the first token, on which heads rest, and the query itself are no finding
    row[[chip["position"] for chip in chips if chip["special"]]] = -1
    assert f"{100 * row.max():.1f}%" in facts(headline(at)).numbers
    named = facts(headline(at)).quoted
    assert (named[0], named[1], named[2]) == (
        labels[n_read + 2],
        labels[n_read + 1],
        labels[int(row.argmax())],
    )
    rows = component(at, "candidates")["rows"]
    np.testing.assert_allclose(
        [float(row["amount"]) for row in rows], np.sort(probabilities[2])[::-1][:5], rtol=0.01
    )
    assert [row["picked"] for row in rows] == [True, False, False, False, False]
    assert any(facts(line.value).numbers[:1] == ("6",) for line in at.caption)  # tokens


def test_a_branch_goes_on_from_the_picked_token_and_is_compared(offered, folder, generated):
    ids, n_read, probabilities, attentions = generated
    second = int(probabilities[2].argsort()[-2])
    at = drawn(write_step=5, write_branches=f"3.{second}", write_branch=1, write_beside=0)
    theirs = tf.GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager").eval()
    begun = torch.tensor([[*ids[: n_read + 2], second]])
    with torch.inference_mode():
        made = theirs.generate(
            begun, attention_mask=torch.ones_like(begun), max_new_tokens=3, do_sample=False
        )
        other = theirs(made, output_attentions=True).attentions[1][0, 0].numpy()
    own = attentions[1][0, 0].numpy()
    n = len(ids)
    for part, expected in (("first", other), ("second", own), ("difference", own - other)):
        cells = numbers(figure(at, f"branches_{part}")["data"][0]["z"])
        np.testing.assert_allclose(np.nan_to_num(cells), expected[:n, :n], atol=2e-5)
    row = n_read + 3  # what was read at step 5
    change = np.abs(own[row] - other[row]).sum() / 2
    [in_finding] = [facts(element.value) for element in at.markdown if "diverge at step" in element.value]
    chances = [f"{100 * np.sort(probabilities[2])[-rank]:.1f}%" for rank in (2, 1)]
    assert in_finding.has("3", *chances, "5", f"{100 * change:.1f}%")
    listed = component(at, "texts")["rows"]
    assert [text["picked"] for text in listed] == [False, True]
    chosen = probabilities.max(axis=1)
    assert float(listed[0]["amount"].replace("−", "-")) == pytest.approx(np.log(chosen).sum(), abs=0.006)


def test_candidates_that_are_clicked_become_branches_or_show_the_text_that_goes_on_so(
    offered, generated, clickable
):
    _, _, probabilities, _ = generated
    second, third = (int(token_id) for token_id in probabilities[2].argsort()[::-1][1:3])
    at = drawn(write_step=3)
    click(at, "candidates", 1)
    assert shown(at)["write_branches"] == f"3.{second}" and shown(at)["write_branch"] == "1"
    click(at, "candidates", 2)
    assert shown(at)["write_branches"] == f"3.{second},3.{third}" and shown(at)["write_branch"] == "2"
    click(at, "candidates", 0)
    assert "write_branch" not in shown(at)  # the model's own text goes on with the likeliest
    click(at, "texts", 1)
    assert shown(at)["write_branch"] == "1"
    at.button(key="remove_branch").click()
    until_drawn(at.run())
    assert shown(at)["write_branches"] == f"3.{third}" and "write_branch" not in shown(at)


@pytest.mark.parametrize("n_branch", [5, 6])
def test_when_no_branch_can_be_added_it_is_said(n_branch, offered, generated):
    _, _, probabilities, _ = generated
    likeliest = probabilities[2].argsort()[::-1][1 : n_branch + 1]
    at = drawn(write_branches=",".join(f"3.{token_id}" for token_id in likeliest))
    assert len(component(at, "texts")["rows"]) == n_branch + 1
    notes = [
        line.value for line in at.caption if facts(line.value).numbers == ("6",) and "branches" in line.value
    ]
    assert len(notes) == (n_branch == 6)


def test_another_sentence_has_no_branches(offered, generated):
    second = int(generated[2][2].argsort()[-2])
    at = drawn(write_branches=f"3.{second}", write_branch=1)
    until_drawn(type_text(at, "the dog sat"))
    assert not {"write_branches", "write_branch"} & shown(at).keys()


@pytest.mark.nightly
def test_the_text_and_what_was_written_become_the_sentence(offered):
    at = drawn()
    at.button(key="written_sentence").click().run()
    assert_no_exception(at)
    assert at.text_area[0].value.startswith(TEXT) and len(at.text_area[0].value) > len(TEXT)


@pytest.mark.nightly
def test_another_seed_draws_other_tokens(offered):
    first, other = (drawn(write_temperature=2, seed=seed) for seed in (1, 2))
    words = [[token["label"] for token in component(at, "token_strip")["tokens"]] for at in (first, other)]
    assert words[0] != words[1]
    assert facts(captions(first)).has("6", "2", "1")  # tokens, temperature and seed


@pytest.mark.nightly
def test_more_than_the_model_reads_is_explained(offered):
    at = until_drawn(open_page(PAGE, model="writer", text="cat " * 7, write_tokens=50))
    assert_no_exception(at)
    assert "reads at most" in " ".join(errors(at))


@pytest.mark.nightly
def test_in_place_of_a_model_that_does_not_write_one_that_does_is_shown():
    at = until_drawn(open_page(PAGE, text=TEXT, model=EMBEDDED, write_tokens=2))
    assert_no_exception(at)
    assert errors(at) == [] and ["writes no text" in notice for notice in notices(at)] == [True]
    assert shown(at)["model"] == SMOLLM2 and at.text_area(key="field_text").value == TEXT
    assert len(component(at, "token_strip")["tokens"]) == 4 + 2


@pytest.mark.parametrize("asked", [{}, {"write_branches": "8.5", "write_branch": 1}])
def test_the_python_writes_and_draws_the_same(asked, offered, monkeypatch):
    at, shown, names = drawn(**asked), [], {}
    monkeypatch.setattr(Figure, "show", lambda self: shown.append(self))
    exec(component(at, "save_picture")["python"], names)
    labels = [chip["label"] for chip in component(at, "token_strip")["tokens"]]
    assert list(names["continuation"].tokens.labels) == labels
    on_screen = numbers(figure(at, "written_matrix")["data"][0]["z"])
    np.testing.assert_array_equal(np.array(shown[0].data[0].z), on_screen)
