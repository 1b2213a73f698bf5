"""What a field of the selection can hold, and how it is written in a link.

One concept: a field's declaration. Reading a link, its remarks and the checks of what a widget sends follow from it.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

_CELL = re.compile(r"\d{1,4}(\.\d{1,4})?", re.ASCII)
_LARGEST_NUMBER = 10**12  # in a link; far above anything that is there to be picked


class LinkError(ValueError):
    """A link asks for something that a field cannot hold; its words say so to the reader."""


@dataclass(frozen=True, slots=True)
class Text:
    """Typed text, or a name that is looked up."""

    def read(self, name: str, written: str) -> tuple[Any, str]:
        """The value that a link asks for, and a remark where it is not just that; empty for none.

        Raises:
            LinkError: it can hold nothing like that.
        """
        return written, ""

    def can_hold(self, value: Any) -> bool:
        """Whether a field can hold a value that a widget sends.

        It cannot hold the label of an option, which Streamlit 1.67 gives as it is when the option is no longer there.
        """
        return True


@dataclass(frozen=True, slots=True)
class Word(Text):
    """One of a few words."""

    options: tuple[str, ...]

    def read(self, name: str, written: str) -> tuple[Any, str]:
        if written in self.options:
            return written, ""
        raise LinkError(
            f"The link asks for {name} “{written}”; it can be {', '.join(self.options[:-1])} or {self.options[-1]}. "
            "The usual one is shown."
        )

    def can_hold(self, value: Any) -> bool:
        return value in self.options


@dataclass(frozen=True, slots=True)
class Switch(Text):
    """On (1) or off (0)."""

    def read(self, name: str, written: str) -> tuple[Any, str]:
        if written in ("0", "1"):
            return written == "1", ""
        raise LinkError(f"The link asks for {name} “{written}”; it can be 0 or 1. It is taken as 0.")


@dataclass(frozen=True, slots=True)
class Number(Text):
    """A number from the lowest to the highest; whole where the field's type is."""

    lowest: float = 0
    highest: float = math.inf
    whole: bool = True

    def read(self, name: str, written: str) -> tuple[Any, str]:
        number = _number(written, whole=self.whole)
        if number is None:
            raise LinkError(
                f"The link asks for {name} “{written}”, which is no number; the usual one is shown."
            )
        nearest = type(number)(min(max(number, self.lowest), self.highest))
        if nearest == number:
            return number, ""
        return nearest, f"The link asks for {name} {number}; {nearest} is the nearest there is."

    def can_hold(self, value: Any) -> bool:
        return not isinstance(value, str)


@dataclass(frozen=True, slots=True)
class Positions(Text):
    """Positions of tokens, written with commas."""

    def read(self, name: str, written: str) -> tuple[Any, str]:
        numbers = [_number(one, whole=True) for one in written.split(",") if one]
        if None in numbers:
            raise LinkError(
                f"The link asks for {name} “{written}”; it can be positions such as 3,5. It is left out."
            )
        return tuple(sorted({int(one) for one in numbers if one is not None and one >= 0})), ""

    def can_hold(self, value: Any) -> bool:
        return not any(isinstance(one, str) for one in value)


@dataclass(frozen=True, slots=True)
class Places(Text):
    """Heads or cells, each as two numbers with a dot, "3.5"; "3" for all heads of a layer."""

    called: str
    """What a link is told that it asks for."""

    def read(self, name: str, written: str) -> tuple[Any, str]:
        names = written.split(",")
        found = tuple(dict.fromkeys(one for one in names if _CELL.fullmatch(one)))
        remark = f"The link asks for {self.called} “{written}”; they are written as 3.5,4.2."
        return found, remark if len(found) < len(names) else ""


@dataclass(frozen=True, slots=True)
class HeldHead(Text):
    """The head that a map is turned to lie like, as "3.5"."""

    def read(self, name: str, written: str) -> tuple[Any, str]:
        if _CELL.fullmatch(written) and "." in written:
            return written, ""
        raise LinkError(
            f"The link holds the map like head “{written}”; it is written as 3.5. It is left out."
        )


def declarations(record: Any) -> dict[str, Text]:
    """What each field of a dataclass can hold: what its type is annotated with, or what follows from the type.

    A field that may be None holds what its type is without it.
    """
    return {name: _declaration(given) for name, given in get_type_hints(record, include_extras=True).items()}


def _declaration(given: Any) -> Text:
    said = getattr(given, "__metadata__", ())
    kind = given.__origin__ if said else given
    if isinstance(kind, UnionType):
        [kind] = [one for one in get_args(kind) if one is not NoneType]
    if said:
        [holds] = said
        return replace(holds, whole=kind is int) if isinstance(holds, Number) else holds
    if get_origin(kind) is Literal:
        return Word(get_args(kind))
    if kind == tuple[int, ...]:
        return Positions()
    plain: dict[Any, Text] = {str: Text(), bool: Switch(), int: Number(), float: Number(whole=False)}
    return plain[kind]


def written(value: Any) -> str:
    """A value as a link writes it."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(str, value))
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def _number(text: str, *, whole: bool) -> int | float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    if not math.isfinite(number) or (whole and number != int(number)):
        return None
    number = min(max(number, -_LARGEST_NUMBER), _LARGEST_NUMBER)
    return int(number) if whole else number
