"""The tokens of a phrase that is looked for: from its first to its last, and never backwards."""

import pytest

from attnviz.records import Axis
from tests.hand_made import tokens
from ui.rooms.all_heads.find_a_head import span_of


@pytest.mark.parametrize(
    ("first", "last", "span"), [(1, None, (1, 2)), (1, 3, (1, 4)), (3, 1, (3, 4)), (0, 0, (0, 1))]
)
def test_a_span(first, last, span):
    axis = Axis.of(tokens(["[CLS]", "the", "old", "door"]))
    assert span_of(axis, first, last) == span
