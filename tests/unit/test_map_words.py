"""What the pages of maps say of findings that are written down here."""

from types import SimpleNamespace

import numpy as np
import pytest

from attnviz.heads.score import Score
from attnviz.records import Head
from tests.small_records import BY_CHANCE, PERFECT
from ui.rooms.door_experiment import near
from ui.rooms.door_experiment.variation import in_words
from ui.rooms.explore.other_maps.of_pair import largest_terms
from ui.rooms.many_texts.joint_map import drawn_map as reliability
from ui.words.reliability import READ


def test_several_heads_may_give_a_pair_the_largest_weight():
    assert in_words(()) == "No head gives the pair any weight."
    assert in_words((Head(0, 1),)) == "Of all heads this one gives the pair the largest weight."
    assert in_words((Head(0, 1), Head(2, 0), Head(2, 1))) == (
        "Of all heads this one and 2 more give the pair the largest weight."
    )


@pytest.mark.parametrize(
    ("n_nearer", "words"),
    [
        (0, "no key is nearer on the map"),
        (1, "1 of the 11 keys is nearer on the map"),
        (4, "4 of the 11 keys are nearer on the map"),
    ],
)
def test_how_many_keys_are_nearer(n_nearer, words):
    assert near.in_words(near.Near(n_nearer=n_nearer, n_key=11)) == words


class TestTerms:
    def words(self, adds=(), subtracts=(), *, bias=0.0):
        key = np.zeros(32, dtype=np.float32)
        key[[*adds]], key[[*subtracts]] = 1.5, -0.25
        score = Score(query=np.ones_like(key), key=key, scale=1.0, bias=bias, allowed=True)
        return largest_terms(score)

    def test_the_dimensions_with_the_largest_are_named(self):
        assert self.words((3,), (17,)) == (
            "The sum of 32 products, times the scale, is the score. Dimension 3 adds the most, 1.50. "
            "Dimension 17 subtracts the most, 0.25."
        )

    def test_equal_ones_together(self):
        assert self.words((3, 5), (1, 2, 4, 9)).endswith(
            "Dimensions 3 and 5 each add the most, 1.50. Dimensions 1, 2 and 2 more each subtract the most, 0.25."
        )

    def test_there_may_be_none_and_a_bias(self):
        assert self.words(bias=0.5) == "The sum of 32 products, times the scale, and the bias are the score."


class TestJointMap:
    def made(self, **changes):
        given = {
            "points": np.zeros((12, 2)),
            "in_map": PERFECT,
            "chance": BY_CHANCE,
            "trustworthiness": 0.9,
            "n_compared": 12,
        }
        return SimpleNamespace(**given | changes)

    def test_headline(self):
        assert reliability.headline(
            SimpleNamespace(place="Here", map=self.made(points=np.zeros((6, 2))))
        ) == (
            "Here: the nearest key of the sentence has the largest weight for 100% of the 3 queries; with the key points "
            "permuted, at most one map in twenty exceeds 25%"
        )
        assert "of the 3 queries that see two keys or more; " in reliability.headline(
            SimpleNamespace(place="Here", map=self.made())
        )

    def test_without_two_keys_or_with_few_there_is_nothing_to_compare(self):
        few = SimpleNamespace(n_permutations=5, correlation=np.nan, nearest=np.nan)
        assert reliability.headline(SimpleNamespace(place="Here", map=self.made(chance=few))).endswith(
            "that see two keys or more"
        )
        none = SimpleNamespace(n_query=0, nearest_agreement=np.nan, order_correlation=np.nan)
        headline = reliability.headline(SimpleNamespace(place="Here", map=self.made(in_map=none, chance=few)))
        assert (
            headline == "Here: no query sees two keys, so there is no order of keys to compare with distances"
        )
        assert reliability.note(self.made(chance=few)).startswith(READ["unknown"])
        assert "permut" not in reliability.note(self.made(chance=few))

    def test_note(self):
        note = reliability.note(self.made(n_compared=10))
        assert note.startswith(READ["fair"])
        assert "exceeds 25% (p = 0.001)" in note and "below −0.50 (p = 0.001)" in note
        assert "Trustworthiness 0.90" in note and "(a sample of 10 points)" in note
        assert "sample" not in reliability.note(self.made())
