"""The sentence below the tokens, of rows that are written down here."""

import numpy as np
import pytest

from attnviz.records import OF_LAYER, Axis
from tests.app.screen import facts
from tests.hand_made import tokens
from tests.small_records import pattern
from ui.words.findings import finding
from ui.words.headline import headline_words

LABELS = ["[CLS]", "the", "door", "it", "[SEP]"]


def row_of(weights, **changes):
    """A matrix whose row of "it" is this."""
    axis = Axis.of(tokens(LABELS))
    return pattern([*np.full((3, 5), 0.2), weights, np.full(5, 0.2)], queries=axis, keys=axis, **changes)


@pytest.mark.parametrize(
    ("weights", "key", "words"),
    [
        ([0.484, 0.02, 0.475, 0.011, 0.01], 2, "“it” looks mostly at “[CLS]” (48.4%) and “door” (47.5%)."),
        ([0.02, 0.02, 0.9, 0.03, 0.03], 2, "“it” looks mostly at “door” (90.0%)."),
        ([0.02, 0.02, 0.9, 0.03, 0.03], 1, "“it” looks mostly at “door” (90.0%); “the” gets 2.0%."),
        ([0.2, 0.2, 0.2, 0.2, 0.2], 2, "“it” gives each of 5 keys 20.0% of its attention."),
        (
            [
                0.3,
                0.25,
                0.2,
                0.15,
                0.1,
            ],  # two hold 55%, the second 1.67 times what the others have on average
            2,
            "“it” spreads its attention over 5 keys; the largest share, 30.0%, goes to “[CLS]”; an equal share is 20.0%; “door” gets 20.0%.",
        ),
        (
            [0.3, 0.3, 0.16, 0.14, 0.1],  # 2.25 times
            0,
            "“it” looks mostly at “[CLS]” (30.0%) and “the” (30.0%).",
        ),
        (
            [0.3, 0.05, 0.3, 0.05, 0.3],
            1,
            "“it” looks mostly at “[CLS]” (30.0%), “door” (30.0%) and “[SEP]” (30.0%); “the” gets 5.0%.",
        ),
        (
            [0.24, 0.24, 0.2, 0.16, 0.16],
            2,
            "“it” spreads its attention over 5 keys; the largest shares, 24.0% each, go to “[CLS]” and “the”; an equal share is 20.0%; "
            "“door” gets 20.0%.",
        ),
    ],
)
def test_what_is_said_first(weights, key, words):
    assert headline_words(row_of(weights), 3, key) == words


def test_of_two_keys_one_stands_out_from_two_thirds_on():
    """Twice what the other has."""
    allowed = np.ones((5, 5), dtype=bool)
    allowed[3, 2:] = False
    for weight, words in (
        (0.67, "“it” looks mostly at “[CLS]” (67.0%)."),
        (
            0.66,
            "“it” spreads its attention over 2 keys; the largest share, 66.0%, goes to “[CLS]”; an equal share is 50.0%.",
        ),
    ):
        assert headline_words(row_of([weight, 1 - weight, 0, 0, 0], allowed=allowed), 3, 0) == words


def test_a_query_that_sees_one_key_looks_only_at_it():
    allowed = np.ones((5, 5), dtype=bool)
    allowed[3, 1:] = False
    assert (
        headline_words(row_of([1.0, 0, 0, 0, 0], allowed=allowed), 3, 0)
        == "“it” looks only at “[CLS]” (100.0%)."
    )


def test_a_query_that_sees_no_key():
    allowed = np.ones((5, 5), dtype=bool)
    allowed[3] = False
    words = headline_words(row_of([0.0] * 5, allowed=allowed), 3, 0)
    assert words == "“it” gives no key anything."


def test_hidden_keys_count():
    """More than half is hidden, so nothing is "mostly"."""
    whole = row_of([0.6, 0.02, 0.3, 0.07, 0.01])
    words = Axis.of(whole.queries.tokens).without_special()
    assert headline_words(whole.arranged(words, words), 3, 2) == (
        "of 3 shown keys, “it” gives the largest share, 30.0%, to “door”; an equal share is 13.0%; 61.0% of its attention goes to hidden keys."
    )
    assert headline_words(whole.arranged(words, words, renormalise=True), 3, 2) == (
        "among the shown keys, “it” looks mostly at “door” (76.9%); 61.0% of all its attention goes to hidden keys."
    )


def test_rows_and_columns_are_told_apart():
    whole = row_of([0.02, 0.02, 0.9, 0.03, 0.03])
    words = whole.queries.without_special()
    words_only = whole.arranged(words, whole.keys), whole.arranged(whole.queries, words)
    assert headline_words(words_only[0], 3, 2) == "“it” looks mostly at “door” (90.0%)."
    assert headline_words(words_only[1], 3, 2) == (
        "“it” looks mostly at “door” (90.0%); 5.0% of its attention goes to hidden keys."
    )
    assert (
        headline_words(words_only[0], 0, 2) == headline_words(words_only[1], 3, 0) == "“[CLS]” is not shown."
    )


