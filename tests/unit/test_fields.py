"""What a field can hold follows from its type: read from a link, refused in words, or moved to the nearest value."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import pytest

from attnviz.records import AllHeads, Head
from ui.choice import selection
from ui.choice.fields import (
    Branch,
    Branches,
    Cell,
    Cells,
    Heads,
    LinkError,
    Number,
    OneHead,
    Positions,
    Switch,
    Text,
    Word,
    declarations,
    written,
)


@dataclass(frozen=True)
class Colours:
    """A part of the choices."""

    PREFIX: ClassVar = "colour_"

    hue: Annotated[int, Number(0, 360, step=5, title="Hue", help="Turns the colours.")] = 180


@dataclass
class Choices:
    """One field of every sort."""

    sentence: Annotated[str, Text(title="Sentence")] = ""
    on: bool = False
    way: Annotated[Literal["up", "down"], Word(names={"up": "Upwards", "down": "Downwards"})] = "up"
    place: int | None = None
    share: Annotated[float, Number(0, 1)] = 0.5
    steps: Annotated[int | None, Number(250, 5000)] = None
    tokens: tuple[int, ...] = ()
    heads: tuple[Head | AllHeads, ...] = ()
    like: Head | None = None
    painted: tuple[Cell, ...] = ()
    branches: Annotated[tuple[Branch, ...], Branches(most=2)] = ()


HOLDS, PLACES = declarations(Choices)
OF_PART, PLACES_OF_PART = declarations(Colours, is_part=True)


def test_a_field_holds_what_its_type_says():
    kinds = {name: type(holds) for name, holds in HOLDS.items()}
    assert kinds == {
        "sentence": Text,
        "on": Switch,
        "way": Word,
        "place": Number,
        "share": Number,
        "steps": Number,
        "tokens": Positions,
        "heads": Heads,
        "like": OneHead,
        "painted": Cells,
        "branches": Branches,
    }
    assert HOLDS["way"].options == ("up", "down")
    assert [HOLDS[name].whole for name in ("place", "share", "steps")] == [True, False, True]


def test_a_field_of_a_part_is_found_by_its_name_after_the_prefix():
    assert OF_PART["colour_hue"].title == "Hue"
    assert {"colour_hue": (Colours, "hue", 180)} == PLACES_OF_PART
    assert PLACES["way"] == (None, "way", "up")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("sentence", "a=b", "a=b"),
        ("on", "1", True),
        ("way", "down", "down"),
        ("place", "7", 7),
        ("share", "0.25", 0.25),
        ("tokens", "5,3,5", (3, 5)),
        ("heads", "3.5,2", (Head(3, 5), AllHeads(2))),
        ("like", "3.5", Head(3, 5)),
        ("painted", "7.5,8.0", (Cell(7, 5), Cell(8, 0))),
        ("branches", "3.284-7.19,5.0", (Branch(((3, 284), (7, 19))), Branch(((5, 0),)))),
    ],
)
def test_what_fits_is_read_and_written_alike(name, text, value):
    assert HOLDS[name].read(name, text) == (value, "")
    assert HOLDS[name].read(name, written(value)) == (value, "")


def test_what_is_none_is_written_as_nothing():
    assert written(None) == ""
    assert written(5.0) == "5" and written(False) == "0"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("on", "yes", "“yes”; it can be 0 or 1"),
        ("way", "left", "“left”; it can be up or down"),
        ("place", "2.5", "“2.5”, which is no number"),
        ("place", "nan", "“nan”, which is no number"),
        ("tokens", "3,x", "“3,x”; it can be positions such as 3,5"),
        ("like", "3", "“3”; it is written as 3.5"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(name, text, words):
    with pytest.raises(LinkError, match=f"The link asks for {name} {words}"):
        HOLDS[name].read(name, text)


@pytest.mark.parametrize(("name", "expected"), [("heads", (Head(3, 5),)), ("painted", (Cell(3, 5),))])
def test_of_several_those_that_fit_are_taken(name, expected):
    value, remark = HOLDS[name].read(name, "3.5,x,3.5,4.")
    assert value == expected
    assert remark.startswith(f"The link asks for {'heads' if name == 'heads' else 'cells'} “3.5,x,3.5,4.”")


@pytest.mark.parametrize("text", ["3.5,x", "3.5,", "3.5,4.5-", "3.5,0.7", "3.5,3.5", "3.5,3", "3.5,-1.2"])
def test_what_is_no_branch_is_left_out(text):
    value, remark = HOLDS["branches"].read("branches", text)
    assert value == (Branch(((3, 5),)),)
    assert remark.startswith(f"The link asks for branches “{text}”")


def test_picks_are_put_in_order_and_branches_beyond_the_most_left_out():
    value, remark = HOLDS["branches"].read("branches", "7.1-3.2,4.1,5.1")
    assert value == (Branch(((3, 2), (7, 1))), Branch(((4, 1),)))
    assert "at most 2" in remark
    holds = HOLDS["branches"].can_hold
    assert holds(value) and holds(())
    assert not holds((*value, Branch(((5, 1),))))
    assert not any(map(holds, [(Branch(),), (Branch(((7, 1), (3, 2))),), [Branch(((3, 2),))], "3.2"]))


def test_a_number_out_of_range_becomes_the_nearest():
    assert HOLDS["steps"].read("steps", "9000") == (
        5000,
        "The link asks for steps 9000; 5000 is the nearest there is.",
    )
    assert HOLDS["place"].read("place", "-1")[0] == 0
    for far in ("1e300", "9" * 20, "-1e13"):
        nearest = HOLDS["share"].read("share", far)[0]
        assert (nearest, type(nearest)) == (0.0 if far[0] == "-" else 1.0, float)  # a slider takes no 1


def test_there_are_no_positions_before_the_first():
    assert HOLDS["tokens"].read("tokens", "-1,0,3") == ((0, 3), "")


def test_the_label_of_an_option_that_is_gone_is_no_value():
    assert not HOLDS["way"].can_hold("Up")
    assert not HOLDS["place"].can_hold("7")
    assert not HOLDS["tokens"].can_hold(["7"])
    assert not HOLDS["heads"].can_hold(["Layer 3, head 5"])
    assert HOLDS["tokens"].can_hold([7]) and HOLDS["heads"].can_hold([Head(3, 5)])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sentence", "Up"),
        ("on", True),
        ("way", "up"),
        ("place", 7),
        ("like", Head(3, 5)),
        ("painted", (Cell(7, 5),)),
    ],
)
def test_what_a_widget_sends_is_a_value(name, value):
    assert HOLDS[name].can_hold(value)


def test_a_widget_says_what_is_declared():
    assert OF_PART["colour_hue"].widget() == {
        "label": "Hue",
        "help": "Turns the colours.",
        "min_value": 0,
        "max_value": 360,
        "step": 5,
        "format": None,
    }
    way = HOLDS["way"].widget()
    assert [way["format_func"](option) for option in way["options"]] == ["Upwards", "Downwards"]
    assert HOLDS["share"].widget()["format"] == "%g"
    assert HOLDS["place"].widget()["max_value"] is None


def test_a_word_without_a_name_of_its_own_keeps_its_capitals():
    name = Word(("linear", "A → B")).widget()["format_func"]
    assert [name(word) for word in ("linear", "A → B")] == ["Linear", "A → B"]


def test_an_option_that_is_missing_here_is_not_offered_and_a_link_says_why():
    way = Word(("up", "down"), help="Where it goes.", missing={"down": "Down needs a lift. Build one."})
    assert way.widget()["options"] == ("up",)
    assert way.widget()["help"] == "Where it goes. Down needs a lift. Build one."
    assert way.can_hold("up") and not way.can_hold("down")
    assert way.words == "`up`, `down`"
    with pytest.raises(LinkError) as refused:
        way.read("way", "down")
    assert (
        str(refused.value)
        == "The link asks for way “down”. Down needs a lift. Build one. The default is shown."
    )
    assert Word(("up", "down")).widget()["help"] is None


def test_no_label_is_hidden_with_the_help_beside_it():
    """Streamlit shows the help at the label."""
    sources = [
        path for folder in ("ui", "pages") for path in (Path(__file__).parents[2] / folder).rglob("*.py")
    ]
    hiding = {
        f"{path.parent.name}/{path.name}"
        for path in sources
        if "label_visibility" in path.read_text(encoding="utf-8")
    }
    assert hiding == set()


def test_fields_that_share_a_page_have_labels_of_their_own():
    """Two of the pair on Find a head were both called "to", so that neither could be asked for by its name."""
    titles: dict[str, list[str]] = {}
    for name, holds in selection.FIELDS.items():
        record = selection.PLACES[name].record
        if holds.title:
            titles.setdefault(f"{record}: {holds.title}", []).append(name)
    assert [names for names in titles.values() if len(names) > 1] == []


def test_two_fields_of_one_name_in_a_link_are_refused():
    """Of which a link could set only one."""

    @dataclass(frozen=True)
    class Own:
        layer: int = 0

    with pytest.raises(TypeError, match="Own: layer is in links already"):
        selection.choices(Own)
