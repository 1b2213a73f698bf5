"""The numbers of a batch of texts against the statistics of one text's trace at a time, and words that a head finds, by hand."""

from itertools import product

import numpy as np
import pytest
import torch

from attnviz.corpus.columns import COLUMNS, DIRECTIONS, MEASURED, NORMS
from attnviz.corpus.labels import Labels
from attnviz.corpus.measuring import diagonal_sums, measured
from attnviz.corpus.pipeline import verified
from attnviz.errors import ModelFailedError
from attnviz.heads import statistics_on
from attnviz.records import Axis
from tests import tiny

TEXTS = [
    "it opened .",
    "the cat sat on the mat , the cat",
    "door",
    "I was watching the door it opened .",
]
EDGES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16, 32, 64, 128, 256)
"""Largest distances of the bins, as docs/corpus.md has them."""
N_POSITION = 32
"""Positions of keys, as docs/corpus.md has them."""
TOLERANCE = 5e-5  # float32, sums of some hundred products in another order


def numbers_of(measurement, name):
    return measurement.numbers[:, COLUMNS.index(name)]


@pytest.mark.parametrize("name", tiny.TEXT_FAMILIES)
def test_statistics_are_those_of_a_trace(name, tiny_model):
    model = tiny_model(name)
    read = [model.read(text) for text in TEXTS]
    for given, measurement in zip(read, measured(model, read, COLUMNS), strict=True):
        trace, row = model.trace_tokens(*given), 0
        for kind in trace.kinds:
            heads, axes = (
                trace.heads(kind),
                (Axis.of(trace.query_tokens(kind)), Axis.of(trace.key_tokens(kind))),
            )
            rows = slice(row, row + len(heads))
            row = rows.stop
            for measure, end in (("weights", ""), ("norms", NORMS)):
                if measure not in trace.measures(kind):
                    assert np.isnan(numbers_of(measurement, "entropy" + end)[rows]).all()
                    continue
                tables = statistics_on(trace, kind, *axes, measure=measure, names=MEASURED)
                for statistic in MEASURED:
                    ours = numbers_of(measurement, statistic + end)[rows]
                    if statistic not in tables:
                        assert np.isnan(ours).all(), (kind, statistic)
                        continue
                    expected = np.array([tables[statistic][head] for head in heads])
                    np.testing.assert_allclose(
                        ours,
                        expected,
                        atol=TOLERANCE * max(1, np.nanmax(expected, initial=0)),
                        err_msg=statistic,
                    )
        assert row == len(measurement.numbers)


@pytest.mark.parametrize(("row", "shift"), [(0, 0.5), (-1, -0.25)])
def test_the_largest_difference_from_a_trace_is_recorded(row, shift, tiny_model):
    """A number is shifted, of the first head of an encoder or of the last of its decoder's cross-attention."""
    model = tiny_model("t5")
    read = [model.read(TEXTS[0])]
    [text] = measured(model, read, COLUMNS)
    text.numbers[row, COLUMNS.index("entropy")] += shift
    [checks] = verified(model, read, [text])
    assert (checks.n_text, checks.n_passed) == (1, 1)
    assert checks.worst_difference == pytest.approx(abs(shift), abs=TOLERANCE)


def test_a_batch_of_which_one_text_becomes_nan_is_refused(tiny_model, monkeypatch):
    """An infinite embedding of a token that only the second text has."""
    model = tiny_model("bert")
    read = [model.read("it opened ."), model.read("the cat")]
    [cat] = {*read[1][0].ids.tolist()} - {*read[0][0].ids.tolist()} - {*model.read("the")[0].ids.tolist()}
    measured(model, read, COLUMNS)
    weight = model.network.get_input_embeddings().weight
    monkeypatch.setattr(weight, "data", weight.data.clone())
    weight.data[cat] = torch.nan
    with pytest.raises(ModelFailedError, match="hold NaN or infinity for a text"):
        measured(model, read, COLUMNS)


