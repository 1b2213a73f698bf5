"""What a field of the selection can hold, how a link writes it, and what its widget shows.

Reading a link and its notices, the checks of a widget's values, the widget's label, help, options and range, and the
table in docs/links.md follow from it.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from attnviz.records import AllHeads, Head, read_heads

_CELL = re.compile(r"(\d{1,4})\.(\d{1,4})", re.ASCII)
_PICK = re.compile(r"(\d{1,4})\.(\d{1,9})", re.ASCII)
_LARGEST_NUMBER = 10**12  # in a link; far above anything that can be selected


class Cell(NamedTuple):
    """A cell of the matrix, by the positions of its tokens."""

    query: int
    key: int

    def __str__(self) -> str:
        """As a link writes it: "7.5"."""
        return f"{self.query}.{self.key}"


@dataclass(frozen=True, slots=True)
class Branch:
    """A text that a model generates with some of its tokens picked by hand."""

    picks: tuple[tuple[int, int], ...] = ()
    """Steps, from 1, each with the id of the token generated there; in order."""

    def __str__(self) -> str:
        """As a link writes it: "3.284-7.19"."""
        return "-".join(f"{step}.{token}" for step, token in self.picks)


class LinkError(ValueError):
    """A link asks for something that a field cannot hold; the message is shown to the visitor."""


@dataclass(frozen=True, slots=True)
class Text:
    """Typed text, or a name that is looked up."""

    title: str = field(default="", kw_only=True)
    """Label of the widget; empty for a field without a widget."""
    help: str = field(default="", kw_only=True)
    """What changes in the picture when the widget is changed."""

    def read(self, name: str, written: str) -> tuple[Any, str]:
        """The value for what a link asks for, and a notice if it had to be changed; otherwise empty.

        Raises:
            LinkError: the field cannot hold such a value.
        """
        return written, ""

    def can_hold(self, value: Any) -> bool:
        """Whether a field can hold a value from a widget or a component; browsers can send anything.

        It cannot hold an option's label, which Streamlit 1.67 passes on when the option no longer exists.
        """
        return isinstance(value, str)

    def widget(self) -> dict[str, Any]:
        """Arguments of the field's widget: label and help, and options or range."""
        return {"label": self.title, "help": self.help or None}

    @property
    def words(self) -> str:
        """What the field can hold, for docs/links.md."""
        return "text"


def sentence_case(text: str) -> str:
    """Text with its first letter capitalised, the rest unchanged: "A → B" stays."""
    return text[:1].upper() + text[1:]


@dataclass(frozen=True, slots=True)
class Word(Text):
    """One of a few words."""

    options: tuple[str, ...] = ()
    """Taken from the field's type if that is a `Literal`."""
    names: Mapping[str, str] | Callable[[str], str] = field(default=sentence_case, kw_only=True)
    """Each option's name on screen."""
    missing: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    """Options that cannot be used here, each with why and what to do."""

    def read(self, name: str, written: str) -> tuple[Any, str]:
        if written in self.missing:
            raise LinkError(
                f"The link asks for {name} “{written}”. {self.missing[written]} The default is shown."
            )
        if written in self.options:
            return written, ""
        raise LinkError(
            f"The link asks for {name} “{written}”; it can be {', '.join(self.options[:-1])} or {self.options[-1]}. "
            "The default is shown."
        )

    def can_hold(self, value: Any) -> bool:
        return value in self.options and value not in self.missing

    def widget(self) -> dict[str, Any]:
        names = self.names.__getitem__ if isinstance(self.names, Mapping) else self.names
        return Text.widget(self) | {
            "options": tuple(option for option in self.options if option not in self.missing),
            "format_func": names,
            "help": " ".join([self.help, *self.missing.values()]).strip() or None,
        }

    @property
    def words(self) -> str:
        return ", ".join(f"`{option}`" for option in self.options if option)


@dataclass(frozen=True, slots=True)
class Switch(Text):
    """On (1) or off (0)."""

    def read(self, name: str, written: str) -> tuple[Any, str]:
        if written in ("0", "1"):
            return written == "1", ""
        raise LinkError(f"The link asks for {name} “{written}”; it can be 0 or 1. It is taken as 0.")

    def can_hold(self, value: Any) -> bool:
        return isinstance(value, bool)

    @property
    def words(self) -> str:
        return "`0` or `1`"


