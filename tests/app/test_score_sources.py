"""Why the head looks there: the parts on the screen are the score that the trace has, and the largest are named."""

import numpy as np
import pytest

from attnviz.effects.score_sources import score_sources
from tests.app.screen import DOOR as TEXT
from tests.app.screen import (
    assert_no_exception,
    component,
    figure,
    numbers,
    open_bundle,
    open_page,
    shown,
    unescaped,
)

PAGE = "pages/query_key_map.py"
DOOR = {"text": TEXT, "layer": 3, "head": 1, "query": 7, "key": 5}


def score_finding(at) -> str:
    """The finding."""
    [words] = [
        unescaped(line.value) for line in at.markdown if "sources" in line.value and "Score" in line.value
    ]
    return words


def test_nothing_is_split_until_it_is_asked_for(embedded, door_trace):
    at = open_page(PAGE, **DOOR)
    with pytest.raises(ValueError, match="unpack"):
        score_finding(at)
    at.toggle(key="field_sources").set_value(True).run()
    assert_no_exception(at)
    assert shown(at)["sources"] == "1"
    parts = numbers(figure(at, "score_sources")["data"][0]["z"])
    assert parts.sum() == pytest.approx(float(door_trace.scores(3, 1)[7, 5]), abs=1e-4)
    ticks = figure(at, "score_sources")["layout"]["xaxis"]["ticktext"]
    assert ticks[:5] == ["token", "segment", "position", "L0 heads", "L0 MLP"]
    expected = score_sources(embedded, door_trace, 3, 1, 7, 5)
    sums = expected.parts.sum(axis=0)
    first = expected.sources[int(np.abs(sums).argmax())]
    assert "“it”" in score_finding(at) and "“door”" in score_finding(at)
    assert f"key’s sources {first.words}" in score_finding(at)
    assert any("All parts sum to 4.13" in unescaped(line.value) for line in at.caption)


@pytest.mark.parametrize("key", [5, 2])  # the largest part of a side is above 0, and below
def test_lists_begin_with_the_largest_whatever_its_sign(key):
    at = open_page(PAGE, **DOOR | {"key": key})
    at.toggle(key="field_sources").set_value(True).run()
    listed = {side: component(at, f"sources_{side}")["rows"] for side in ("query", "key", "pair")}
    for rows in listed.values():
        lengths = [abs(row["length"]) for row in rows]
        assert lengths == sorted(lengths, reverse=True)
        assert lengths[0] == pytest.approx(1) and min(row["length"] for row in rows) < 0
        assert all((row["length"] < 0) == row["amount"].startswith("−") for row in rows)


def test_of_a_bundle_it_says_why_not(door_bundle):
    at = open_bundle(open_page(PAGE), door_bundle)
    at.toggle(key="field_sources").set_value(True).run()
    assert_no_exception(at)
    assert any(
        "opened bundle" in element.value for element in [*at.error, *at.warning, *at.info, *at.caption]
    )
