"""Wherever a token is masked, the list of what would stand there is one click away, and nothing is computed before it is opened."""

import numpy as np
import pytest

import attnviz
from attnviz.model.catalogue import SMOLLM2
from tests.app.conftest import FEW_CANDIDATES
from tests.app.screen import DOOR, assert_no_exception, figure, open_page, unescaped
from ui.runtime import jobs

KEY = "stands_here"


@pytest.fixture(autouse=True)
def _nothing_is_filled_yet():
    jobs._kept.clear()


def filling():
    return [work for work in jobs._kept.values() if work.name == "filling a gap"]


def opened(at):
    """The page with the drawer open, once its job has ended."""
    at.session_state[KEY] = True
    at.run()
    for work in filling():
        work.settle(60)
    return at.run()


@pytest.mark.parametrize(
    ("page", "asked"),
    [
        ("attention.py", {"masked": "7", "query": 5}),
        ("pages/compare.py", {"masked": "7"}),
        ("pages/compare.py", {"other_masked": "7"}),
    ],
)
def test_the_list_is_that_of_attnviz_fill(page, asked):
    at = open_page(page, model="all-MiniLM-L6-v2", text=DOOR, **{"layer": 3, "head": 1, "query": 7} | asked)
    assert_no_exception(at)
    assert filling() == []
    opened(at)
    assert_no_exception(at)
    expected = attnviz.fill(
        attnviz.load_model(SMOLLM2), "I was watching the door when", " opened.", most=FEW_CANDIDATES
    )
    [both] = [trace for trace in figure(at, f"{KEY}_list_0")["data"] if trace["name"] == "both"]
    assert list(both["y"]) == list(expected.labels[:5])
    np.testing.assert_allclose(both["x"], expected.probabilities[:5], rtol=1e-6)
    assert any("when ___ opened" in unescaped(line.value) for line in at.markdown)


def test_a_word_of_several_tokens_is_one_gap():
    """MiniLM reads "gnawed" as pieces; the other model is asked for the whole word."""
    at = open_page(model="all-MiniLM-L6-v2", text="The mouse gnawed the cheese.", layer=0, head=0, masked="3")
    opened(at)
    assert_no_exception(at)
    assert any("mouse ___ the cheese" in unescaped(line.value) for line in at.markdown)


def test_nothing_is_offered_where_nothing_is_masked():
    at = open_page(model="all-MiniLM-L6-v2", text=DOOR, layer=3, head=1)
    assert KEY not in str([block for block in at.main.children.values()])
