"""A score taken apart: its terms add up to what the model's attention computed, masked, biased or shared."""

import csv
import io

import numpy as np
import pytest

from attnviz.errors import SelectionError
from attnviz.heads.score import Score, score_of

HAND = Score(
    query=np.array([1.0, -2.0, 3.0], dtype=np.float32),
    key=np.array([4.0, 1.0, 0.5], dtype=np.float32),
    scale=0.5,
    bias=0.25,
    allowed=True,
)


def test_terms_are_products_times_scale() -> None:
    assert HAND.terms.tolist() == [2.0, -1.0, 0.75]
    assert HAND.value == 2.0
    assert HAND.largest_first().tolist() == [0, 1, 2]


def test_the_largest_term_is_the_one_furthest_from_zero() -> None:
    score = Score(
        query=HAND.query, key=np.array([0.0, 7.0, -1.0], dtype=np.float32), scale=1.0, bias=0.0, allowed=True
    )
    assert score.terms.tolist() == [0.0, -14.0, -3.0]
    assert score.largest_first().tolist() == [1, 2, 0]


def test_add_up_to_the_scores_of_the_embedded_model(door_trace) -> None:
    scores = door_trace.scores(3, 1)
    for query, key in ((7, 5), (0, 10), (10, 0)):
        score = score_of(door_trace, 3, 1, query, key)
        # float32 sums of 32 products, each below 10
        assert score.value == pytest.approx(float(scores[query, key]), abs=1e-5)
        np.testing.assert_array_equal(score.query, door_trace.query(3, 1)[query])
        np.testing.assert_array_equal(score.key, door_trace.key(3, 1)[key])
        assert (score.bias, score.allowed) == (0.0, True)
        assert score.scale == pytest.approx(1 / np.sqrt(32))


@pytest.mark.parametrize("family", ["t5", "llama", "gpt2", "bart", "bert"])
def test_add_up_in_every_kind_of_attention(family, tiny_model) -> None:
    model = tiny_model(family)
    trace = (
        model.trace("the cat sat", "it opened")
        if family in ("t5", "bart")
        else model.trace("the cat sat on a mat")
    )
    n_masked = n_biased = 0
    for kind in trace.kinds:
        layer, head = trace.n_layers(kind) - 1, trace.n_heads(0, kind) - 1
        scores = trace.scores(layer, head, kind)
        for (query, key), expected in np.ndenumerate(scores):
            score = score_of(trace, layer, head, query, key, kind=kind)
            n_biased += score.bias != 0
            if np.isfinite(expected):
                assert score.allowed
                assert score.value == pytest.approx(float(expected), rel=1e-5, abs=1e-5)
            else:
                n_masked += 1
                assert not score.allowed
                assert np.isfinite(score.value)
    assert (n_masked > 0) == (family != "bert")
    assert (n_biased > 0) == (family == "t5")


def test_of_a_token_that_is_not_there(door_trace) -> None:
    with pytest.raises(
        SelectionError, match="Query token 11 was asked for; this text has query tokens 0 to 10"
    ):
        score_of(door_trace, 3, 1, 11, 0)
    with pytest.raises(SelectionError, match="Key token -1"):
        score_of(door_trace, 3, 1, 0, -1)


def test_as_a_table() -> None:
    rows = list(csv.reader(io.StringIO(HAND.csv().decode("utf-8-sig"))))
    assert rows == [
        ["dimension", "query", "key", "query x key x 0.5", "sum so far"],
        ["0", "1.0", "4.0", "2.0", "2.0"],
        ["1", "-2.0", "1.0", "-1.0", "1.0"],
        ["2", "3.0", "0.5", "0.75", "1.75"],
        ["bias", "", "", "0.25", "2.0"],
    ]
