"""Positions: the model's own table, the paper's, and the words shuffled."""

import numpy as np
import pytest

from attnviz.maths.positions import shift
from tests import tiny, tiny_tokenizers
from tests.app.screen import (
    DOOR,
    alt,
    assert_no_exception,
    captions,
    charts,
    facts,
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
    assert f"{own.max():.3g}" in facts(captions(at)).numbers
    assert figure(at, "sines_table")["data"][0]["zmax"] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("k", [1, 7])
def test_a_shift_turns_every_sine_with_its_cosine(k):
    at = open_page(PAGE, text=DOOR, shift=k)
    assert_no_exception(at)
    [recomputed] = [line.value for line in at.markdown if line.value.startswith(":material/calculate:")]
    assert facts(recomputed).numbers[:4] == (str(512 - k), "384", "384", str(k))
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
    monkeypatch.setattr("ui.rooms.how_it_works.positions.shift", lambda k, d_model: shift(k, d_model).T)
    at = open_page(PAGE, text=DOOR, shift=3)
    [differs] = [line.value for line in at.markdown if ":red[" in line.value]
    assert facts(differs).numbers[0] == "3"


def test_what_the_dot_product_depends_on(embedded):
    at = open_page(PAGE, text=DOOR)
    waves = 1 / 10_000 ** (2 * np.arange(192) / 384)
    sines = [text for apart in (1, 5, 20) for text in (str(apart), f"{np.cos(apart * waves).sum():.3g}")]
    [in_line] = [facts(line.value) for line in at.markdown if facts(line.value).has(*sines)]
    own = embedded.network.embeddings.position_embeddings.weight.detach().double().numpy()
    learned = [float(own[at] @ own[at + 20]) for at in range(len(own) - 20)]
    assert in_line.has("20", *(f"{end:#.3g}".replace("-", "−") for end in (min(learned), max(learned))))


def test_shuffled_words_are_the_words():
    at = open_page(PAGE, text=DOOR, seed=4)
    [line] = [text for text in map(unescaped, (part.value for part in at.markdown)) if "[CLS]" in text]
    read = line.partition(": ")[2].split()
    words = ["[CLS]", "i", "was", "watching", "the", "door", "when", "it", "opened", ".", "[SEP]"]
    assert read != words and sorted(read) == sorted(words)
    assert (read[0], read[-1]) == ("[CLS]", "[SEP]")
    assert numbers(figure(at, "shuffled_without")["data"][0]["y"]).max() < 1e-5
    assert numbers(figure(at, "shuffled_with")["data"][0]["y"]).max() > 0.05
    assert [line for line in at.latex if "reordering" in line.value]
    other = open_page(PAGE, text=DOOR, seed=5)
    assert line not in [unescaped(element.value) for element in other.markdown]


@pytest.mark.parametrize(
    ("name", "second", "tables"),
    [("t5", "a door", ["sines_table"]), ("gpt2", "", ["learned_table", "sines_table"])],
)
def test_other_families(name, second, tables, checkpoint, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint(name)))
    from attnviz.model.catalogue import offers

    own = [offer.name for offer in offers() if name in offer.name][-1]
    at = open_page(PAGE, model=own, text="the cat sat", second=second)
    assert_no_exception(at)
    assert sorted(key for key in charts(at) if key.endswith("_table")) == tables  # T5 adds no vectors
    assert ("shuffled_without" in charts(at)) == (name == "gpt2")
    assert not [
        formula for formula in at.latex if "reordering" in formula.value
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
        title = alt(at, "learned_table")
        assert ("not learned" in title) == (not is_learned)
        assert ("all sines first" in captions(at)) == (not is_learned)
        in_lines = [facts(line.value) for line in at.markdown]
        assert any(line.numbers.count("20") == 2 for line in in_lines) == is_learned
        assert not at.error
        assert any("is not shuffled" in element.value for element in at.info)  # it reads two texts
