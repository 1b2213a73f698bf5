"""Positions: the model's own table, the paper's, and the words shuffled."""

import re

import numpy as np
import pytest

from tests.app.screen import DOOR, assert_no_exception, figure, numbers, open_page, unescaped

PAGE = "pages/positions.py"


def captions(at) -> str:
    return " ".join(unescaped(one.value) for one in at.caption)


def test_cosines_are_the_models(embedded):
    at = open_page(PAGE, text=DOOR)
    assert_no_exception(at)
    own = embedded.network.embeddings.position_embeddings.weight.detach().double().numpy()
    for first, second in ((0, 1), (0, 10), (20, 30)):
        cosine = own[first] @ own[second] / np.linalg.norm(own[first]) / np.linalg.norm(own[second])
        assert f"{cosine:.3f}" in captions(at)
    shown = figure(at, "learned_likeness")["data"][0]
    places = numbers(shown["x"])
    i, j = 3, 77
    cosine = own[places[i]] @ own[places[j]] / np.linalg.norm(own[places[i]]) / np.linalg.norm(own[places[j]])
    assert numbers(shown["z"])[i, j] == pytest.approx(cosine, abs=1e-5)


def test_shuffled_words_are_the_words():
    at = open_page(PAGE, text=DOOR, seed=4)
    [line] = [unescaped(one.value) for one in at.markdown if one.value.startswith("The model reads")]
    found = re.sub(r"^The model reads: ", "", line).split()
    words = ["[CLS]", "i", "was", "watching", "the", "door", "when", "it", "opened", ".", "[SEP]"]
    assert found != words and sorted(found) == sorted(words)
    assert (found[0], found[-1]) == ("[CLS]", "[SEP]")
    assert numbers(figure(at, "shuffled_without")["data"][0]["y"]).max() < 1e-5
    assert numbers(figure(at, "shuffled_with")["data"][0]["y"]).max() > 0.05
    assert "bag of" in " ".join(one.value for one in at.markdown)
    other = open_page(PAGE, text=DOOR, seed=5)
    assert line not in [unescaped(one.value) for one in other.markdown]


@pytest.mark.parametrize(
    ("name", "second", "said"),
    [("t5", "a door", "no table of positions"), ("gpt2", "", "a causal mask tells before from after")],
)
def test_other_families(name, second, said, checkpoint, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint(name)))
    from attnviz.catalogue import offers

    own = [one.name for one in offers() if name in one.name][-1]
    at = open_page(PAGE, model=own, text="the cat sat", second=second)
    assert_no_exception(at)
    assert said in " ".join(one.value for one in [*at.markdown, *at.info, *at.error])
