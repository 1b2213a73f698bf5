"""Values of a bundle's JSON, each of the type and in the range that is expected of it, or refused."""

from typing import Any

import numpy as np

from attnviz.bundle.refusal import require
from attnviz.bundle.writing import LARGEST_NUMBER, PROVENANCE

LONGEST_WORDS = 1000  # characters of any string but a text


def section_of(document: dict[str, Any], name: str) -> dict[str, Any]:
    return object_of(document[name])


def object_of(value: object) -> dict[str, Any]:
    require(isinstance(value, dict), f"its {PROVENANCE} has other parts.")
    assert isinstance(value, dict)
    return value


def list_of(value: object, length: int | None = None) -> list[Any]:
    fits = isinstance(value, list) and length in (None, len(value))
    require(fits, f"its {PROVENANCE} has lists of other lengths.")
    assert isinstance(value, list)
    return value


def text_of(value: object, longest: int = LONGEST_WORDS) -> str:
    fits = isinstance(value, str) and len(value) <= longest
    require(fits, f"its {PROVENANCE} has something else than words, or too many.")
    assert isinstance(value, str)
    value.encode()  # a lone surrogate is no text
    return value


def named_words(value: object, longest: int = LONGEST_WORDS, most: int = 64) -> dict[str, str]:
    named = object_of(value)
    require(len(named) <= most, f"its {PROVENANCE} has lists of other lengths.")
    return {text_of(name): text_of(value, longest) for name, value in named.items()}


def one_of(value: object, choices: tuple[Any, ...]) -> Any:
    require(isinstance(value, str) and value in choices, f"its {PROVENANCE} has a choice that there is not.")
    return value


def integer(value: object, largest: int, smallest: int = 0) -> int:
    fits = type(value) is int and smallest <= value <= largest
    require(fits, f"its {PROVENANCE} has a number out of range.")
    assert type(value) is int
    return value


def real(value: object, smallest: float = -LARGEST_NUMBER, largest: float = LARGEST_NUMBER) -> float:
    fits = type(value) in (int, float) and smallest <= value <= largest  # type: ignore[operator]
    require(fits, f"its {PROVENANCE} has a number out of range.")
    return float(value)  # type: ignore[arg-type]


def boolean(value: object) -> bool:
    require(isinstance(value, bool), f"its {PROVENANCE} has something else than true or false.")
    return bool(value)


def float32_or_nan(value: object) -> float:
    """A number that is not negative, or NaN for the null that stands for it."""
    return float("nan") if value is None else real(value, 0.0, float(np.finfo(np.float32).max))
