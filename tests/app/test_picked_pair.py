"""The picked pair: its bars are the vectors of the trace, and what is said of them is their sum."""

import numpy as np
import pytest

import attnviz
from tests.app.screen import assert_no_exception, figure, numbers, open_page, shown, unescaped

PAGE = "pages/query_key_map.py"
DOOR = {"text": "I was watching the door when it opened.", "layer": 3, "head": 1, "query": 7, "key": 5}


def test_the_bars_are_the_picked_pair_s(door_trace):
    at = open_page(PAGE, **DOOR)
    query, key, terms, sums = (numbers(one["y"]) for one in figure(at, "pair")["data"])
    np.testing.assert_array_equal(query, door_trace.query(3, 1)[7])
    np.testing.assert_array_equal(key, door_trace.key(3, 1)[5])
    score = float(door_trace.scores(3, 1)[7, 5])
    assert terms.sum() == pytest.approx(score, abs=1e-5)
    assert sums[-1] == pytest.approx(score, abs=1e-5)
    [words] = [unescaped(one.value) for one in at.markdown if "Score of" in one.value]
    product = float(door_trace.query(3, 1)[7] @ door_trace.key(3, 1)[5])
    assert words == f"**Score of “it” and “door”: {product:.2f} × 0.177 = {score:.2f}**"
    assert "makes it a weight of 47.5%" in " ".join(unescaped(one.value) for one in at.caption)


def test_the_largest_stand_first_on_request(door_trace):
    at = open_page(PAGE, **DOOR)
    at.toggle(key="field_largest_first").set_value(True).run()
    assert_no_exception(at)
    terms = numbers(figure(at, "pair")["data"][2]["y"])
    assert (np.diff(np.abs(terms)) <= 0).all()
    assert shown(at)["largest_first"] == "1"


def test_a_pair_that_is_masked(checkpoint, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint("gpt2")))
    at = open_page(PAGE, model="gpt2", text="the cat sat on a mat", query=1, key=3)
    assert_no_exception(at)
    assert "the mask takes minus infinity in its place, and the weight is 0" in " ".join(
        one.value for one in at.caption
    )


def test_a_bias_is_in_the_sum(checkpoint, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint("t5")))
    at = open_page(PAGE, model="t5", text="the cat sat", second="it opened", layer=1, head=1, query=2, key=0)
    assert_no_exception(at)
    trace = attnviz.load_model(str(checkpoint("t5"))).trace("the cat sat", "it opened")
    [words] = [unescaped(one.value) for one in at.markdown if "Score of" in one.value]
    bias = float(np.broadcast_to(trace.attention(1).bias, (2, *trace.scores(1, 1).shape))[1, 2, 0])
    assert f"+ bias {bias:.2f} = {trace.scores(1, 1)[2, 0]:.2f}".replace("-", "−") in words
