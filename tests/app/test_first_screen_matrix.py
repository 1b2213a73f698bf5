"""The first screen: matrix, ranking and headline have the model's numbers, and every control changes what it says it changes."""

import numpy as np
import pytest

from attnviz.model.catalogue import SMOLLM2
from tests.app.screen import (
    DOOR,
    captions,
    facts,
    finding,
    matrix,
    notices,
    open_page,
    picked,
    settle,
    shown,
    step_head,
)
from ui.choice.presets import MEASURED


def test_the_cells_are_the_weights(first_screen, door_trace):
    np.testing.assert_allclose(matrix(first_screen), door_trace.weights(3, 1), atol=4e-5)
    assert matrix(first_screen)[7, 5] == pytest.approx(0.475, abs=5e-4)
    assert matrix(first_screen)[5, 7] < 0.1  # a transposed matrix would have it there


@pytest.mark.parametrize(
    ("start", "by", "end"),
    [
        ((3, 1), 1, (3, 2)),
        ((3, 1), -1, (3, 0)),
        ((3, 11), 1, (4, 0)),
        ((4, 0), -1, (3, 11)),
        ((5, 11), 1, (0, 0)),
        ((0, 0), -1, (5, 11)),
    ],
)
def test_previous_and_next_walk_through_all_heads(start, by, end, door_trace):
    at = open_page(layer=start[0], head=start[1])
    step_head(at, by)

    assert facts(finding(at)).heads == (end,)
    np.testing.assert_allclose(matrix(at), door_trace.weights(*end), atol=4e-5)
    assert notices(at) == []


def test_the_query_stays_picked_while_the_head_changes(first_screen):
    step_head(first_screen)
    assert picked(first_screen) == [7]
    assert shown(first_screen)["query"] == "7"


def test_the_notes_say_how_much_attention_is_hidden(first_screen, door_trace):
    settle(first_screen, special="hidden")
    lost = door_trace.weights(3, 1)[1:-1, [0, -1]].sum(axis=1)
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
    assert facts(finding(at)).numbers == (f"{100 * share:.1f}%", f"{100 * (row[0] + row[10]):.1f}%")


def test_colours_end_below_the_cells_of_special_tokens_and_a_switch_lets_them_run_to_the_largest(door_trace):
    weights = door_trace.weights(3, 3)
    at = open_page(layer=3, head=3)
    words = weights[1:-1, 1:-1].max()
    assert words < weights.max()
    assert f"Colours end at {100 * words:.1f}%: cells of special tokens hold more." in captions(at)
    settle(at, clip=False)
    assert "Colours end" not in captions(at)
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
    assert f"Colours end at {100 * end:.1f}%: cells of the first token hold more." in captions(at)
