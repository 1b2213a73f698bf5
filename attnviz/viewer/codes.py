"""Numbers as 16-bit codes that the viewer reads, and back.

A number is a power of its code, so that small ones keep their digits, and codes are chosen so that a number is written
with the same digits before and after.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float, Int, UInt16

from attnviz.figures.numbers import share_text

MASKED = 65535
"""The code of a cell that the query may not see."""
_LAST = 65534
"""The largest code of a number."""
_POWERS = range(2, 13)
_STEP = 0.009
"""Below `_JOIN`, where two digits are written, each number is this much smaller than the next: two have at least 1% between them."""
_JOIN = 0.00099
_ROOM = 0.9
"""Of the width of the range of numbers that are written alike, at most so much may lie between two codes."""
_ALL = 1e-6
"""How far a sum of float32 weights may be from 1."""
_FARTHEST = 6
"""How many codes away from the nearest a number may be put."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How codes become numbers: from 0 first in equal ratios, so that the smallest keep their digits, then as a power.

    With u the codes from `zero` to a code, the size of its number is
    ``size * (root + (1 - root) * (u - low) / (most - low)) ** power`` from `low` on, and below it `ratio` times the next one.
    """

    lowest: float
    """The least number that a code can be; 0 where none is below 0."""
    highest: float
    """The largest one; 0 where none is above 0."""
    zero: int
    """The code of 0."""
    power: int
    root: float
    low: int
    ratio: float = 1 - _STEP

    @property
    def size(self) -> float:
        """The largest size of a number."""
        return max(-self.lowest, self.highest)

    @property
    def most(self) -> int:
        """The number of codes from `zero` to the farthest."""
        return max(self.zero, _LAST - self.zero)

    @classmethod
    def of(cls, numbers: Float[np.ndarray, "*cell"], *, is_share: bool) -> "Scale":
        """The scale that keeps the digits of all these numbers, or of most; NaN is no number.

        All shares have the same one.
        """
        there = numbers[np.isfinite(numbers)]
        if is_share and not (there.size and (there.min() < 0 or there.max() > 1 + _ALL)):
            return cls._with_power(0.0, 1.0, float(np.finfo(np.float32).smallest_subnormal), _POWERS[0])
        lowest, highest = float(there.min(initial=0.0)), float(there.max(initial=0.0))
        least = float(np.abs(there[there != 0]).min(initial=np.inf))
        scales = (cls._with_power(lowest, highest or 1.0, least, power) for power in _POWERS)
        return min(scales, key=lambda scale: (max(1.0, scale._strain()), scale.power))

    @classmethod
    def _with_power(cls, lowest: float, highest: float, least: float, power: int) -> "Scale":
        size = max(-lowest, highest)
        join = min(_JOIN, size / 2)
        below, above = ((number / size) ** (1 / power) for number in (-lowest, highest))
        return cls(
            lowest=lowest,
            highest=highest,
            zero=round(_LAST * below / (below + above)),
            power=power,
            root=(join / size) ** (1 / power),
            low=1 + max(0, math.ceil(math.log(least / join) / math.log(1 - _STEP))) if least < join else 1,
        )

    def _strain(self) -> float:
        """By how much two codes are too far apart where they are farthest; up to 1 they are not."""
        tens = 10.0 ** np.arange(-3, 7)
        sizes = np.append(tens[(tens > _JOIN) & (tens < self.size)], self.size)
        alike = np.where(sizes <= 1000, 10 ** np.ceil(np.log10(sizes)) / 1000, 1.0)
        between = (
            (1 - self.root) / (self.most - self.low) * self.power * self.size ** (1 / self.power)
        ) * sizes ** (1 - 1 / self.power)
        return float((between / (_ROOM * alike)).max())

    def numbers(self, codes: UInt16[np.ndarray, "*cell"]) -> Float[np.ndarray, "*cell"]:
        """The numbers of these codes as float32; NaN for `MASKED`."""
        return np.asarray(_table(self)[codes])

    def nearest(self, numbers: Float[np.ndarray, "*cell"]) -> Int[np.ndarray, "*cell"]:
        """The nearest codes, by the power's root or the logarithm."""
        sizes = np.abs(numbers)
        shares = (sizes / self.size) ** (1 / self.power)
        apart = self.low + (shares - self.root) / (1 - self.root) * (self.most - self.low)
        is_low = (apart < self.low) & (sizes > 0)
        join = math.log(self.size * self.root**self.power)
        apart[is_low] = np.maximum(
            self.low + (join - np.log(sizes[is_low])) / math.log(self.ratio), min(1, self.low)
        )
        apart[sizes == 0] = 0
        return np.asarray((self.zero + np.rint(np.sign(numbers) * apart).astype(np.int64)).clip(0, _LAST))


