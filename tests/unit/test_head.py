"""A head's name: written, read and said in one place."""

import numpy as np
import pytest

from attnviz.records import AllHeads, Head, by_layer, head_table, heads_in, known, read_heads


@pytest.mark.parametrize(("written", "heads"), [("3.5", Head(3, 5)), ("0.0", Head(0, 0)), ("3", AllHeads(3))])
def test_is_read_as_it_is_written(written, heads):
    assert read_heads(written) == heads
    assert str(heads) == written


@pytest.mark.parametrize(
    "written", ["", ".", "3.", ".5", "3.5.1", "-1", "3,5", "3.5 ", "٣.٥", "12345.0", "L3 H5"]
)
def test_what_is_written_in_another_way_is_refused(written):
    with pytest.raises(ValueError, match=r"A head is written as 3\.5 and a layer as 3"):
        read_heads(written)


def test_is_said_in_words():
    assert (Head(3, 5).words, Head(3, 5).title) == ("layer 3, head 5", "Layer 3, head 5")
    assert (AllHeads(3).words, AllHeads(3).title) == ("layer 3, all heads", "Layer 3, all heads")


def test_is_short_where_there_is_little_room():
    assert (Head(3, 5).short, AllHeads(3).short) == ("L3 H5", "L3")


class TestTable:
    """A number of every head, where layers have 1, 3 and 2 heads."""

    LAYERS = ([0.5], [0.25, 1.0, 0.75], [0.0, 2.0])

    def test_is_as_wide_as_the_layer_with_the_most_heads(self):
        table = head_table(self.LAYERS)
        np.testing.assert_array_equal(table, [[0.5, np.nan, np.nan], [0.25, 1.0, 0.75], [0.0, 2.0, np.nan]])
        assert table.dtype == np.float32
        assert head_table([]).shape == (0, 0)

    def test_has_numbers_and_heads_layer_by_layer(self):
        table = head_table(self.LAYERS)
        assert known(table).tolist() == [0.5, 0.25, 1.0, 0.75, 0.0, 2.0]
        assert known(table[2]).tolist() == [0.0, 2.0]
        heads = [Head(0, 0), Head(1, 0), Head(1, 1), Head(1, 2), Head(2, 0), Head(2, 1)]
        assert heads_in(table) == heads
        assert by_layer(heads) == [heads[:1], heads[1:4], heads[4:]]


def test_indexes_what_every_head_has():
    assert np.arange(12).reshape(3, 4)[Head(1, 2)] == 6


def test_a_head_is_not_its_layer():
    assert Head(3, 5) != AllHeads(3)
    assert len({Head(3, 5), AllHeads(3), Head(3, 5)}) == 2
