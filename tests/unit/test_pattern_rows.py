"""Some rows of a matrix: the same numbers as in the whole, whatever a family does to its scores."""

import csv
import io

import numpy as np
import pytest

import attnviz
from attnviz.errors import SelectionError
from attnviz.model.trace import Trace

TEXT = "the cat sat on a mat"
ROWS = slice(2, 5)


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "t5", "gemma2", "mpnet"])
@pytest.mark.parametrize("head", [1, None])
@pytest.mark.parametrize("measure", ["weights", "norms", "rollout"])
def test_are_those_of_the_whole(tiny_model, family, head, measure):
    trace = tiny_model(family).trace(*[TEXT] * (1 + (family == "t5")))
    for kind in trace.kinds:
        if measure in trace.measures(kind):
            whole, some = (
                trace.pattern(1, head, kind, measure=measure, rows=rows) for rows in (slice(None), ROWS)
            )
            np.testing.assert_allclose(some.weights, whole.weights[ROWS], atol=1e-6)
            np.testing.assert_array_equal(some.allowed, whole.allowed[ROWS])
            assert some.queries.labels == whole.queries.labels[ROWS] and some.keys is whole.keys
            assert (some.scores is None) == (whole.scores is None)
            if whole.scores is not None:
                np.testing.assert_allclose(some.scores, whole.scores[ROWS], atol=1e-5)


def test_of_weights_that_were_given():
    weights = np.tril(np.ones((5, 5))) / np.arange(1, 6)[:, None]
    trace = Trace.from_arrays(list("abcde"), weights=weights)
    np.testing.assert_allclose(trace.pattern(0, 0, rows=slice(2, 4)).weights, weights[2:4], atol=1e-7)


def test_show_themselves(door_trace):
    some = door_trace.pattern(3, 1, rows=slice(7, 9))
    written = list(csv.reader(io.StringIO(some.csv().decode("utf-8-sig"))))
    assert [row[0] for row in written] == ["query \\ key", "7 it", "8 opened"]
    assert float(written[1][1 + 5]) == pytest.approx(0.475, abs=5e-4)
    assert some.frame().shape == (2, 11)
    assert np.shape(some.figure().data[0].z) == (2, 11)
    assert attnviz.compare(some, door_trace.pattern(3, 2, rows=slice(7, 9))).difference.shape == (2, 11)


@pytest.mark.parametrize("rows", [slice(11, 20), slice(4, 4), slice(0, 8, 2)])
def test_that_do_not_follow_each_other_are_refused(door_trace, rows):
    with pytest.raises(SelectionError, match=r"rows 0 to 10. Select rows that follow each other"):
        door_trace.pattern(3, 1, rows=rows)
