"""The tables of docs/faithfulness.md: how a method is compared with random orders, the intervals, and that no method is left out."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom

from attnviz.corpus.sums import FEWEST_TEXTS
from attnviz.effects.attribution_methods import METHODS
from attnviz.effects.deletion import ChanceBand, Deletion, DeletionCurve, RandomOrders
from benchmarks import faithfulness
from benchmarks.faithfulness import (
    DOCS,
    END,
    START,
    TITLES,
    Row,
    advantage,
    behind,
    mean_of,
    rows,
    table,
    texts,
)

CURVES = ((10, 8, 4, 2, 0), (10, 9, 6, 3, 0), (10, 7, 2, 1, 0))
"""Outcomes without 0 to 4 tokens in three random orders; four bins have one token, the fifth two."""
BINS = (1, 1, 1, 1, 2)
UNDEFINED = {
    "similarity": {"alti_logit"},
    "state": {"alti_logit", "gradient_times_input"},
    "prompts": {"decompx"},
    "sentences": {"decompx"},
}


def row(method: str, text: str, removed: float, **other: object) -> Row:
    found = Row(
        setting="state",
        text=text,
        method=method,
        comprehensiveness=removed / 10,
        removed=removed,
        kept=-removed,
        passes=removed > 1,
        converged=True,
    )
    return replace(found, **other)


def judged(direction: int = 1, n_as_good: int = 0, times: int = 1) -> Row:
    """One method with a comprehensiveness of 5.2 and a sufficiency of 6.4 beside the random orders."""
    removed = np.array(CURVES * times, dtype=np.float32) * direction
    chance = RandomOrders(
        removal="token_replaced",
        baseline=None,
        seed=0,
        bins=np.array(BINS),
        counts=np.arange(5),
        orders=np.zeros((len(removed), 4), dtype=np.int64),
        removed=removed,
    )
    curve = DeletionCurve(
        method="rollout",
        order=np.arange(4),
        removed=removed[0],
        kept=removed[0],
        comprehensiveness=5.2,
        sufficiency=6.4,
        n_as_good=n_as_good,
    )
    band = ChanceBand(
        n_orders=len(removed),
        seed=0,
        counts=np.arange(5),
        removed=removed[:2],
        kept=removed[:2],
        comprehensiveness=(0.0, 1.0),
        sufficiency=(0.0, 1.0),
    )
    deletion = Deletion(
        removal="token_replaced",
        base=10.0 * direction,
        end=0.0,
        counts=np.arange(5),
        bins=np.array(BINS),
        curves=(curve,),
        chance=band,
    )
    (found,) = rows("state", deletion, chance, SimpleNamespace(tokens=SimpleNamespace(text="a text")))
    return found


@pytest.mark.parametrize("direction", [1, -1])
def test_a_method_is_measured_in_standard_deviations_of_random_orders(direction):
    """Comprehensiveness by chance is (4 · 2 + 6) / 5 = 2.8, (4 · 1 + 4) / 5 = 1.6 and (4 · 3 + 8) / 5 = 4: 2.8 ± 1.2. Sufficiency is
    (4 · 8 + 6) / 5 = 7.6, (4 · 7 + 4) / 5 = 6.4 and (4 · 9 + 8) / 5 = 8.8: 7.6 ± 1.2."""
    found = judged(direction)
    assert found.removed == pytest.approx((5.2 - 2.8) / 1.2, abs=1e-6)
    assert found.kept == pytest.approx((7.6 - 6.4) / 1.2, abs=1e-6)
    assert found.comprehensiveness == 5.2 and found.text == "a text" and found.method == "rollout"


def test_random_orders_themselves_are_0_on_average():
    by_chance = np.array([2.8, 1.6, 4.0])
    assert [advantage(area, by_chance) for area in by_chance] == pytest.approx([0, -1, 1])


def test_a_method_is_better_where_at_most_one_of_39_orders_is_as_good():
    """P = (1 + 1) / 40 = 0.05, and 3 / 40 is more."""
    assert [judged(n_as_good=n, times=13).passes for n in (0, 1, 2)] == [True, True, False]


def test_an_interval_is_that_of_drawing_texts():
    """Of 40 texts half are 1: how many of 40 drawn are is a binomial number. A constant has no width."""
    found = mean_of([0.0, 1.0] * 20)
    assert found.mean == 0.5
    assert (found.low, found.high) == pytest.approx(binom.ppf([0.025, 0.975], 40, 0.5) / 40)
    same = mean_of([3.0] * 20)
    assert (same.mean, same.low, same.high) == (3, 3, 3)
    assert found == mean_of([0.0, 1.0] * 20)


def test_few_texts_have_a_mean_and_no_interval():
    few = mean_of([1.0, 2.0] * (FEWEST_TEXTS // 2 - 1))
    assert few.mean == 1.5 and np.isnan([few.low, few.high]).all()
    assert few.written("{:.1f}".format) == "1.5"
    assert mean_of([1.0] * FEWEST_TEXTS).written("{:.1f}".format) == "1.0 (1.0 to 1.0)"


def test_a_difference_is_over_the_texts_that_both_have():
    first = {
        text: row("shapley", text, removed) for text, removed in zip("abc", (3.0, 4.0, 9.0), strict=True)
    }
    other = {
        text: row("rollout", text, removed) for text, removed in zip("abd", (1.0, 3.0, 7.0), strict=True)
    }
    assert behind(other, first).mean == pytest.approx(((3 - 1) + (4 - 3)) / 2)


def cells(lines: list[str]) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines if not line.startswith("|--")
    ]


def test_a_table_has_the_best_first_then_those_of_fewer_texts_and_every_other_method():
    of_methods = {"rollout": (1.0, 2.0), "alti": (3.0, 5.0), "shapley": (9.0,)}
    measured = [
        row(method, text, removed)
        for method, numbers in of_methods.items()
        for text, removed in zip("ab", numbers, strict=False)
    ]
    _, *found = cells(list(table(measured)))
    assert found[:3] == [
        ["ALTI", "2", "4.00", "", "−4.00", "100%", "0.400"],
        ["Rollout", "2", "1.50", "2.50", "−1.50", "50%", "0.150"],
        ["Shapley values", "1", "9.00", "−6.00", "−9.00", "100%", "0.900"],
    ]
    rest = [method.title for name, method in METHODS.items() if name not in of_methods]
    assert found[3:] == [[title, "0", "", "", "", "", ""] for title in rest]


def test_integrated_gradients_say_in_how_many_texts_they_did_not_converge():
    of_path = [row("integrated_gradients", text, 1.0, converged=text != "b") for text in "abc"]
    other = row("alti_logit", "a", 1.0, converged=False)
    assert faithfulness.not_converged([*of_path, other]).endswith("did not converge in 1 of 3 texts.")


def test_a_run_goes_on_where_it_was(tmp_path, monkeypatch):
    asked: list[tuple[str, str]] = []

    def cases(setting, n_sentence):
        model = SimpleNamespace(name=faithfulness.SMOLLM2)
        for text in "abc"[:n_sentence]:
            yield model, SimpleNamespace(tokens=SimpleNamespace(text=text)), None

    def measured(setting, model, trace, outcome, methods):
        asked.extend((trace.tokens.text, method) for method in methods)
        return [
            row(method, trace.tokens.text, 0.0123456, setting=setting, converged=False) for method in methods
        ]

    monkeypatch.setattr(faithfulness, "RESULTS", tmp_path / "faithfulness.csv")
    monkeypatch.setattr(faithfulness, "TITLES", {"sentences": "of sentences"})
    monkeypatch.setattr(faithfulness, "cases", cases)
    monkeypatch.setattr(faithfulness, "measured", measured)
    monkeypatch.setattr(faithfulness, "available_methods", lambda *_: ("shapley", "alti"))
    faithfulness.measure(2)
    assert asked == [("a", "alti"), ("b", "alti"), ("a", "shapley"), ("b", "shapley")]
    assert [
        (found.text, found.method, found.removed, found.passes, found.converged)
        for found in faithfulness.read()
    ] == [(text, method, 0.0123456, False, False) for text, method in asked]
    asked.clear()
    faithfulness.measure(3)
    assert asked == [("c", "alti"), ("c", "shapley")]


def test_sentences_are_long_enough_and_followed_by_the_next_of_the_list():
    lines = faithfulness.bundled().splitlines()
    found = texts()
    assert len(found) == len({text for text, _ in found}) > 150
    for text, following in found:
        assert len(text.split()) >= 6 and lines[lines.index(text) + 1] == following
    assert [lines.index(text) for text, _ in found[:9]] != sorted(lines.index(text) for text, _ in found[:9])


def test_docs_have_a_row_for_every_method_with_its_texts_where_it_is_defined():
    """And its numbers are those that were measured."""
    section = DOCS.read_text(encoding="utf-8").split(START)[1].split(END)[0]
    assert section.strip("\n").splitlines() == list(faithfulness.lines(faithfulness.read()))
    titled = dict(re.findall(r"^### (.*)\n((?:.|\n)*?)(?=^### |\Z)", section, re.MULTILINE))
    assert list(titled) == list(TITLES.values())
    for setting, title in TITLES.items():
        _, *found = cells([line for line in titled[title].splitlines() if line.startswith("|")])
        n_text = {name: int(n) for name, n, *_ in found}
        assert set(n_text) == {method.title for method in METHODS.values()} and len(found) == len(METHODS)
        undefined = {METHODS[method].title for method in UNDEFINED[setting]}
        assert {name for name, n in n_text.items() if not n} == undefined
        assert re.search(r"did not converge in \d+ of \d+ text", titled[title])
