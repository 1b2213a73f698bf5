"""The records of the parts: each can be drawn, linked, saved and explained from what it says alone."""

from collections import Counter

import pytest

from ui.part import Block, Picture, Row, Sheet, part_named, room_of
from ui.rooms import PAGES, ROOMS
from ui.words.glossary import TERMS

PARTS = [part for room in ROOMS for part in room.parts]


def twice(names):
    return [name for name, n in Counter(names).items() if n > 1]


def test_names_addresses_and_pictures_are_told_apart():
    assert twice(part.name for part in PARTS) == twice(part.address for part in PARTS) == []
    for part in PARTS:
        for sheet in part.sheets:
            assert twice(picture.key for picture in sheet.pictures) == [], part.name
            assert twice(picture.name for picture in sheet.pictures) == [], part.name


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_a_record_says_all_that_is_needed(part):
    assert part.question.endswith("?")
    assert part.sheets and part.sheets[-1].when(None), "the last sheet is shown where no other is"
    assert [term for term in part.terms if term not in TERMS] == []
    assert [picture.key for picture in part.pictures.values() if not picture.meaning] == []
    assert part_named(part.name) is part and part in room_of(part).parts
    assert (part in PAGES) == part.shows_text


def test_a_row_takes_pictures_blocks_and_functions():
    def draw(screen):
        return screen

    picture, of_two = Picture("one", "One", "bars", draw), (Picture("a", "A", "x"), Picture("b", "B", "y"))
    row = Row(picture, Block(draw, of_two), draw)
    assert [block.pictures for block in row.blocks] == [(picture,), of_two, ()]
    assert row.widths == (1, 1, 1)
    sheet = Sheet(rows=(row, draw))
    assert [picture.key for picture in sheet.pictures] == ["one", "a", "b"]
    assert [len(row.blocks) for row in sheet.in_rows()] == [3, 1]
    with pytest.raises(AssertionError, match="lonely"):
        Row(Picture("lonely", "Lonely", "nobody draws it"))
