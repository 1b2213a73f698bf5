"""The viewer's document, and the bytes beside it, of traces whose numbers are written down or the library's own."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from attnviz.errors import SelectionError
from attnviz.viewer import data as viewer_data
from attnviz.viewer.codes import Scale
from attnviz.viewer.data import head_bytes, layer_bytes, measure_bytes, stage_data
from tests.hand_made import trace

LABELS = ["[CLS]", "play", "##ing", "door", "[SEP]"]
CAUSAL = np.tri(5, dtype=bool)


def causal(lengths=None):
    """Two layers with three heads each."""
    drawn = np.where(CAUSAL, np.random.default_rng(5).random((2, 3, 5, 5)), 0)
    weights = (drawn / drawn.sum(axis=-1, keepdims=True)).astype(np.float32)
    return trace(weights, LABELS, kind="decoder", allowed=CAUSAL, lengths=lengths)


def numbers(cells, sent, *shape):
    scale = Scale(**{name: getattr(cells, name) for name in Scale.__slots__})
    return scale.numbers(np.frombuffer(sent, "<u2")).reshape(-1, *shape)


def test_the_document_says_what_there_is():
    read = causal()
    data, sent = stage_data(read, "decoder", mask_label="[MASK]", text="t", names=[["a", "b", ""]] * 2)
    written = msgspec.json.decode(data.written())
    assert written.keys() == {
        *(
            "version",
            "text",
            "model",
            "kind",
            "counts",
            "queries",
            "keys",
            "cells",
            "measures",
            "tiling",
            "names",
        ),
        *("maskLabel", "specialMeans", "looks", "font", "tokenFont"),
    }
    assert (written["text"], written["model"], written["kind"]) == ("t", "hand-made", "decoder")
    assert (written["counts"], written["keys"], written["maskLabel"]) == ([3, 3], None, "[MASK]")
    assert written["queries"] == {
        "labels": LABELS,
        "special": [0, 4],
        "joined": [2],
        "resting": [0, 4],
        "segment": [0] * 5,
        "words": [[0, 1, "[CLS]"], [1, 3, "playing"], [3, 4, "door"], [4, 5, "[SEP]"]],
        "cut": {},
        "was": {},
        "pictures": [],
    }
    assert written["measures"] == ["weights", "scores", "rollout"]  # W_O is not known
    assert written["cells"]["heads"] == "all" and len(sent) == 2 * 6 * 25
    assert written["looks"]["light"]["colours"]["query"] == "#0072b2"
    assert [place for place, _ in written["looks"]["dark"]["scale"]] == np.linspace(0, 1, 33).tolist()
    assert msgspec.json.decode(data.written(), type=type(data)) == data


def test_words_are_none_where_nothing_tells_them():
    read = causal()
    without = replace(read, tokens=replace(read.tokens, word=np.full(5, -1)))
    assert stage_data(without, "decoder")[0].queries.words is None


@pytest.mark.parametrize("measure", ["weights", "scores", "norms"])
def test_cells_are_the_numbers_of_every_head(measure):
    read = causal(lengths=np.random.default_rng(6).random((2, 3, 5)).astype(np.float32))
    cells, sent = measure_bytes(read, "decoder", measure)
    for number, of_head in enumerate(numbers(cells, sent, 5, 5)):
        layer, head = divmod(number, 3)
        pattern = read.pattern(layer, head, measure="weights" if measure == "scores" else measure)
        wanted = pattern.scores if measure == "scores" else pattern.weights
        assert (np.isnan(of_head) == ~CAUSAL).all()
        assert np.abs(of_head - wanted)[CAUSAL].max() <= cells.error * 1.01 + 1e-6
        again = numbers(*head_bytes(read, "decoder", layer, head, measure), 5, 5)[0]
        assert np.abs(again - wanted)[CAUSAL].max() <= cells.error * 1.01 + 1e-6


def test_rollout_has_one_matrix_for_a_layer():
    read = causal()
    cells, sent = measure_bytes(read, "decoder", "rollout")
    assert cells.per_layer and cells.heads == "all"
    for layer, of_layer in enumerate(numbers(cells, sent, 5, 5)):
        np.testing.assert_allclose(
            np.nan_to_num(of_layer), read.rollout(layer), rtol=0, atol=cells.error + 1e-6
        )
    assert head_bytes(read, "decoder", 1, 2, "rollout")[0].heads == ((1, 2),)


def test_a_layer_s_mixing_is_sent_with_what_a_query_may_not_see():
    weights = causal().weights(1, 0)
    cells, sent = layer_bytes(replace(causal().pattern(1, None), weights=weights, measure="alti"))
    assert (cells.measure, cells.per_layer, cells.heads) == ("alti", True, ((1, 0),))
    [of_layer] = numbers(cells, sent, 5, 5)
    assert (np.isnan(of_layer) == ~CAUSAL).all()
    assert np.abs(of_layer - weights)[CAUSAL].max() <= cells.error * 1.01 + 1e-6


def test_above_the_bound_only_what_is_asked_for_is_sent(monkeypatch):
    monkeypatch.setattr(viewer_data, "MOST_BYTES", 2 * 6 * 25 - 1)
    read = causal()
    data, sent = stage_data(read, "decoder", heads=[(1, 2), (0, 1)])
    assert data.cells.heads == ((1, 2), (0, 1))
    for of_head, place in zip(numbers(data.cells, sent, 5, 5), data.cells.heads, strict=True):
        np.testing.assert_allclose(np.nan_to_num(of_head), read.weights(*place), rtol=0, atol=6e-5)
    assert stage_data(read, "decoder")[0].cells.heads == ((0, 0),)


def test_a_trace_s_name_is_that_of_its_content():
    names = {
        stage_data(read, kind)[0].text
        for read, kind in (
            (causal(), "decoder"),
            (causal(), "decoder"),
            (trace(np.full((1, 1, 5, 5), 0.2), LABELS), "encoder"),
        )
    }
    assert len(names) == 2


def test_what_is_not_there_is_refused():
    read = causal()
    with pytest.raises(SelectionError, match="norms"):
        stage_data(read, "decoder", measure="norms")
    with pytest.raises(SelectionError, match="head"):
        head_bytes(read, "decoder", 0, 3, "weights")