@lru_cache(maxsize=16)
def _table(scale: Scale) -> Float[np.ndarray, " code"]:
    """The number of each code. What is multiplied, and in which order, is as in the viewer, so that both have the same bits."""
    shares = scale.root + (1 - scale.root) * (
        np.arange(scale.most - scale.low + 1) / (scale.most - scale.low)
    )
    raised = shares.copy()
    for _ in range(scale.power - 1):
        raised *= shares
    upper = scale.size * raised
    lower = np.multiply.accumulate(np.append(upper[0], np.full(scale.low - 1, scale.ratio)))[:0:-1]
    sizes = np.concatenate([[0.0], lower, upper])
    table = np.concatenate([-sizes[scale.zero : 0 : -1], sizes[: _LAST - scale.zero + 1], [np.nan]])
    table = table.astype(np.float32)
    table.flags.writeable = False
    return table


@dataclass(frozen=True, slots=True, kw_only=True)
class Coded:
    """Numbers as codes."""

    codes: UInt16[np.ndarray, "*cell"]
    scale: Scale
    error: float
    """The largest difference of a number and that of its code."""
    n_unlike: int
    """Cells that are written with other digits; 0 wherever 16 bits can do it."""


def coded(numbers: Float[np.ndarray, "*cell"], *, is_share: bool, scale: Scale | None = None) -> Coded:
    """Numbers as codes that are written alike, as `number_text` and, of shares, also as `share_text`.

    Args:
        numbers: float32; NaN where a query may not see a key.
        is_share: whether they are shares such as weights.
        scale: that of other numbers, such as those of a whole matrix; their own by default.
    """
    is_masked = ~np.isfinite(numbers)
    cells = np.where(is_masked, 0, numbers).astype(np.float64).ravel()
    scale = scale or Scale.of(numbers, is_share=is_share)
    of_codes = _table(scale)[:-1].astype(np.float64)
    wanted, written = _forms(cells, is_share=is_share), _forms_of_codes(scale, is_share=is_share)
    codes = scale.nearest(cells)
    off = np.flatnonzero(~_is_alike(wanted, written, codes))
    for step in sorted(range(-_FARTHEST, _FARTHEST + 1), key=abs)[1:]:
        others = (codes[off] + step).clip(0, _LAST)
        fits = _is_alike([form[off] for form in wanted], written, others)
        codes[off[fits]] = others[fits]
        off = off[~fits]
    error = float(np.abs(of_codes[codes] - cells).max(initial=0.0))
    codes[is_masked.ravel()] = MASKED
    return Coded(
        codes=codes.astype("<u2").reshape(numbers.shape), scale=scale, error=error, n_unlike=len(off)
    )


def _forms(numbers: Float[np.ndarray, " cell"], *, is_share: bool) -> list[Int[np.ndarray, " cell"]]:
    """What the numbers are written as, in each of the ways in which they are."""
    return [number_forms(numbers), *([share_forms(numbers)] if is_share else [])]


@lru_cache(maxsize=4)
def _forms_of_codes(scale: Scale, *, is_share: bool) -> list[Int[np.ndarray, " code"]]:
    return _forms(_table(scale)[:-1].astype(np.float64), is_share=is_share)


def _is_alike(
    wanted: list[Int[np.ndarray, " cell"]],
    written: list[Int[np.ndarray, " code"]],
    codes: Int[np.ndarray, " cell"],
) -> Bool[np.ndarray, " cell"]:
    """Where the number of a code has the forms that are wanted."""
    pairs = zip(wanted, written, strict=True)
    return np.asarray(np.all([form == of_code[codes] for form, of_code in pairs], axis=0))


_LEAST_PLACE, _FORM, _PLACE = 50, 10**11, 10**8
_TENS = np.array([float(f"1e{place}") for place in range(-_LEAST_PLACE, 60)])
_TIE = 1e-6
"""How near to the middle of two digits a number is rounded as text, which is exact."""


