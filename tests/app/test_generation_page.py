"""The page "Generation": tokens and probabilities are those of transformers' own generate, rows those of a run of their own."""

import numpy as np
import pytest
import torch
import transformers as tf

from tests import tiny
from tests.app.screen import (
    assert_no_exception,
    captions,
    component,
    errors,
    facts,
    figure,
    headline,
    numbers,
    open_page,
    unescaped,
    until_drawn,
)

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
    row = attentions[1][0, 0, n_read + 1].numpy()  # what the token before the third one read
    assert facts(headline(at)).numbers[:2] == ("3", f"{100 * probabilities[2].max():.1f}%")
    assert f"{100 * row.max():.1f}%" in facts(headline(at)).numbers
    labels = [one["label"] for one in component(at, "token_strip")["tokens"]]
    named = facts(headline(at)).quoted
    assert (named[0], named[1], named[2]) == (
        labels[n_read + 2],
        labels[n_read + 1],
        labels[int(row.argmax())],
    )
    table = at.table[0].value
    np.testing.assert_allclose(
        [float(one) for one in table["probability"]], np.sort(probabilities[2])[::-1][:5], rtol=0.01
    )
    assert any(facts(line.value).numbers[:1] == ("6",) for line in at.caption)  # tokens


@pytest.mark.nightly
def test_the_text_and_what_was_written_become_the_sentence(offered):
    at = drawn()
    at.button(key="written_sentence").click().run()
    assert_no_exception(at)
    assert at.text_area[0].value.startswith(TEXT) and len(at.text_area[0].value) > len(TEXT)


@pytest.mark.nightly
def test_another_seed_draws_other_tokens(offered):
    one, other = (drawn(write_temperature=2, seed=seed) for seed in (1, 2))
    words = [[token["label"] for token in component(at, "token_strip")["tokens"]] for at in (one, other)]
    assert words[0] != words[1]
    assert facts(captions(one)).has("6", "2", "1")  # tokens, temperature and seed


@pytest.mark.nightly
def test_more_than_the_model_reads_is_explained(offered):
    at = until_drawn(open_page(PAGE, model="writer", text="cat " * 7, write_tokens=50))
    assert_no_exception(at)
    assert "reads at most" in " ".join(errors(at))


def test_a_model_that_does_not_write_says_what_the_page_is_for():
    at = open_page(PAGE)
    assert_no_exception(at)
    assert errors(at) == []
    assert "cannot write" in unescaped(" ".join(one.value for one in at.markdown))
