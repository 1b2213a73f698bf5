"""Tables of every head: the statistics of several texts, and the changes between two traces, against loops."""

import io

import numpy as np
import pandas as pd
import pytest

import attnviz
from attnviz.records import Head

TEXTS = ["I was watching the door when it opened.", "The cat sat."]


@pytest.fixture(scope="module")
def traces(embedded):
    return embedded.trace(TEXTS)


def test_numbers_are_those_of_each_text(traces):
    table = attnviz.statistics(traces, names=["previous", "cls"])
    assert table.names == ("previous", "cls") and table.texts == tuple(TEXTS) and len(table.heads) == 72
    for text, trace in enumerate(traces):
        n_token = len(trace.tokens)
        for number, (layer, head) in enumerate(table.heads):
            weights = trace.weights(layer, head).astype(float)
            previous = np.mean([weights[query, query - 1] for query in range(1, n_token)])
            assert table.numbers[text, number, 0] == pytest.approx(previous, abs=1e-6)
            assert table.numbers[text, number, 1] == pytest.approx(weights[:, 0].mean(), abs=1e-6)
    mean = table.mean()
    np.testing.assert_allclose(mean.numbers[0], (table.numbers[0] + table.numbers[1]) / 2, atol=1e-6)
    assert mean.of("cls")[3, 1] == mean.numbers[0, mean.heads.index(Head(3, 1)), 1]


def test_a_mean_is_over_the_texts_that_have_the_number(embedded):
    """No token comes again in the second text."""
    twice = attnviz.statistics(embedded.trace(["The cat saw the cat.", TEXTS[1]]), names=["same_token"])
    assert twice.names == ("same_token",) and np.isfinite(twice.numbers[0]).all()
    assert np.isnan(twice.numbers[1]).all()
    np.testing.assert_array_equal(twice.mean().numbers[0], twice.numbers[0])


def test_the_table_is_a_line_for_each_text_and_head(traces):
    table = attnviz.statistics(traces)
    frame = pd.read_csv(io.BytesIO(table.csv()))
    assert len(frame) == 144 and list(frame.columns[:3]) == ["text", "layer", "head"]
    row = frame[(frame.text == TEXTS[1]) & (frame.layer == 4) & (frame["head"] == 7)].iloc[0]
    assert (
        np.float32(row.entropy)
        == table.numbers[1, table.heads.index(Head(4, 7)), table.names.index("entropy")]
    )


def test_of_weights_from_elsewhere_too(traces):
    given = attnviz.Trace.from_arrays(
        traces[0].tokens, weights=[traces[0].layer_weights(layer) for layer in range(6)]
    )
    ours, theirs = attnviz.statistics(traces[0]), attnviz.statistics(given)
    for name in theirs.names:
        np.testing.assert_allclose(ours.of(name), theirs.of(name), atol=1e-6)


def test_changes_are_the_mean_over_the_rows(traces, embedded):
    first, second = traces[0], embedded.trace(TEXTS[0].replace("door", "cat"))
    found = attnviz.compare_heads(first, second)
    for layer, head in ((0, 0), (3, 1), (5, 11)):
        apart = np.abs(first.weights(layer, head).astype(float) - second.weights(layer, head))
        assert found.changes[layer, head] == pytest.approx(apart.sum(axis=1).mean() / 2, abs=1e-6)
    best = found.ranked()[0]
    assert found.changes[best] == np.nanmax(found.changes)
    assert not attnviz.compare_heads(first, first).changes.any()


@pytest.mark.parametrize("other", ["The old cat sat on it.", "[MASK] mat", "."])
def test_changes_of_texts_of_other_lengths(traces, embedded, other, monkeypatch):
    """As whole matrices on common axes, one head after the other; a few rows at a time."""
    monkeypatch.setattr("attnviz.heads.tables._ROWS", 2)
    first, second = traces[1], embedded.trace(other)
    found = attnviz.compare_heads(first, second)
    for layer, head in ((0, 0), (3, 1), (5, 11)):
        of_rows = attnviz.compare(first.pattern(layer, head), second.pattern(layer, head)).row_change
        assert found.changes[layer, head] == pytest.approx(np.nanmean(of_rows), abs=1e-6)


def test_what_has_no_table(traces, smollm2):
    with pytest.raises(attnviz.ArgumentError, match="was given no trace"):
        attnviz.statistics([])
    with pytest.raises(attnviz.SelectionError, match="“nothing” was asked for; there are entropy"):
        attnviz.statistics(traces, names=["nothing"])
    other = smollm2.trace("It opened.")
    with pytest.raises(attnviz.ShapeError, match="270 heads"):
        attnviz.statistics([traces[0], other])
    with pytest.raises(attnviz.ShapeError, match="72 heads"):
        attnviz.compare_heads(traces[0], other)
    with pytest.raises(attnviz.SelectionError, match="No head has cls on these texts"):
        attnviz.statistics(other, names=["cls"])
    with pytest.raises(attnviz.SelectionError, match="texts 0 to 1"):
        attnviz.statistics(traces).of("entropy", 2)