@pytest.mark.parametrize("name", ["bert", "gpt2", "laguna", "bart"])
def test_where_the_weight_is_and_what_a_head_adds(name, tiny_model):
    """Summed cell by cell from the traces."""
    model = tiny_model(name)
    read = [model.read(text) for text in TEXTS]
    for given, measurement in zip(read, measured(model, read, COLUMNS), strict=True):
        trace, row = model.trace_tokens(*given), 0
        for kind in trace.kinds:
            for head in trace.heads(kind):
                weights, own = trace.weights(*head, kind), ~trace.query_tokens(kind).is_added
                n_query, n_key = weights.shape
                allowed = np.isfinite(trace.scores(*head, kind))
                for position in range(min(n_key, N_POSITION)):
                    expected = weights[:, position].sum() / allowed[:, position].sum()
                    assert numbers_of(measurement, f"position_{position}")[row] == pytest.approx(
                        expected, abs=TOLERANCE
                    )
                if kind != "cross":
                    shares = np.zeros(2 * len(EDGES) + 1)
                    for query, key in product(range(n_query), range(n_key)):
                        apart = key - query
                        bin_ = next((at for at, edge in enumerate(EDGES) if abs(apart) <= edge), len(EDGES))
                        shares[len(EDGES) + np.sign(apart) * bin_] += weights[query, key] / n_query
                    first = COLUMNS.index(f"distance_{-len(EDGES)}")
                    np.testing.assert_allclose(
                        measurement.numbers[row, first : first + len(shares)], shares, atol=TOLERANCE
                    )
                row += 1
                if not own.any():  # of a decoder that has only its start token
                    assert np.isnan(numbers_of(measurement, "activation")[row - 1])
                    continue
                output, w_o = trace.output(*head, kind), trace.attention(head.layer, kind).output_weight
                lengths = np.linalg.norm(output if w_o is None else output @ w_o[head.head], axis=-1)
                assert numbers_of(measurement, "activation")[row - 1] == pytest.approx(
                    lengths[own].max(), rel=1e-4
                )
                query = int(numbers_of(measurement, "activation_query")[row - 1])
                assert own[query] and lengths[query] == pytest.approx(lengths[own].max(), rel=1e-4)


def labels_of(text, heads, relations):
    spans, at = [], 0
    for word in text.split(" "):
        spans.append((at, at + len(word)))
        at += len(word) + 1
    return Labels(
        spans=np.array(spans), heads=np.array(heads), relations=relations, parts=("X",) * len(heads)
    )


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_words_that_a_head_finds(name, tiny_model):
    """Against words put together from a trace's tokens, one word at a time."""
    model = tiny_model(name)
    labels = [
        labels_of("it opened .", [1, -1, 1], ("nsubj", "root", "punct")),
        None,
        labels_of(
            "the cat sat on the mat", [1, 2, -1, 5, 5, 2], ("det", "nsubj", "root", "case", "det", "obl")
        ),
        labels_of(
            "sat the cat", [-1, 2, 0], ("root", "det", "nsubj")
        ),  # in a decoder no later word sees the last
    ]
    texts = ["it opened .", "door", "the cat sat on the mat", "sat the cat"]
    read = [model.read(text) for text in texts]
    for given, known, measurement in zip(read, labels, measured(model, read, COLUMNS, labels), strict=True):
        if known is None:
            assert measurement.n_words == {} and measurement.n_found == {}
            continue
        trace = model.trace_tokens(*given)
        words = [np.flatnonzero(known.word_of(trace.tokens) == word) for word in range(len(known.heads))]
        assert all(len(tokens) for tokens in words)
        expected = {}
        for row, head in enumerate(trace.heads()):
            weights = trace.weights(*head)
            cells = np.array([[weights[a][:, b].sum(axis=1).mean() for b in words] for a in words])
            np.fill_diagonal(cells, 0)
            for word, (other, name_) in enumerate(zip(known.heads, known.relations, strict=True)):
                if other < 0:
                    continue
                table = expected.setdefault(name_, np.zeros((len(trace.heads()), len(DIRECTIONS)), dtype=int))
                attends, attended = (DIRECTIONS.index(way) for way in ("attends to", "attended by"))
                table[row, attends] += cells[word].max() > 0 and cells[word].argmax() == other
                table[row, attended] += cells[:, word].max() > 0 and cells[:, word].argmax() == other
        assert measurement.n_words == {name_: known.relations.count(name_) for name_ in expected}
        for name_, table in expected.items():
            np.testing.assert_array_equal(measurement.n_found[name_], table, err_msg=name_)


@pytest.mark.parametrize(("n_query", "n_key"), [(1, 1), (1, 4), (4, 1), (5, 5), (3, 7), (7, 3)])
def test_sums_over_diagonals(n_query, n_key):
    cells = torch.arange(2.0 * n_query * n_key).reshape(2, n_query, n_key)
    sums = diagonal_sums(cells).numpy()
    expected = [
        [np.trace(matrix, offset=step) for step in range(1 - n_query, n_key)] for matrix in cells.numpy()
    ]
    np.testing.assert_array_equal(sums, expected)