def number_forms(numbers: Float[np.ndarray, " cell"]) -> Int[np.ndarray, " cell"]:
    """A whole number for what `number_text` writes: the same for numbers that it writes alike."""
    sizes = np.abs(numbers)
    digits, place, near = _rounded(sizes, 3)
    is_whole, is_power = (digits > 0) & (place >= 3), (digits > 0) & ((place < -3) | (place >= 6))
    forms = digits + _PLACE * (place + _LEAST_PLACE)
    if is_power.any():
        few, of_few, near_few = _rounded(sizes[is_power], 2)
        forms[is_power] = few + _PLACE * (of_few + _LEAST_PLACE) + _FORM
        near[is_power] |= near_few
    if (is_whole & ~is_power).any():
        there = is_whole & ~is_power
        forms[there] = np.rint(sizes[there]).astype(np.int64) + 2 * _FORM
        near[there] |= np.abs(sizes[there] % 1 - 0.5) < _TIE
    forms = np.where(digits > 0, np.where(numbers < 0, -forms, forms), 0)
    return _exactly(numbers, forms, near, _number_form)


def _rounded(
    sizes: Float[np.ndarray, " cell"], n_digit: int
) -> tuple[Int[np.ndarray, " cell"], Int[np.ndarray, " cell"], Bool[np.ndarray, " cell"]]:
    """Digits as a whole number and the place of the first, 0 for units; and where they may be off, since it is near a tie."""
    with np.errstate(divide="ignore"):
        place = np.floor(np.log10(sizes))
    place = np.where(sizes > 0, place, 0).astype(np.int64)
    scaled = sizes / _TENS[place - n_digit + 1 + _LEAST_PLACE]
    digits = np.rint(scaled).astype(np.int64)
    near = np.abs(scaled % 1 - 0.5) < _TIE
    over = digits == 10**n_digit
    return np.where(over, digits // 10, digits), place + over, near


def _number_form(number: float) -> int:
    """The form of one number, from its digits as text."""
    three, two = f"{abs(number):.2e}", f"{abs(number):.1e}"
    size = float(three)
    if 1000 <= size < 1e6:
        form = int(f"{abs(number):.0f}") + 2 * _FORM
    else:
        is_power = not 0.001 <= size < 1e6
        digits, place = (two if is_power else three).split("e")
        form = int(digits.replace(".", "")) + _PLACE * (int(place) + _LEAST_PLACE) + _FORM * is_power
    return -form if number < 0 else form


def share_forms(shares: Float[np.ndarray, " cell"]) -> Int[np.ndarray, " cell"]:
    """A whole number for what `share_text` writes: the same for shares that it writes alike."""
    sizes = 1000 * np.abs(shares)
    per_mille = np.rint(sizes).astype(np.int64)
    near = (np.abs(sizes % 1 - 0.5) < _TIE) | (np.abs(sizes - 1000 * (1 - _ALL)) < _TIE)
    is_beside = ((per_mille == 0) & (sizes > 0)) | ((per_mille == 1000) & (sizes < 1000 * (1 - _ALL)))
    forms = 2 * per_mille + is_beside + 1
    return _exactly(shares, np.where((shares < 0) & (forms > 1), -forms, forms), near, _share_form)


def _share_form(share: float) -> int:
    """The form of one share, from its text."""
    text = share_text(share)
    is_beside = "er " in text
    size = round(10 * float(text.removeprefix("under ").removeprefix("over ").strip("−%").replace(",", "")))
    size += is_beside * (-1 if size == 1 else 1)
    return (2 * size + is_beside + 1) * (-1 if "−" in text else 1)


def _exactly(
    numbers: Float[np.ndarray, " cell"],
    forms: Int[np.ndarray, " cell"],
    near: Bool[np.ndarray, " cell"],
    form: Callable[[float], int],
) -> Int[np.ndarray, " cell"]:
    """The forms, with those of numbers near a tie taken from the text."""
    at = np.flatnonzero(near & (numbers != 0))
    if at.size:
        several, which = np.unique(numbers[at], return_inverse=True)
        forms[at] = np.array([form(number) for number in several.tolist()], dtype=np.int64)[which]
    return forms