@dataclass(frozen=True, slots=True)
class Number(Text):
    """A number from the lowest to the highest; an integer if the field's type is."""

    lowest: float = 0
    highest: float = math.inf
    whole: bool = True
    step: float = field(default=1, kw_only=True)
    """Step of a slider, or of a field's buttons."""

    def read(self, name: str, written: str) -> tuple[Any, str]:
        number = _number(written, whole=self.whole)
        if number is None:
            raise LinkError(
                f"The link asks for {name} “{written}”, which is no number; the default is shown."
            )
        nearest = type(number)(min(max(number, self.lowest), self.highest))
        if nearest == number:
            return number, ""
        return nearest, f"The link asks for {name} {number}; {nearest} is the nearest there is."

    def can_hold(self, value: Any) -> bool:
        is_one = isinstance(value, Integral if self.whole else Real) and not isinstance(value, bool)
        return is_one and self.lowest <= value <= min(self.highest, _LARGEST_NUMBER)

    def widget(self) -> dict[str, Any]:
        kind = int if self.whole else float
        return Text.widget(self) | {
            "min_value": kind(self.lowest),
            "max_value": None if self.highest == math.inf else kind(self.highest),
            "step": kind(self.step),
            "format": None if self.whole else "%g",
        }

    @property
    def words(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        return f"{kind} from {self.lowest:,}" + (f" to {self.highest:,}" if self.highest < math.inf else "")


@dataclass(frozen=True, slots=True)
class Positions(Text):
    """Positions of tokens, written with commas."""

    def read(self, name: str, written: str) -> tuple[Any, str]:
        numbers = [_number(number, whole=True) for number in written.split(",") if number]
        if None in numbers:
            raise LinkError(
                f"The link asks for {name} “{written}”; it can be positions such as 3,5. It is left out."
            )
        return tuple(sorted({int(number) for number in numbers if number is not None and number >= 0})), ""

    def can_hold(self, value: Any) -> bool:
        return isinstance(value, list | tuple) and all(_is_position(position) for position in value)

    @property
    def words(self) -> str:
        return "positions, as `3,5`"


@dataclass(frozen=True, slots=True)
class Cells(Text):
    """Cells of the matrix, each as its query and key, "7.5"."""

    def read(self, name: str, written: str) -> tuple[Any, str]:
        asked = written.split(",")
        cells = [_CELL.fullmatch(match) for match in asked]
        cells_read = tuple(dict.fromkeys(Cell(int(cell[1]), int(cell[2])) for cell in cells if cell))
        remark = f"The link asks for cells “{written}”; they are written as 3.5,4.2."
        return cells_read, remark if len(cells_read) < len(asked) else ""

    def can_hold(self, value: Any) -> bool:
        return isinstance(value, tuple) and all(
            isinstance(cell, Cell) and all(map(_is_position, cell)) for cell in value
        )

    @property
    def words(self) -> str:
        return "cells as query and key, as `7.5,7.6`"


@dataclass(frozen=True, slots=True)
class Branches(Text):
    """Branches of a text, each as the steps and ids of its picks, "3.284-7.19"."""

    most: int = 1
    """Most branches that it can hold."""

    def read(self, name: str, written: str) -> tuple[Any, str]:
        asked = written.split(",")
        picks = [[_PICK.fullmatch(match) for match in branch.split("-")] for branch in asked]
        branches_read = (
            Branch(tuple(sorted({int(match[1]): int(match[2]) for match in branch if match}.items())))
            for branch in picks
            if all(branch)
        )
        kept = tuple(branch for branch in dict.fromkeys(branches_read) if self._is_branch(branch))[
            : self.most
        ]
        remark = f"The link asks for branches “{written}”; they are written as 3.284-7.19,5.12, at most {self.most} of them."
        return kept, remark if len(kept) < len(asked) else ""

    def can_hold(self, value: Any) -> bool:
        return isinstance(value, tuple) and len(value) <= self.most and all(map(self._is_branch, value))

    @staticmethod
    def _is_branch(value: Any) -> bool:
        """Whether it has picks, in ascending steps."""
        if not isinstance(value, Branch) or not value.picks:
            return False
        steps = [step for step, _ in value.picks]
        return steps == sorted({*steps}) and steps[0] >= 1

    @property
    def words(self) -> str:
        return "branches, each as steps with the id of the token picked there, as `3.284-7.19,5.12`"


@dataclass(frozen=True, slots=True)
class Heads(Text):
    """Several heads; a layer alone means all of its heads."""

    def read(self, name: str, written: str) -> tuple[Any, str]:
        asked = written.split(",")
        heads_read = tuple(dict.fromkeys(heads for heads in map(_heads, asked) if heads is not None))
        remark = f"The link asks for heads “{written}”; they are written as 3.5,4.2."
        return heads_read, remark if len(heads_read) < len(asked) else ""

    def can_hold(self, value: Any) -> bool:
        return isinstance(value, list | tuple) and all(isinstance(item, Head | AllHeads) for item in value)

    @property
    def words(self) -> str:
        return "heads as layer and head, as `3.5,4.2`; a layer alone, as `3`, for all its heads together"


@dataclass(frozen=True, slots=True)
class OneHead(Text):
    """One head; none if empty."""

    def read(self, name: str, written: str) -> tuple[Any, str]:
        heads_read = _heads(written)
        if not isinstance(heads_read, Head):
            raise LinkError(
                f"The link asks for {name} “{written}”; it is written as 3.5, layer and head. It is left out."
            )
        return heads_read, ""

    def can_hold(self, value: Any) -> bool:
        return isinstance(value, Head)

    @property
    def words(self) -> str:
        return "a head as layer and head, as `3.5`"


class Place(NamedTuple):
    """Where a value is stored in a selection."""

    record: type[Any] | None
    """The record of choices that holds the value; None for the selection itself."""
    field: str
    usual: Any
    """Its default; `dataclasses.MISSING` if it has none."""


def declarations(record: type[Any], *, is_part: bool = False) -> tuple[dict[str, Text], dict[str, Place]]:
    """What each field of a record can hold, and where its value is stored, both by the field's name in a link.

    A field's declaration is the annotation of its type, or follows from the type; an optional None is ignored. Names begin with
    the record's ``PREFIX`` if it has one.

    Args:
        is_part: whether it is a record of choices, which a selection holds.
    """
    hints = get_type_hints(record, include_extras=True)
    prefix: str = getattr(record, "PREFIX", "")
    own = [declared for declared in fields(record) if not declared.metadata.get("is_of_parts")]
    return (
        {prefix + declared.name: _declaration(hints[declared.name]) for declared in own},
        {
            prefix + declared.name: Place(record if is_part else None, declared.name, declared.default)
            for declared in own
        },
    )


def _declaration(given: Any) -> Text:
    metadata: tuple[Any, ...] = getattr(given, "__metadata__", ())
    kind = given.__origin__ if metadata else given
    if isinstance(kind, UnionType):
        [kind] = [member for member in get_args(kind) if member is not NoneType]
    if get_origin(kind) is Literal:
        [word] = metadata or [Word()]
        return replace(word, options=get_args(kind))
    if metadata:
        holds: Text
        [holds] = metadata
        return replace(holds, whole=kind is int) if isinstance(holds, Number) else holds
    plain: dict[Any, Text] = {
        str: Text(),
        bool: Switch(),
        int: Number(),
        float: Number(whole=False),
        tuple[int, ...]: Positions(),
        tuple[Cell, ...]: Cells(),
        tuple[Head | AllHeads, ...]: Heads(),
        Head: OneHead(),
    }
    return plain[kind]


def written(value: Any) -> str:
    """A value as written in a link."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, tuple) and not isinstance(value, Head | AllHeads | Cell):
        return ",".join(map(str, value))
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def in_link(values: Mapping[str, Any]) -> dict[str, str]:
    """Values by name, each as written in a link."""
    return {name: written(value) for name, value in values.items()}


def _heads(written: str) -> Head | AllHeads | None:
    try:
        return read_heads(written)
    except ValueError:
        return None


def _is_position(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and 0 <= int(value) <= _LARGEST_NUMBER


def _number(text: str, *, whole: bool) -> int | float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    if not math.isfinite(number) or (whole and number != int(number)):
        return None
    number = min(max(number, float(-_LARGEST_NUMBER)), float(_LARGEST_NUMBER))
    return int(number) if whole else number
