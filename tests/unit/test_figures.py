"""The ranking and the grid of errors hold exactly the numbers of the records."""

from dataclasses import replace

import numpy as np

import attnviz
from attnviz.figures import draw_errors, draw_ranking
from attnviz.model.model import Model
from attnviz.model.trace import Trace
from attnviz.records import Axis
from tests import small_records


def test_ranking_is_the_row_sorted(door_trace: Trace) -> None:
    pattern = door_trace.pattern(3, 1)
    (bars,) = draw_ranking(pattern, 7, picked_key=5).data
    assert list(bars.y[:2]) == ["[CLS]·0", "door·5"]
    np.testing.assert_array_equal(bars.x, np.sort(pattern.weights[7])[::-1][: len(bars.x)])
    assert bars.text[1] == "\N{EN SPACE}0.475"
    assert list(bars.customdata[1]) == ["key", 5, pattern.scores[7, 5]]
    assert list(bars.marker.line.width)[:2] == [0, 2.5]


def test_the_selected_key_is_outlined_where_special_tokens_are_hidden(door_trace: Trace) -> None:
    shown = Axis.of(door_trace.tokens).without_special()
    for position in range(1, 10):
        (bars,) = draw_ranking(door_trace.pattern(3, 1).arranged(shown, shown), 7, picked_key=position).data
        outlined = [
            bar[1] for bar, width in zip(bars.customdata, bars.marker.line.width, strict=True) if width
        ]
        assert outlined == [position] * any(bar[1] == position for bar in bars.customdata)


def test_error_grid_is_layers_down_and_heads_across(embedded: Model, door_trace: Trace) -> None:
    report = attnviz.verify(embedded, door_trace)
    check = report.check("attention weights")
    (cells,) = draw_errors(check, picked=(3, 1)).data
    assert cells.z.shape == (6, 12)
    np.testing.assert_array_equal(cells.customdata[..., 0], report.weight_error)
    np.testing.assert_array_equal(cells.customdata[..., 1], check.tolerances["encoder"])
    shares = np.maximum(report.weight_error / check.tolerances["encoder"], 1e-5)
    np.testing.assert_allclose(10.0**cells.z, shares, rtol=1e-5)


def test_a_head_that_is_not_a_number_has_the_colour_of_failure(embedded: Model, door_trace: Trace) -> None:
    layers = list(door_trace.layers["encoder"])
    query = layers[2].query.copy()
    query[4] = np.nan
    layers[2] = replace(layers[2], query=query)
    report = attnviz.verify(embedded, replace(door_trace, layers={"encoder": tuple(layers)}))
    (cells,) = draw_errors(report.check("attention weights")).data
    assert np.isnan(cells.customdata[2, 4, 0])
    assert cells.z[2, 4] == cells.zmax


def test_masked_keys_are_not_ranked(tiny_model) -> None:
    trace = tiny_model("gpt2").trace("the cat sat")
    (bars,) = draw_ranking(trace.pattern(0, 0), 1).data
    assert len(bars.x) == 2


def test_the_row_of_a_query_is_found_among_the_queries() -> None:
    """Whose first token is not shown; of the keys all are."""
    queries, keys = Axis.of(small_records.tokens(3)), Axis.of(small_records.tokens(4))
    whole = small_records.pattern(np.eye(3, 4).tolist(), queries=queries, keys=keys, kind="cross")
    (bars,) = draw_ranking(whole.arranged(queries.where(np.arange(3) > 0), keys), 2).data
    assert list(bars.customdata[0][:2]) == ["key", 2] and bars.x[0] == 1
