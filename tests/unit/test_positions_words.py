"""What shuffling the words changes, in words."""

import pytest

from ui.rooms.how_it_works.positions import OrderMatters, meaning, says_bag_of_words


@pytest.mark.parametrize(
    ("own", "with_positions", "without", "is_causal", "words"),
    [
        (True, False, False, False, "This order is the text's own"),
        (True, False, False, True, "This order is the text's own"),
        (False, True, False, False, "The positions alone make the difference on the left."),
        (False, True, True, True, "its causal mask tells before from after"),
        (False, True, True, False, "which has no causal mask: it knows positions in another way too."),
    ],
)
def test_what_the_pictures_mean(own, with_positions, without, is_causal, words):
    facts = OrderMatters(is_own_order=own, with_positions=with_positions, without_positions=without)
    assert words in meaning(facts, is_causal=is_causal)
    assert says_bag_of_words(facts) == (not own and not without)


def test_a_difference_is_explained_only_where_there_is_one():
    facts = OrderMatters(is_own_order=False, with_positions=False, without_positions=False)
    assert meaning(facts, is_causal=False).endswith("a sentence is a bag of words.")