def test_of_two_texts_a_query_is_named_by_one_and_keys_by_the_other():
    queries, keys = (Axis.of(tokens(labels)) for labels in (["le", "chat"], ["the", "cat", "it"]))
    cross = pattern([[0.9, 0.05, 0.05], [0.4, 0.3, 0.3]], queries=queries, keys=keys, kind="cross")
    assert headline_words(cross, 0, 1) == "“le” looks mostly at “the” (90.0%); “cat” gets 5.0%."
    assert headline_words(cross, 1, 2) == (
        "“chat” spreads its attention over 3 keys; the largest share, 40.0%, goes to “the”; an equal share is 33.3%; “it” gets 30.0%."
    )


def test_the_query_is_named_as_itself():
    """As in "looks mostly at “[CLS]” (81.2%) and at itself (17.2%)"; a small share is not the next that comes."""
    assert headline_words(row_of([0.812, 0.005, 0.005, 0.172, 0.006]), 3, 3) == (
        "“it” looks mostly at “[CLS]” (81.2%) and at itself (17.2%)."
    )
    assert headline_words(row_of([0.812, 0.13, 0.03, 0.01, 0.018]), 3, 3) == (
        "“it” looks mostly at “[CLS]” (81.2%); it gives itself 1.0%."
    )
    assert (
        headline_words(row_of([0.02, 0.02, 0.03, 0.9, 0.03]), 3, 3) == "“it” looks mostly at itself (90.0%)."
    )
    assert headline_words(row_of([0.2, 0.2, 0.19, 0.22, 0.19]), 3, 2) == (
        "“it” spreads its attention over 5 keys; the largest share, 22.0%, goes to “it” itself; an equal share is 20.0%; "
        "“door” gets 19.0%."
    )


def test_keys_that_are_written_alike_are_equal():
    assert headline_words(row_of([0.2404, 0.2396, 0.2, 0.16, 0.16]), 3, 1) == (
        "“it” spreads its attention over 5 keys; the largest shares, 24.0% each, go to “[CLS]” and “the”; an equal share is 20.0%."
    )
    assert headline_words(row_of([0.9997, 0.0001, 0.0001, 0.00005, 0.00005]), 3, 1) == (
        "“it” looks mostly at “[CLS]” (over 99.9%); “the” gets under 0.1%."
    )


@pytest.mark.parametrize(("weights", "is_only"), [([0, 0, 1, 0, 0], True), ([0.125, 0, 0.875, 0, 0], False)])
def test_a_query_looks_only_at_what_holds_all_of_its_attention(weights, is_only):
    """Of the keys "door" alone is shown: [CLS], which is hidden, has an eighth or nothing."""
    whole = row_of(weights)
    door = whole.keys.where(np.arange(5) == 2)
    words = headline_words(whole.arranged(whole.queries, door), 3, 2)
    assert ("only" in words) == is_only and "“door”" in words
    assert ("12.5%" in words) != is_only


@pytest.mark.parametrize("measure", ["norms", *OF_LAYER])
def test_of_another_measure_it_is_the_finding(measure):
    whole = row_of([0.02, 0.02, 0.9, 0.03, 0.03], measure=measure, head=None if measure in OF_LAYER else 0)
    assert headline_words(whole, 3, 1) == finding(whole, 3, 1)


def test_a_query_that_sees_one_key_gives_it_what_is_not_hidden():
    """A quarter: too little to look "mostly" at it, and nothing to spread over."""
    whole = row_of([0.75, 0, 0.25, 0, 0])
    allowed = np.ones((5, 5), dtype=bool)
    allowed[3] = [True, False, True, False, False]
    one = row_of([0.75, 0, 0.25, 0, 0], allowed=allowed)
    words = headline_words(one.arranged(one.queries, whole.keys.without_special()), 3, 2)
    assert facts(words).quoted == ("it", "door") and facts(words).numbers == ("25.0%", "75.0%")
    assert (
        "spreads" not in words and words.startswith("“it”") and words.index("25.0%") < words.index("“door”")
    )


def test_of_hidden_keys_nothing_is_claimed():
    """Nothing is given to the keys that are shown, unless all are."""
    whole = row_of([0.5, 0, 0, 0, 0.5])
    words = headline_words(whole.arranged(whole.queries, whole.keys.without_special()), 3, 2)
    assert "no shown key" in words and "100" in words
    allowed = np.ones((5, 5), dtype=bool)
    allowed[3] = False
    nothing = headline_words(row_of([0, 0, 0, 0, 0], allowed=allowed), 3, 2)
    assert "shown" not in nothing and "spreads" not in nothing
