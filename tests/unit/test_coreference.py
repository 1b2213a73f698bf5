"""The accuracies of docs/corpus.md: what is read of the data, when a head is right, and that the best head is measured on data that it
was not chosen on."""

from types import SimpleNamespace

import numpy as np
import pytest

from attnviz.records import Head
from benchmarks import coreference
from benchmarks.coreference import Mentions, Task, gap, is_development, is_right, result, winogender

GAP = """ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL
1\tAnn met Bo "again; she left.\tshe\t19\tAnn\t0\tTRUE\tBo\t8\tFALSE\thttp://a
2\tAnn met Bo; he left Ann.\the\t12\tAnn\t20\tFALSE\tBo\t8\tTRUE\thttp://b
3\tAnn met Bo; it rained.\tit\t12\tAnn\t0\tFALSE\tBo\t8\tFALSE\thttp://c
"""
WINOGENDER = """sentid\tsentence
cook.guest.0.male.txt\tThe cook told the guest that he was late.
cook.someone.1.female.txt\tThe cook told someone that she was late.
"""


def test_what_is_read_of_the_data(tmp_path):
    (tmp_path / "gap.tsv").write_text(GAP)
    (tmp_path / "winogender.tsv").write_text(WINOGENDER)
    first, second = gap(tmp_path / "gap.tsv")  # the third refers to neither
    assert [first.text[slice(*span)] for span in (first.pronoun, first.right, first.wrong)] == [
        "she",
        "Ann",
        "Bo",
    ]
    assert [second.text[slice(*span)] for span in (second.pronoun, second.right, second.wrong)] == [
        "he",
        "Bo",
        "Ann",
    ]
    assert (first.are_before, second.are_before) == (True, False)
    words = [
        [example.text[slice(*span)] for span in (example.pronoun, example.right, example.wrong)]
        for example in winogender(tmp_path / "winogender.tsv")
    ]
    assert words == [["he", "cook", "guest"], ["she", "someone", "cook"]]


def test_a_head_is_right_where_it_links_the_pronoun_most_with_what_it_refers_to(embedded):
    """Of two heads, with weights written by hand; "##s" pieces are summed as keys and averaged as queries."""
    text = "Ann met Bobbington; she left."
    mentions = Mentions(text=text, group="", pronoun=(20, 23), right=(0, 3), wrong=(8, 18))
    tokens = embedded.tokenize(text)
    pieces = list(tokens.labels)
    she, ann = pieces.index("she"), pieces.index("ann")
    bobbington = list(range(pieces.index("met") + 1, pieces.index(";")))
    assert len(bobbington) > 1
    weights = np.zeros((2, len(tokens), len(tokens)), dtype=np.float32)
    weights[0, she, ann], weights[0, she, bobbington] = 0.4, 0.25  # summed more than 0.4
    weights[1, she, ann] = 0.1
    weights[0, ann, she], weights[0, bobbington[0], she] = (
        0.3,
        0.5,
    )  # averaged less than 0.3 over two pieces or more
    assert is_right(weights, tokens, mentions).tolist() == [
        [False, 0.5 / len(bobbington) < 0.3],
        [True, False],
    ]


def test_the_best_head_of_one_half_is_measured_on_the_other():
    """A head that is right by chance alone is the best of many on the first half, and no better than chance on the second."""
    groups = tuple(f"text {number}" for number in range(400))
    chosen_on = np.array([is_development(group) for group in groups])
    assert 150 < chosen_on.sum() < 250
    drawn = np.random.default_rng(0).random((400, 60, 2)) < 0.5
    heads = drawn.astype(float)
    rule = np.where(np.arange(400) % 10 < 7, 1.0, 0.0)
    task = Task(
        name="chance",
        groups=groups,
        n=np.ones(400),
        heads=heads,
        rules={"one": rule, "none": 0 * rule},
        chance=np.full(400, 0.5),
    )
    model = SimpleNamespace(
        name="m", probe=lambda: SimpleNamespace(heads=lambda: [Head(0, number) for number in range(60)])
    )
    measurement = result(task, model)
    of_first = heads[chosen_on].mean(axis=0)
    assert measurement.chosen == of_first.max() > 0.55
    at, way = np.unravel_index(of_first.argmax(), of_first.shape)
    assert (measurement.head, measurement.direction) == (Head(0, at), ("attends to", "attended by")[way])
    assert measurement.of_head.share == pytest.approx(heads[~chosen_on, at, way].mean())
    assert measurement.of_head.low < 0.5 < measurement.of_head.high
    assert (measurement.rule, measurement.n) == ("one", int((~chosen_on).sum()))
    assert measurement.of_rule.share == pytest.approx(rule[~chosen_on].mean())
    assert measurement.beyond.share == pytest.approx(measurement.of_head.share - measurement.of_rule.share)
    assert measurement.beyond.high < 0
    standard_error = np.sqrt(0.25 / measurement.n)
    assert measurement.of_head.high - measurement.of_head.low == pytest.approx(
        2 * 1.96 * standard_error, rel=0.25
    )


def test_each_group_counts_as_often_as_poisson_draws_of_its_own_say():
    """In the first row once; of 3,000 groups no two have the same draws."""
    groups = [f"text {number}" for number in range(3000)]
    times = coreference.draws(groups)
    assert times.shape == (201, 3000) and (times[0] == 1).all()
    assert times[1:].mean() == pytest.approx(1, abs=0.005)
    assert times[1:].var() == pytest.approx(1, abs=0.01)
    assert len(np.unique(times, axis=1).T) == 3000
    np.testing.assert_array_equal(times[:, 5], coreference.draws(groups[5:6])[:, 0])


def test_offsets_are_those_of_the_labels():
    labels = SimpleNamespace(heads=np.array([1, -1, 1, 2]), relations=("det", "root", "det", "obj"))
    assert coreference._offsets(labels, "det") == [1, -1]
