"""What the pages Cost, Scaling and Step by step say of their facts."""

import pytest

from attnviz.cost.measurement import Measurement, Series
from tests.app.screen import facts
from ui.rooms.how_it_works.cost.measured import LongestBoth, _lines, finding
from ui.rooms.how_it_works.scaling.in_numbers import norm_text, ratio
from ui.rooms.how_it_works.step_by_step.walk import Listed, listed_note
from ui.words.extremes import equals


def test_what_two_ways_take():
    whole = Measurement(method="whole", n_token=512, seconds=0.25, n_bytes=4_000_000)
    streaming = Measurement(method="streaming", n_token=512, seconds=0.5, n_bytes=2_000)
    sentence = finding(LongestBoth(n_token=512, whole=whole, streaming=streaming, difference=2e-7))
    stated = facts(sentence.replace("\u00a0ms", "").replace("\u00a0MB", "").replace("\u00a0kB", ""))
    assert stated.numbers == ("512", "250", "4", "500", "2", "2.0\u00a0×\u00a010⁻⁷")


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (0.5, 0.25, "2 times less"),
        (0.25, 0.5, "2 times more"),
        (0.5, 0.51, "about the same"),
        (1.0, 1.05, "1.05 times more"),
        (1.0, 999.4, "999 times more"),
        (1.0, 999.5, "1,000 times more"),
        (1.0, 1000.4, "1,000 times more"),
        (1.0, 1e6, "10⁶ times more"),
        (0.5, 0.0, "which leaves nothing to compare"),
        (1.0, 0.0005, "2,000 times less"),
        (0.001, 999.5, "999,500 times more"),
        (0.001, 1500.0, "1.5\u00a0×\u00a010⁶ times more"),
    ],
)
def test_a_second_norm_beside_a_first(first, second, words):
    assert ratio(first, second) == words


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "The 3 strongest keys; what is not listed, 1,200 keys, has 12.5% of the weight."),
        (
            {"are_strongest": False},
            "The 2 strongest keys and the selected one; what is not listed, 1,200 keys, has 12.5% of the weight.",
        ),
        ({"n_others": 0, "others_weight": 0.0}, ""),
    ],
    ids=str,
)
def test_which_keys_are_listed(changes, words):
    given = {"positions": (0, 4, 9), "n_others": 1200, "others_weight": 0.125, "are_strongest": True}
    assert listed_note(Listed(**given | changes)) == words


def test_others_that_are_equal():
    assert [equals(0), equals(1, "high"), equals(1200)] == [
        "",
        " (1 other is as high)",
        " (1,200 others are as large)",
    ]


def test_the_expected_time_goes_through_the_last_point():
    seconds = {64: 0.5, 128: 1.0, 256: 3.0}
    runs = tuple(
        Measurement(method="whole", n_token=n, seconds=duration, n_bytes=n) for n, duration in seconds.items()
    )
    [line] = _lines(Series(measurements=runs, stops=(), differences={}), None, "seconds")
    assert line.cost.tolist() == [3.0 / 16, 3.0 / 4, 3.0]


@pytest.mark.parametrize(
    ("norm", "words"),
    [
        (0.0, "0.000"),
        (0.005, "5.0\u00a0×\u00a010⁻³"),
        (0.0094, "9.4\u00a0×\u00a010⁻³"),
        (0.01, "0.010"),
        (0.0156, "0.016"),
        (1.5, "1.500"),
    ],
)
def test_a_norm_that_would_round_to_0_is_in_powers_of_ten(norm, words):
    assert norm_text(norm) == words
