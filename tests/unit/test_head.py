"""A head's name: written, read and said in one place."""

import numpy as np
import pytest

from attnviz.records import AllHeads, Head, read_heads


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


def test_indexes_what_every_head_has():
    assert np.arange(12).reshape(3, 4)[Head(1, 2)] == 6


def test_a_head_is_not_its_layer():
    assert Head(3, 5) != AllHeads(3)
    assert len({Head(3, 5), AllHeads(3), Head(3, 5)}) == 2
