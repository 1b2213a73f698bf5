"""The page Positions, with tables drawn at random."""

import math

import numpy as np
import pytest

from attnviz.errors import UnsupportedArchitectureError
from attnviz.figures.numbers import number_text
from attnviz.figures.positions import MOST_POSITIONS, draw_path
from attnviz.figures.theme import LIGHT
from attnviz.lessons.order import Shuffle
from tests.app.screen import alt, facts, figure, numbers
from tests.app.views import LABELS, drawn_of, trace_of, view_of, whole
from ui.rooms.how_it_works.positions import shuffled as shuffled_section
from ui.rooms.how_it_works.positions import vectors as vectors_section
from ui.rooms.how_it_works.positions.shifted import shifted
from ui.rooms.how_it_works.positions.shuffled import shuffled
from ui.rooms.how_it_works.positions.vectors import likeness_words, vectors


def sines(n_position: int, width: int) -> list[list[float]]:
    """Vaswani et al. 2017, section 3.5, written out."""
    return [
        [
            (math.sin if at % 2 == 0 else math.cos)(position / 10_000 ** ((at - at % 2) / width))
            for at in range(width)
        ]
        for position in range(n_position)
    ]


def titles(at) -> list[str]:
    return [element.value.strip("*") for element in at.markdown if element.value.startswith("**")]


@pytest.mark.parametrize("n_used", [2, 5])
def test_a_path_of_positions(n_used):
    points = whole(np.random.default_rng(0), 7, 2)
    figure = draw_path(points, n_used=n_used)
    every, own = figure.data
    assert not figure.layout.xaxis.visible and not figure.layout.yaxis.visible
    assert figure.layout.yaxis.scaleanchor == "x"
    for trace, n in ((every, 7), (own, n_used)):
        assert list(trace.x) == points[:n, 0].tolist() and list(trace.y) == points[:n, 1].tolist()
        assert list(trace.customdata) == [*range(n)]
    assert "lines" in every.mode and "lines" not in own.mode
    assert own.marker.color == LIGHT.picked and own.marker.size > every.marker.size
    assert "in this text" in own.hovertemplate and "in this text" not in every.hovertemplate


TABLES = {
    "learned": whole(np.random.default_rng(1), 9, 6),
    "in turn": np.array(sines(9, 6), dtype=np.float32),
    "sines first": np.array([row[0::2] + row[1::2] for row in sines(9, 6)], dtype=np.float32),
}


@pytest.mark.parametrize("name", TABLES)
def test_the_models_own_table_beside_the_papers(name, monkeypatch):
    table = TABLES[name]
    monkeypatch.setattr(vectors_section.cache, "learned_positions", lambda model: table)
    view = view_of(trace_of(0))
    at = drawn_of(view, lambda: vectors(view))
    of_model = {"learned": "Learned by this model"}.get(name, "This model’s, not learned")
    assert titles(at) == [of_model, "Sines and cosines", "Corner of the matrix"][:2]
    captions = [element.value for element in at.caption]
    of_paper = ["sines and cosines of the paper" in caption for caption in captions]
    assert of_paper == [name != "learned", *[False] * (len(captions) - 1)]
    assert sum("all sines first" in caption for caption in captions) == (name == "sines first")
    for key, own in (("learned", table), ("sines", TABLES["in turn"])):
        np.testing.assert_allclose(numbers(figure(at, f"{key}_table")["data"][0]["z"]), own, atol=1e-6)
        frame = figure(at, f"{key}_likeness")["layout"]["shapes"][0]
        assert (frame["x0"], frame["y0"], frame["x1"], frame["y1"]) == (-0.5, -0.5, 4.5, 4.5)
        path, used = figure(at, f"{key}_path")["data"]
        assert len(numbers(path["x"])) == 9 and len(numbers(used["x"])) == len(LABELS)
    sizes = [facts(caption).numbers[:2] for caption in captions if "lengths" in caption]
    assert sizes == [("9", "6"), ("9", "6")]
    lengths = [math.hypot(*map(float, row)) for row in table]
    assert f"lengths {number_text(min(lengths))} to {number_text(max(lengths))}" in " ".join(captions)
    linked = [caption for caption in captions if "Positions 0 and 1" in caption]
    assert [caption.startswith("[Cosine") for caption in linked] == [True, False]
    [sentence] = [
        element.value for element in at.markdown if "The dot product of two vectors" in element.value
    ]
    assert ("Learned vectors need not" in sentence) == (name == "learned")


def test_how_many_positions_of_a_long_table_are_drawn():
    one_more = likeness_words(np.ones((MOST_POSITIONS + 1, 2), dtype=np.float32), 3)
    assert one_more.endswith(f" Of {MOST_POSITIONS + 1} positions {MOST_POSITIONS} are drawn.")
    assert "are drawn" not in likeness_words(np.ones((MOST_POSITIONS, 2), dtype=np.float32), 3)


