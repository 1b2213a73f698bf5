"""The page "All heads": pictures, numbers, labels and neighbours are the trace's, worked out anew here."""

from base64 import b64decode
from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from scipy.spatial.distance import jensenshannon

from attnviz.heads import STATISTICS
from tests.app.screen import (
    Facts,
    assert_no_exception,
    captions,
    component,
    errors,
    facts,
    figure,
    headline,
    numbers,
    open_page,
    shown,
    unescaped,
)
from ui.shell.view import SPECIAL_HIDDEN
from ui.words.findings import ATTENDS

PAGE = "pages/all_heads.py"


@pytest.fixture(scope="module")
def weights(door_trace):
    """[layer, head, query, key], head by head."""
    return np.array([[door_trace.weights(layer, head) for head in range(12)] for layer in range(6)])


@pytest.fixture(scope="module")
def on_cls(weights):
    return weights[..., 0].mean(axis=2)


def tones(at):
    """The pictures as Pillow reads them, [layer, head, row, column]."""
    encoded = component(at, "head_grid_pictures")["pictures"]

    def read(picture):
        with Image.open(BytesIO(b64decode(picture))) as image:
            return np.asarray(image)

    return np.array([[read(value) for value in row] for row in encoded])


def cells(at, name):
    return np.array([[cell.get(name) for cell in row] for row in component(at, "head_grid")["cells"]])


def test_each_picture_is_its_head_s_matrix(weights):
    at = open_page(PAGE)
    assert_no_exception(at)
    largest = weights.max(axis=(2, 3), keepdims=True)
    np.testing.assert_allclose(tones(at), 255 * weights / largest, atol=0.501)
    texts = cells(at, "text")
    assert facts(texts[3, 1]).heads == ((3, 1),)
    assert facts(texts[3, 1]).numbers[0] == "0.995"  # its largest weight
    assert component(at, "head_grid")["picked"] == [3, 1]


def test_pictures_on_one_scale(weights):
    at = open_page(PAGE, common_scale=1)
    np.testing.assert_allclose(tones(at), 255 * weights / weights.max(), atol=0.501)
    assert at.toggle(key="field_common_scale").value


def test_pictures_in_logarithmic_colours(weights):
    at = open_page(PAGE, colour="logarithmic")
    shares = 1 + np.log10(weights / weights.max(axis=(2, 3), keepdims=True)) / 4
    np.testing.assert_allclose(tones(at), 255 * shares.clip(0, 1), atol=0.51)


def test_rows_and_columns_are_those_of_the_sidebar(weights):
    at = open_page(PAGE, special="renormalised")
    inner = weights[..., 1:-1, 1:-1]
    inner = inner / inner.sum(axis=-1, keepdims=True)
    largest = inner.max(axis=(2, 3), keepdims=True)
    np.testing.assert_allclose(tones(at), 255 * inner / largest, atol=0.51)
    assert SPECIAL_HIDDEN in captions(at)


def test_a_number_colours_the_grid(on_cls):
    at = open_page(PAGE, grid="cls")
    labels = cells(at, "label")
    np.testing.assert_allclose(labels.astype(float), on_cls, atol=0.0006)
    most, least = (divmod(int(place), 12) for place in (on_cls.argmax(), on_cls.argmin()))
    shares = f"{100 * on_cls.max():.1f}%", f"{100 * on_cls.min():.1f}%"
    assert facts(headline(at)) == Facts((), (most, least), shares)
    assert cells(at, "fill")[most] == component(at, "head_grid")["legend"]["steps"][-1]
    assert STATISTICS["cls"].source in captions(at)
    assert not [element for element in at.get("bidi_component") if element.key == "head_grid_pictures"]


def test_labels_follow_their_thresholds(on_cls):
    for delimiter in (0.6, 0.85):
        at = open_page(PAGE, delimiter=delimiter)
        marked = np.array([["C" in mark for mark in row] for row in cells(at, "mark")])
        np.testing.assert_array_equal(marked, on_cls > delimiter)
        assert f"{marked.sum()} attend {ATTENDS['[CLS]']}" in unescaped(headline(at))
    assert cells(open_page(PAGE), "mark")[0, 2] == "←"  # its diagonal is plain to see


