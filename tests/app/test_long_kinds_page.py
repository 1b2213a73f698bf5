"""“Kinds of attention” of a long text: the rows around the selected query under a window, and its row tile by tile."""

import numpy as np
import pytest

from tests import numpy_attention
from tests.app.screen import (
    DOOR,
    assert_no_exception,
    captions,
    errors,
    facts,
    figure,
    finding,
    numbers,
    open_page,
    shown,
)
from ui.rooms.how_it_works.kinds_of_attention import around, tiles_and_sources
from ui.shell import verdict

PAGE = "pages/kinds_of_attention.py"
AT = {"text": DOOR, "layer": 3, "head": 1, "query": 7}
ROWS = slice(5, 9)


@pytest.fixture(autouse=True)
def _a_sentence_is_long(own_numbers, monkeypatch):
    monkeypatch.setattr("attnviz.model.trace.LONG", 8)
    monkeypatch.setattr(around, "SIDE", 4)
    monkeypatch.setattr(tiles_and_sources, "TILE", 3)


def cells(at, chart: str) -> np.ndarray:
    return numbers(figure(at, chart)["data"][0]["z"]).astype(np.float64)


def test_the_rows_around_the_query_under_a_window(door_trace):
    at = open_page(PAGE, **AT, reach=1)
    assert_no_exception(at)
    near = np.abs(np.subtract.outer(np.arange(11), np.arange(11))) <= 1
    vectors = door_trace.query(3, 1), door_trace.key(3, 1), 32**-0.5
    own, under = numpy_attention.weights(*vectors), numpy_attention.weights(*vectors, allowed=near)
    np.testing.assert_allclose(cells(at, "mask_before"), own[ROWS, ROWS], atol=1e-6)
    np.testing.assert_array_equal(np.isnan(cells(at, "mask_after")), ~near[ROWS, ROWS])
    np.testing.assert_allclose(np.nan_to_num(cells(at, "mask_after")), under[ROWS, ROWS], atol=1e-6)
    kept = (own * near).sum(axis=1)
    assert facts(finding(at)).has(f"{100 * kept[7]:.1f}%")
    assert f"{100 * kept[ROWS].mean():.1f}%" in captions(at)
    assert "4 of 11 queries and 4 of 11 keys" in captions(at)
    hidden = 1 - own[7, ROWS].sum()
    [label] = [text for text in figure(at, "mask_before")["data"][0]["y"] if text.startswith("it")]
    assert f"{100 * hidden:.0f}% hidden" in label


def test_what_a_window_saves():
    [table] = open_page(PAGE, **AT, reach=1).table
    saved = table.value
    assert saved["cells of one head"].tolist() == ["121", "31"]  # 11 x 3, less one at each end
    assert saved["weights of the 12 heads"].tolist() == [
        "5.81\N{NO-BREAK SPACE}kB",
        "1.49\N{NO-BREAK SPACE}kB",
    ]


def test_the_row_tile_by_tile_is_the_direct_one(door_trace):
    at = open_page(PAGE, **AT, tiles=2, tile=3)
    scores, [direct] = door_trace.scores(3, 1)[7].astype(np.float64), door_trace.output(3, 1)[[7]]
    table = at.dataframe[0].value
    assert len(table) == 2
    maxima = [scores[:3].max(), scores[:6].max()]
    np.testing.assert_allclose(table["m′, maximum so far"], maxima, rtol=1e-5)
    sums = [np.exp(scores[:stop] - most).sum() for stop, most in zip((3, 6), maxima, strict=True)]
    np.testing.assert_allclose(table["ℓ′, sum so far"], sums, rtol=1e-5)
    shares = np.exp(scores[:6] - maxima[1]) / sums[1]
    apart = np.abs(shares @ door_trace.value(3, 1)[:6] - direct).max()
    assert table["largest difference from the direct output"].iloc[-1] == pytest.approx(apart, rel=1e-3)
    at.number_input(key="field_tiles").set_value(4).run()
    assert at.dataframe[0].value["largest difference from the direct output"].iloc[-1] < 1e-6
    assert "in this row the output is the direct one" in captions(at)


def test_no_whole_matrix_is_computed(monkeypatch):
    from attnviz.model.head_attention import HeadAttention

    asked = []
    real = HeadAttention.scores_and_weights

    def noting(head, rows=slice(None)):
        scores, weights = real(head, rows)
        asked.append(len(weights))
        return scores, weights

    monkeypatch.setattr(verdict, "show", lambda view: None)  # which compares all numbers with the model's
    monkeypatch.setattr(HeadAttention, "scores_and_weights", noting)
    assert not errors(open_page(PAGE, **(AT | {"text": f"{DOOR} It was cold outside.", "query": 9})))
    assert asked and max(asked) <= 4


def test_another_token_is_selected_by_its_position():
    at = open_page(PAGE, **AT, key=2)
    assert any("**it** opened" in line.value for line in at.markdown)
    at.number_input(key="field_query").set_value(4).run()
    assert_no_exception(at)
    assert (shown(at)["query"], shown(at).get("key")) == ("4", None)
    assert any("was watching **the** door" in line.value for line in at.markdown)


@pytest.mark.parametrize("kind", ["decoder", "cross"])
def test_other_kinds(kind, checkpoint, monkeypatch):
    from attnviz.model.catalogue import offers

    monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint("bart")))
    own = [offer.name for offer in offers() if "bart" in offer.name][-1]
    monkeypatch.setattr("attnviz.model.trace.LONG", 3)
    at = open_page(PAGE, model=own, text="the cat sat", second="a door", kind=kind)
    assert_no_exception(at)
    assert not errors(at)
    assert cells(at, "mask_before").shape == (4, 4)