@pytest.mark.parametrize("bundle", ["", "0" * 64])
def test_a_model_without_a_table(bundle, monkeypatch):
    monkeypatch.setattr(vectors_section.cache, "learned_positions", lambda model: None)
    view = view_of(trace_of(0), bundle=bundle)
    at = drawn_of(view, lambda: vectors(view))
    assert titles(at) == ["This model’s", "Sines and cosines"]
    [notice] = at.info
    assert ("bundle" in notice.value) == bool(bundle)
    assert [element.key for element in at.get("bidi_component") if "learned" in str(element.key)] == []
    [size] = [facts(element.value).numbers[:2] for element in at.caption if "lengths" in element.value]
    assert size == ("512", "6")


def test_an_odd_width_has_a_cosine_for_every_sine(monkeypatch):
    table = whole(np.random.default_rng(1), 9, 5)
    monkeypatch.setattr(vectors_section.cache, "learned_positions", lambda model: table)
    view = view_of(trace_of(0))
    at = drawn_of(view, lambda: vectors(view))
    assert [facts(element.value).numbers[:2] for element in at.caption if "lengths" in element.value] == [
        ("9", "5"),
        ("9", "6"),
    ]


@pytest.mark.parametrize(("chosen", "k"), [(1, 1), (2, 2), (50, 8)])
@pytest.mark.parametrize("width", [6, 16])
def test_a_shift_is_a_rotation(chosen, k, width):
    """The matrix as the angle of every wave gives it; it is as long as the last position allows."""
    view = view_of(trace_of(0), shift=chosen)
    at = drawn_of(view, lambda: shifted(view, np.array(sines(9, width), dtype=np.float32)))
    assert at.number_input(key="field_shift").value == k and at.number_input(key="field_shift").max == 8
    n = min(width, 12)
    expected = np.zeros((n, n))
    for at_ in range(0, n, 2):
        angle = k / 10_000 ** (at_ / width)
        expected[at_ : at_ + 2, at_ : at_ + 2] = [
            [math.cos(angle), math.sin(angle)],
            [-math.sin(angle), math.cos(angle)],
        ]
    np.testing.assert_allclose(numbers(figure(at, "shift_matrix")["data"][0]["z"]), expected, atol=1e-6)
    assert f"by {k}:" in alt(at, "shift_matrix")
    [sentence] = [element.value for element in at.markdown if "To shift" in element.value]
    assert facts(sentence).numbers[0] == str(k) and ("positions" in sentence.split(",")[0]) == (k > 1)
    [compared] = [
        element.value for element in at.markdown if element.value.startswith(":material/calculate:")
    ]
    assert facts(compared).has(str(9 - k), str(width), str(width)) and f"the positions {k} later" in compared


SHUFFLED = np.array([0, 3, 1, 2, 4])


@pytest.mark.parametrize("without", [np.zeros(5), np.array([0, 0.25, 0.5, 0, 0])])
@pytest.mark.parametrize("order", [np.arange(5), SHUFFLED])
@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_shuffled_words(order, without, kind, monkeypatch):
    with_positions = np.array([0.125, 0.5, 0.25, 1.0, 0])
    shuffle = Shuffle(
        order=order,
        with_positions=with_positions.astype(np.float32),
        without_positions=without.astype(np.float32),
    )
    monkeypatch.setattr(shuffled_section.cache, "shuffled", lambda source, seed: shuffle)
    view = view_of(trace_of(0, kind=kind))
    at = drawn_of(view, lambda: shuffled(view))
    [read] = [element.value for element in at.markdown if element.value.startswith("The model reads: ")]
    assert read.replace("\\", "").split(": ")[1].split() == [LABELS[index] for index in order]
    for key, change in (("shuffled_with", with_positions), ("shuffled_without", without)):
        [bars] = figure(at, key)["data"]
        np.testing.assert_allclose(numbers(bars["y"]), change)
        assert np.flatnonzero(numbers(bars["marker"]["line"]["width"])).tolist() == [2]
    assert [facts(element.value).numbers[:2] for element in at.caption] == [
        (number_text(float(change.mean())), number_text(float(change.max())))
        for change in (with_positions, without)
    ]
    is_own, is_bag = order is not SHUFFLED, not without.any()
    assert len(at.latex) == (not is_own and is_bag)
    last = at.markdown[-1].value
    assert ("own" in last.split(",")[0]) == is_own
    assert ("bag of words" in last) == (not is_own and is_bag)
    assert ("causal mask tells" in last) == (not is_own and not is_bag and kind == "decoder")
    assert ("no causal mask" in last) == (not is_own and not is_bag and kind == "encoder")


def test_what_cannot_be_shuffled(monkeypatch):
    def refuse(source, seed):
        raise UnsupportedArchitectureError("it has no table", reason="it has no table")

    view = view_of(trace_of(0), bundle="0" * 64)
    at = drawn_of(view, lambda: shuffled(view))
    assert "bundle" in at.info[0].value and not at.get("bidi_component")
    monkeypatch.setattr(shuffled_section.cache, "shuffled", refuse)
    view = view_of(trace_of(0))
    at = drawn_of(view, lambda: shuffled(view))
    assert "m is not shuffled: it has no table" in at.info[0].value and not at.get("bidi_component")
