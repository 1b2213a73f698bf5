"""The picked pair: its bars are the vectors of the trace, and what is said of them is their sum."""

import re

import numpy as np
import pytest

import attnviz
from tests.app.screen import DOOR as TEXT
from tests.app.screen import (
    Facts,
    assert_no_exception,
    facts,
    figure,
    numbers,
    open_page,
    shown,
    unescaped,
)

PAGE = "pages/query_key_map.py"
DOOR = {"text": TEXT, "layer": 3, "head": 1, "query": 7, "key": 5}


def heading(at):
    """The bold line above the bars."""
    [words] = [
        unescaped(line.value) for line in at.markdown if re.search(r"\*\*.*“.* = ", unescaped(line.value))
    ]
    return words


def test_the_bars_are_the_picked_pair_s(door_trace):
    at = open_page(PAGE, **DOOR)
    query, key, terms, sums = (numbers(trace["y"]) for trace in figure(at, "pair")["data"])
    np.testing.assert_array_equal(query, door_trace.query(3, 1)[7])
    np.testing.assert_array_equal(key, door_trace.key(3, 1)[5])
    score = float(door_trace.scores(3, 1)[7, 5])
    assert terms.sum() == pytest.approx(score, abs=1e-5)
    assert sums[-1] == pytest.approx(score, abs=1e-5)
    product = float(door_trace.query(3, 1)[7] @ door_trace.key(3, 1)[5])
    expected = Facts(("it", "door"), numbers=(f"{product:.2f}", "0.177", f"{score:.2f}"))
    assert facts(heading(at)) == expected
    assert any(facts(line.value).numbers[-1:] == ("47.5%",) for line in at.caption)  # the weight it becomes


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
    [note] = [line.value for line in at.caption if "mask" in line.value]
    assert facts(note).numbers[-1] == "0"  # the weight


def test_a_bias_is_in_the_sum(checkpoint, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint("t5")))
    at = open_page(PAGE, model="t5", text="the cat sat", second="it opened", layer=1, head=1, query=2, key=0)
    assert_no_exception(at)
    trace = attnviz.load_model(str(checkpoint("t5"))).trace("the cat sat", "it opened")
    bias = float(np.broadcast_to(trace.attention(1).bias, (2, *trace.scores(1, 1).shape))[1, 2, 0])
    expected = tuple(f"{number:.2f}".replace("-", "−") for number in (bias, trace.scores(1, 1)[2, 0]))
    assert facts(heading(at)).numbers[2:] == expected
