"""What the export of a page offers: the pictures that were drawn, and the numbers of what is there."""

from plotly.graph_objects import Figure

from ui.part import Picture, Sheet
from ui.shell.export.take import Taken

ONE, OTHER = Picture("one", "One", "bars"), Picture("other", "Other", "lines")


def test_all_pictures_of_a_block_that_says_nothing():
    taken = Taken()
    taken.add((ONE, OTHER), None)
    assert (taken.pictures, taken.figures) == ([ONE, OTHER], {})


def test_only_those_that_a_block_has_drawn():
    taken, figure = Taken(), Figure()
    taken.add((ONE, OTHER), {"other": figure})
    taken.add((ONE,), ())
    assert (taken.pictures, taken.figures) == ([OTHER], {"Other": figure})


def test_numbers_come_from_the_screen_once_it_is_there():
    taken, sheet = Taken(), Sheet(csv=lambda screen: screen.encode())
    assert taken.of("csv") is None
    taken.tell(sheet, "layer,head")
    assert taken.of("csv")() == b"layer,head"
    assert taken.of("python") is None
