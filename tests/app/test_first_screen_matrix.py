"""The first screen: matrix, ranking and headline have the model's numbers, and every control changes what it says it changes."""

import re

import numpy as np
import pytest

from attnviz.model.catalogue import SMOLLM2
from tests.app.screen import (
    DOOR,
    Facts,
    captions,
    choose,
    component,
    facts,
    figure,
    finding,
    matrix,
    notices,
    numbers,
    open_page,
    picked,
    shown,
    step_head,
)
from ui.choice.presets import MEASURED


def test_the_cells_are_the_weights(first_screen, door_trace):
    heatmap = figure(first_screen, "matrix")["data"][0]

    np.testing.assert_array_equal(matrix(first_screen), door_trace.weights(3, 1))
    np.testing.assert_array_equal(numbers(heatmap["customdata"]), door_trace.scores(3, 1))
    assert matrix(first_screen)[7, 5] == pytest.approx(0.475, abs=5e-4)
    assert matrix(first_screen)[5, 7] < 0.1  # a transposed matrix would have it there


def test_the_bars_are_the_strongest_keys_of_the_query(first_screen, door_trace):
    bars = figure(first_screen, "ranking")["data"][0]
    row = door_trace.weights(3, 1)[7]

    np.testing.assert_array_equal(numbers(bars["x"]), np.sort(row)[::-1][:8])
    assert bars["y"][:2] == ["[CLS]·0", "door·5"]
    assert Facts(("it",), numbers=("3",)) in [
        facts(line.value) for line in first_screen.caption
    ]  # not listed


@pytest.mark.parametrize(("query", "bars", "left_out"), [(4, 5, []), (13, 8, [("13", "6")])])
def test_only_keys_that_a_query_sees_are_counted_as_not_listed(query, bars, left_out):
    at = open_page(model=SMOLLM2, text=MEASURED[0].text, query=query)
    assert len(figure(at, "ranking")["data"][0]["y"]) == bars
    assert [facts(line.value).numbers for line in at.caption if "not listed" in line.value] == [*left_out]


@pytest.mark.parametrize(
    ("start", "button", "end"),
    [
        ((3, 1), "head_next", (3, 2)),
        ((3, 1), "head_previous", (3, 0)),
        ((3, 11), "head_next", (4, 0)),
        ((4, 0), "head_previous", (3, 11)),
        ((5, 11), "head_next", (0, 0)),
        ((0, 0), "head_previous", (5, 11)),
    ],
)
def test_previous_and_next_walk_through_all_heads(start, button, end, door_trace):
    at = open_page(layer=start[0], head=start[1])
    at.button(key=button).click().run()

    assert facts(finding(at)).heads == (end,)
    assert at.number_input(key="field_layer").value == end[0]
    assert at.number_input(key="field_head").value == end[1]
    np.testing.assert_array_equal(matrix(at), door_trace.weights(*end))
    assert notices(at) == []


def test_the_query_stays_picked_while_the_head_changes(first_screen):
    step_head(first_screen)
    assert picked(first_screen) == [7]
    assert shown(first_screen)["query"] == "7"


def test_hidden_special_tokens_leave_the_other_weights_as_they_are(first_screen, door_trace):
    choose(first_screen, "special", "hidden")
    weights = door_trace.weights(3, 1)

    np.testing.assert_array_equal(matrix(first_screen), weights[1:-1, 1:-1])
    lost = weights[1:-1, [0, -1]].sum(axis=1)
    labels = figure(first_screen, "matrix")["data"][0]["y"]
    assert labels[6] == f"it·7, {100 * lost[6]:.0f}% hidden"
    assert f"{100 * lost.mean():.1f}%" in facts(captions(first_screen)).numbers  # on average


def test_the_headline_counts_what_is_hidden_and_names_the_most_of_what_is_shown(door_trace):
    at = open_page(text=DOOR, layer=3, head=1, query=7, key=3, special="hidden")
    row = door_trace.weights(3, 1)[7]
    most = int(row[1:-1].argmax()) + 1
    assert most == 5 and row.argmax() == 0  # "door", and [CLS], which is hidden
    labels = door_trace.tokens.labels
    equal = row[1:-1].mean()
    shares = tuple(f"{100 * share:.1f}%" for share in (row[most], equal, row[3], row[0] + row[10]))
    in_finding = facts(finding(at))
    assert (in_finding.quoted, in_finding.numbers) == ((labels[7], labels[most], labels[3]), ("9", *shares))
    assert "of 9 shown keys" in finding(at)  # since more than half is hidden


