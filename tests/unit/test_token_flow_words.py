"""What is said of the lines that are not drawn."""

import numpy as np

from ui.rooms.explore.several_heads import hidden_lines


def test_lines_that_wait_are_counted():
    assert hidden_lines(np.arange(1234) < 4) == (
        "1,230 of these lines, of other queries and keys, are hidden: hover over a token or tap it for all of its lines, or raise "
        "“Lines at once” under More."
    )


def test_where_all_are_drawn_nothing_is_said():
    assert hidden_lines(np.ones(3, dtype=bool)) == ""
