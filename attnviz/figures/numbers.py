"""Numbers as text: one form for sentences, one for tables, bars and hover text, one for cells."""

import numpy as np

HOVER_NUMBER = ".3g"
"""The format of `number_text` where plotly writes the number."""

_ROUNDING = 1e-6
"""A sum of float32 weights that is less than 1 by no more than this is all of them: each ends within 6e-8 of its own size."""
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def counted(number: int, noun: str, nouns: str = "") -> str:
    """So many of a thing: "1 token", "1,234 tokens".

    Args:
        nouns: the plural, where it is not the noun with an s.
    """
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def number_text(number: float) -> str:
    """A number beside a bar, in a table or in hover text, to three digits: "0.475", "−12.3", "4.5 × 10⁻⁴".

    Its size once rounded decides its form, so that 0.0009997 is "0.00100", as 0.001 is. `numberText` of
    attnviz/viewer/numbers.js writes the same.
    """
    size = _rounded(number, 3)
    if not 0.001 <= size < 1e6:
        return power_text(number)
    return (f"{number:,.0f}" if size >= 1000 else f"{number:#.3g}".rstrip(".")).replace("-", "−")


def signed_text(number: float) -> str:
    """A change with its sign, otherwise as `number_text`: "+0.012", "−12.3"."""
    return f"+{number_text(number)}" if number > 0 else number_text(number)


def spread_text(spread: float) -> str:
    """The standard deviation after a mean, " ± 0.031"; nothing where it is not a number, as for a single pair."""
    return f" ± {number_text(spread)}" if np.isfinite(spread) else ""


def sum_text(number: float) -> str:
    """A sum or one of its terms, to two decimals, so that a reader can add them up: "−4.13"."""
    return _fixed(number, 2) if abs(number) < 1e6 else power_text(number)


def cell_text(number: float) -> str:
    """A number in a cell that has room for five characters and a sign: "0.475", "0.012", "4.00", "−0.041"."""
    return _fixed(number, 3) if round(abs(number), 3) < 1 else number_text(number)


def power_text(number: float) -> str:
    """A number to two digits in powers of ten, "9.2 × 10⁻⁷"; from 0.01 to 999 without a power; "∞", "not a number"."""
    if not np.isfinite(number):
        return "not a number" if np.isnan(number) else "−∞" if number < 0 else "∞"
    if number == 0:
        return "0"
    sign, number = "−" if number < 0 else "", abs(number)
    if _rounded(number, 2) >= 0.01 and number < 999.5:
        return sign + (f"{number:.0f}" if number >= 99.5 else f"{number:.2g}")
    digits, exponent = f"{number:.1e}".split("e")
    raised = power_of_ten(int(exponent))
    return sign + (raised if digits == "1.0" else f"{digits}\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}{raised}")


def power_of_ten(exponent: int) -> str:
    """A power of ten, "10⁻⁷"; `<sup>` would shrink the exponent to 8 px in a figure."""
    return f"10{str(exponent).translate(_SUPERSCRIPTS)}"


def share_text(share: float) -> str:
    """A share, such as a weight, for a sentence: "47.5%"; what only rounds to nothing or all is "under 0.1%" or "over 99.9%"."""
    return _percent(share, 1)


def percent_text(share: float) -> str:
    """A share in whole percent: "83%"; what only rounds to nothing or all is "under 1%" or "over 99%"."""
    return _percent(share, 0)


def _percent(share: float, n_decimal: int) -> str:
    if not np.isfinite(share):
        return power_text(share)
    size, least = round(100 * abs(share), n_decimal), 10**-n_decimal
    beside = ""
    if share and not size:
        size, beside = least, "under " if share > 0 else "over "
    elif size == 100 and abs(share) < 1 - _ROUNDING:
        size, beside = 100 - least, "over " if share > 0 else "under "
    return f"{beside}{'−' if share < 0 else ''}{size:,.{n_decimal}f}%"


def _fixed(number: float, n_decimal: int) -> str:
    """With this many decimals, and a minus only before what is not 0 once rounded."""
    return f"{round(number, n_decimal) + 0.0:.{n_decimal}f}".replace("-", "−")


def _rounded(number: float, n_digit: int) -> float:
    """The size of a number, rounded to this many significant digits."""
    return abs(float(f"{number:.{n_digit - 1}e}"))