def test_heads_without_the_label_are_dimmed_and_not_listed(on_cls):
    at = open_page(PAGE, label="cls")
    np.testing.assert_array_equal(~cells(at, "dimmed").astype(bool), on_cls > 0.6)
    table = at.dataframe[0].value
    assert list(zip(table["Layer"], table["Head"], strict=True)) == [
        tuple(place) for place in np.argwhere(on_cls > 0.6)
    ]
    titles = [element.value for element in at.markdown if "numbers of" in element.value]
    assert titles == [f"**The numbers of {(on_cls > 0.6).sum()} of 72 heads**"]
    opacity = numbers(figure(at, "head_map")["data"][0]["marker"]["opacity"]).reshape(6, 12)
    expected = np.where(on_cls > 0.6, 1, 0.2)
    expected[3, 1] = 1  # picked
    np.testing.assert_allclose(opacity, expected)

    at.selectbox(key="field_label").set_value("none").run()
    unlabelled = (
        np.char.replace(cells(at, "mark").astype(str), "R", "") == ""
    )  # R is of many texts, not of this one
    np.testing.assert_array_equal(~cells(at, "dimmed").astype(bool), unlabelled)
    assert shown(at)["label"] == "none"


def test_heads_outside_the_range_are_dimmed(on_cls):
    at = open_page(PAGE, grid="cls", lowest=0.5, highest=0.7)
    inside = (on_cls >= 0.5) & (on_cls <= 0.7)
    np.testing.assert_array_equal(~cells(at, "dimmed").astype(bool), inside)
    assert at.slider(key="heads_range").value == (0.5, 0.7)

    at.slider(key="heads_range").set_range(0.8, at.slider(key="heads_range").max).run()
    np.testing.assert_array_equal(~cells(at, "dimmed").astype(bool), on_cls >= 0.8)
    assert shown(at)["lowest"] == "0.8"
    assert "highest" not in shown(at)

    at.selectbox(key="field_grid").set_value("entropy").run()  # another number: no limits
    assert any(element.value == "**The numbers of all 72 heads**" for element in at.markdown)
    assert not cells(at, "dimmed").astype(bool).any()
    assert not {"lowest", "highest"} & shown(at).keys()
    assert shown(at)["grid"] == "entropy"


def test_the_table_has_every_number(on_cls, weights):
    table = open_page(PAGE).dataframe[0].value
    assert len(table) == 72
    np.testing.assert_allclose(table["Weight on [CLS]"].to_numpy().reshape(6, 12), on_cls, rtol=1e-5)
    previous = np.array([[np.diagonal(head, -1).mean() for head in layer] for layer in weights])
    title = STATISTICS["previous"].title
    np.testing.assert_allclose(table[title].to_numpy().reshape(6, 12), previous, rtol=1e-5)
    assert table["Labels"][2] == "previous"


def test_the_heads_most_like_the_picked_one(weights):
    at = open_page(PAGE)
    flat = weights.reshape(72, *weights.shape[2:]).astype(np.float64)
    divergence = [np.mean(jensenshannon(flat[37], other, axis=1, base=2) ** 2) for other in flat]
    order = [index for index in np.argsort(divergence) if index != 37][:8]
    rows = component(at, "nearest_heads")["rows"]
    assert [row["text"] for row in rows] == [f"Layer {index // 12}, head {index % 12}" for index in order]
    for row, index in zip(rows, order, strict=True):
        assert float(row["amount"]) == pytest.approx(1 - divergence[index], abs=6e-4)
        assert row["length"] == pytest.approx(float(row["amount"]), abs=6e-4)  # bar and number say the same


def test_the_map_marks_the_picked_head():
    drawn = figure(open_page(PAGE, layer=2, head=7), "head_map")["data"][0]
    assert numbers(drawn["customdata"]).tolist() == [
        [layer, head] for layer in range(6) for head in range(12)
    ]
    sizes = numbers(drawn["marker"]["size"])
    assert np.flatnonzero(sizes == sizes.max()).tolist() == [31]
    assert drawn["text"][31] == "L2 H7"


def test_a_number_that_the_text_has_not():
    at = open_page(PAGE, grid="same_token")
    assert tones(at).shape == (6, 12, 11, 11)
    assert STATISTICS["same_token"].title in captions(at)  # no token of this text occurs twice


def test_rollout_has_no_heads():
    at = open_page(PAGE, show="rollout")
    assert_no_exception(at)
    assert errors(at) == []
    assert "Rollout" in captions(at)


@pytest.mark.nightly
@pytest.mark.parametrize("family", ["bart", "gpt2", "t5", "llama"])
def test_every_kind_of_attention(family, checkpoint, monkeypatch):
    folder = checkpoint(family)
    monkeypatch.setenv("ATTNVIZ_MODELS", str(folder))
    second = "the door" if family in ("bart", "t5") else ""
    for kind in ("encoder", "decoder", "cross") if second else ("decoder",):
        at = open_page(PAGE, model=folder.name, kind=kind, text="a cat sat on the mat", second=second)
        assert_no_exception(at)
        assert errors(at) == []
        assert tones(at).shape[:2] == cells(at, "text").shape
        assert shown(at).get("kind", kind) == kind
