"""Positions: the model's own table, the paper's, and the words shuffled."""

import re

import numpy as np
import pytest

from attnviz.maths.positions import shift
from tests import tiny, tiny_tokenizers
from tests.app.screen import (
    DOOR,
    assert_no_exception,
    captions,
    figure,
    numbers,
    open_page,
    unescaped,
)

PAGE = "pages/positions.py"


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


def test_learned_vectors_can_be_seen(embedded):
    """A few large numbers must not make the rest look like nothing."""
    own = np.abs(embedded.network.embeddings.position_embeddings.weight.detach().numpy())
    at = open_page(PAGE, text=DOOR)
    drawn = figure(at, "learned_table")["data"][0]
    assert own.max() > 10 * drawn["zmax"]
    assert np.median(np.abs(numbers(drawn["z"]))) > 0.1 * drawn["zmax"]
    assert f"the largest is {own.max():.3g}" in captions(at)
    assert figure(at, "sines_table")["data"][0]["zmax"] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("k", [1, 7])
def test_a_shift_turns_every_sine_with_its_cosine(k):
    at = open_page(PAGE, text=DOOR, shift=k)
    assert_no_exception(at)
    [recomputed] = [one.value for one in at.markdown if "Recomputed here" in one.value]
    assert f"{512 - k} positions times this matrix, 384 × 384. Largest difference" in recomputed
    assert f"from the positions {k} later" in recomputed
    corner = numbers(figure(at, "shift_matrix")["data"][0]["z"])
    angles = k / 10_000 ** (2 * np.arange(6) / 384)
    expected = np.zeros((12, 12))
    for pair, angle in enumerate(angles):
        expected[2 * pair : 2 * pair + 2, 2 * pair : 2 * pair + 2] = [
            [np.cos(angle), np.sin(angle)],
            [-np.sin(angle), np.cos(angle)],
        ]
    np.testing.assert_allclose(corner, expected, atol=1e-6)


def test_a_wrong_shift_is_said(monkeypatch):
    monkeypatch.setattr("ui.sections.positions.shifted.shift", lambda k, d_model: shift(k, d_model).T)
    at = open_page(PAGE, text=DOOR, shift=3)
    assert [one.value for one in at.markdown if "Does not match the positions 3 later" in one.value]


def test_what_the_dot_product_depends_on(embedded):
    at = open_page(PAGE, text=DOOR)
    [said] = [unescaped(one.value) for one in at.markdown if "how far apart" in one.value]
    waves = 1 / 10_000 ** (2 * np.arange(192) / 384)
    for apart in (1, 5, 20):
        assert f"{apart} apart it is {np.cos(apart * waves).sum():.3g}" in said
    own = embedded.network.embeddings.position_embeddings.weight.detach().double().numpy()
    learned = [float(own[at] @ own[at + 20]) for at in range(len(own) - 20)]
    assert f"20 apart from {min(learned):#.3g} to {max(learned):#.3g}".replace("-", "−") in said


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
    [("t5", "a door", "adds no position vectors"), ("gpt2", "", "its causal mask tells before from after")],
)
def test_other_families(name, second, said, checkpoint, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint(name)))
    from attnviz.model.catalogue import offers

    own = [one.name for one in offers() if name in one.name][-1]
    at = open_page(PAGE, model=own, text="the cat sat", second=second)
    assert_no_exception(at)
    assert said in " ".join(one.value for one in [*at.markdown, *at.info, *at.error])
    assert not [
        one for one in at.latex if "reordering" in one.value
    ]  # which holds without a causal mask only


def test_fixed_sines_and_cosines_are_not_called_learned(checkpoint, tmp_path, monkeypatch):
    """A Marian as it is published: its table is not trained, and holds all sines before all cosines."""
    network = tiny.build(tiny.TEXT_FAMILIES["marian"])
    for part in (network.encoder, network.decoder):
        part.embed_positions.weight.data.copy_(part.embed_positions.create_weight())
    network.save_pretrained(tmp_path / "marian")
    tiny_tokenizers.tokenizer("t5").save_pretrained(tmp_path / "marian")
    for folder, is_learned in ((tmp_path / "marian", False), (checkpoint("bart"), True)):
        monkeypatch.setenv("ATTNVIZ_MODELS", str(folder))
        at = open_page(PAGE, model=folder.name, text="the cat sat", second="a door")
        assert_no_exception(at)
        said = " ".join(one.value for one in [*at.markdown, *at.caption])
        assert ("**Learned by this model**" in said) == is_learned
        assert ("**This model’s, not learned**" in said) == (not is_learned)
        assert ("sines and cosines of the paper, all sines first" in said) == (not is_learned)
        assert ("Learned vectors need not" in said) == is_learned
        assert "reads two texts" in " ".join(one.value for one in at.error)
