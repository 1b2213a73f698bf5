"""What a field can hold follows from its type: read from a link, refused in words, or taken to the nearest there is."""

from dataclasses import dataclass
from typing import Annotated, Literal

import pytest

from ui.choice.fields import (
    LinkError,
    Number,
    Places,
    Positions,
    Switch,
    Text,
    Word,
    declarations,
    written,
)


@dataclass
class Choices:
    """One field of every sort."""

    said: str = ""
    on: bool = False
    way: Literal["up", "down"] = "up"
    place: int | None = None
    share: Annotated[float, Number(0, 1)] = 0.5
    steps: Annotated[int | None, Number(250, 5000)] = None
    tokens: tuple[int, ...] = ()
    heads: Annotated[tuple[str, ...], Places("heads")] = ()


HOLDS = declarations(Choices)


def test_a_field_holds_what_its_type_says():
    assert {
        "said": Text(),
        "on": Switch(),
        "way": Word(("up", "down")),
        "place": Number(),
        "share": Number(0, 1, whole=False),
        "steps": Number(250, 5000),
        "tokens": Positions(),
        "heads": Places("heads"),
    } == HOLDS


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("said", "a=b", "a=b"),
        ("on", "1", True),
        ("way", "down", "down"),
        ("place", "7", 7),
        ("share", "0.25", 0.25),
        ("tokens", "5,3,5", (3, 5)),
        ("heads", "3.5,2", ("3.5", "2")),
    ],
)
def test_what_fits_is_read_and_written_alike(name, text, value):
    assert HOLDS[name].read(name, text) == (value, "")
    assert HOLDS[name].read(name, written(value)) == (value, "")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("on", "yes", "“yes”; it can be 0 or 1"),
        ("way", "left", "“left”; it can be up or down"),
        ("place", "2.5", "“2.5”, which is no number"),
        ("place", "nan", "“nan”, which is no number"),
        ("tokens", "3,x", "“3,x”; it can be positions such as 3,5"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(name, text, said):
    with pytest.raises(LinkError, match=f"The link asks for {name} {said}"):
        HOLDS[name].read(name, text)


def test_a_number_out_of_range_becomes_the_nearest():
    assert HOLDS["steps"].read("steps", "9000") == (
        5000,
        "The link asks for steps 9000; 5000 is the nearest there is.",
    )
    assert HOLDS["place"].read("place", "-1")[0] == 0
    assert HOLDS["share"].read("share", "1e300")[0] == 1.0


def test_the_label_of_an_option_that_is_gone_is_no_value():
    assert not HOLDS["way"].can_hold("Up")
    assert not HOLDS["place"].can_hold("7")
    assert not HOLDS["tokens"].can_hold(["7"])
    assert HOLDS["tokens"].can_hold([7])