def test_the_headline_agrees_with_renormalised_cells(door_trace):
    at = open_page(text=DOOR, layer=3, head=1, query=7, key=5, special="renormalised")
    row = door_trace.weights(3, 1)[7]
    share = row[5] / row[1:-1].sum()
    assert matrix(at)[6, 4] == pytest.approx(share, rel=1e-5)
    assert facts(finding(at)).numbers == (f"{100 * share:.1f}%", f"{100 * (row[0] + row[10]):.1f}%")
    assert numbers(figure(at, "ranking")["data"][0]["x"])[0] == pytest.approx(share, rel=1e-5)


def test_renormalised_rows_sum_to_one(first_screen, door_trace):
    choose(first_screen, "special", "renormalised")
    weights = door_trace.weights(3, 1)[1:-1, 1:-1]

    np.testing.assert_allclose(matrix(first_screen), weights / weights.sum(axis=1, keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(matrix(first_screen).sum(axis=1), 1.0, rtol=1e-6)


def test_scores_are_those_before_the_softmax(first_screen, door_trace):
    choose(first_screen, "show", "scores")
    np.testing.assert_array_equal(matrix(first_screen), door_trace.scores(3, 1))
    heatmap = figure(first_screen, "matrix")["data"][0]
    np.testing.assert_array_equal(numbers(heatmap["customdata"]), door_trace.weights(3, 1))
    lowest = door_trace.scores(3, 1).min()
    assert lowest < 0
    assert heatmap["zmin"] == pytest.approx(lowest)  # the colours begin there, not at 0


def test_colours_end_below_the_cells_of_special_tokens_and_a_switch_lets_them_run_to_the_largest(door_trace):
    weights = door_trace.weights(3, 3)
    at = open_page(layer=3, head=3)
    heatmap = figure(at, "matrix")["data"][0]
    words = weights[1:-1, 1:-1].max()
    assert heatmap["zmax"] == pytest.approx(words) and words < weights.max()
    np.testing.assert_array_equal(matrix(at), weights)  # the numbers stay
    assert f"Colours end at {100 * words:.1f}%: cells of special tokens hold more." in captions(at)
    assert component(at, "head_rail")["clips"]
    at.toggle(key="field_clip").set_value(False).run()
    assert figure(at, "matrix")["data"][0]["zmax"] == pytest.approx(weights.max())
    assert "Colours end" not in captions(at)
    assert not component(at, "head_rail")["clips"]
    assert shown(at)["clip"] == "0"


@pytest.mark.parametrize("other", [{"show": "scores"}, {"colour": "logarithmic"}, {"special": "hidden"}])
def test_colours_are_clipped_only_where_a_special_token_would_flatten_them(other):
    at = open_page(layer=3, head=3, **other)
    assert "Colours end" not in captions(at)


def test_a_language_model_s_first_token_does_not_flatten_the_colours(smollm2):
    trace = smollm2.trace(MEASURED[0].text)
    weights = trace.weights(15, 3)
    at = open_page(model=SMOLLM2, text=MEASURED[0].text, layer=15, head=3)
    end = max(weights[:, 1:].max(), weights.mean())
    assert figure(at, "matrix")["data"][0]["zmax"] == pytest.approx(end, rel=1e-5)
    assert f"Colours end at {100 * end:.1f}%: cells of the first token hold more." in captions(at)


def test_logarithmic_colours_leave_the_numbers_as_they_are(first_screen, door_trace):
    linear = figure(first_screen, "matrix")["data"][0]["colorscale"]
    choose(first_screen, "colour", "logarithmic")
    logarithmic = figure(first_screen, "matrix")["data"][0]["colorscale"]

    np.testing.assert_array_equal(matrix(first_screen), door_trace.weights(3, 1))
    assert [colour for _, colour in linear] == [colour for _, colour in logarithmic]
    assert linear != logarithmic
    assert logarithmic[16][0] == pytest.approx(0.01)


def test_the_readout_line_holds_the_picked_cell(first_screen):
    data = component(first_screen, "matrix")["listeners"]["heatmap_events"]
    assert re.findall(r"\S+·\d+", data["picked"]) == ["it·7", "door·5"]
    assert facts(data["picked"]).numbers == ("0.475", "4.13")  # weight and score
    weights, scores = matrix(first_screen), numbers(figure(first_screen, "matrix")["data"][0]["customdata"])
    np.testing.assert_allclose(np.log(weights) + np.array(data["normalisers"])[:, None], scores, atol=1e-4)
