"""Numbers as text: one form for sentences, one for tables, bars and hover text, one for cells."""

import numpy as np

HOVER_NUMBER = ".3g"
"""The format of `number_text` where plotly writes the number."""

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def counted(number: int, noun: str, nouns: str = "") -> str:
    """So many of a thing: "1 token", "1,234 tokens".

    Args:
        nouns: the plural, where it is not the noun with an s.
    """
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def number_text(number: float) -> str:
    """A number beside a bar, in a table or in hover text, to three digits: "0.475", "−12.3", "4.5 × 10⁻⁴".

    `numberText` of ui/components/shared/labels.js writes the same.
    """
    size = abs(number)
    if number == 0 or not np.isfinite(number) or size < 0.001 or size >= 1e6:
        return power_text(number).replace("-", "−")
    return (f"{number:,.0f}" if size >= 999.5 else f"{number:#.3g}".rstrip(".")).replace("-", "−")


def signed_text(number: float) -> str:
    """A change with its sign, otherwise as `number_text`: "+0.012", "−12.3"."""
    return f"+{number_text(number)}" if number > 0 else number_text(number)


def spread_text(spread: float) -> str:
    """The standard deviation after a mean, " ± 0.031"; nothing where it is not a number, as for a single pair."""
    return f" ± {number_text(spread)}" if np.isfinite(spread) else ""


def sum_text(number: float) -> str:
    """A sum or one of its terms, to two decimals, so that a reader can add them up: "−4.13"."""
    return f"{round(number, 2) + 0.0:.2f}".replace("-", "−")  # + 0.0 removes the sign of 0


def cell_text(number: float) -> str:
    """A number in a cell that has room for five characters and a sign: "0.475", "0.012", "4.00", "−0.041"."""
    if abs(number) >= 0.9995:
        return number_text(number)
    return f"{round(number, 3) + 0.0:.3f}".replace("-", "−")


def power_text(number: float) -> str:
    """A number in powers of ten, "9.2 × 10⁻⁷"; numbers near 1, 0 and "not a number" without a power."""
    if not np.isfinite(number):
        return "not a number"
    if number == 0:
        return "0"
    if 0.01 <= abs(number) < 1000:
        return f"{number:.2g}" if abs(number) < 100 else f"{number:.0f}"
    digits, exponent = f"{number:.1e}".split("e")
    raised = power_of_ten(int(exponent))
    return raised if digits == "1.0" else f"{digits}\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}{raised}"


def power_of_ten(exponent: int) -> str:
    """A power of ten, "10⁻⁷"; `<sup>` would shrink the exponent to 8 px in a figure."""
    return f"10{str(exponent).translate(_SUPERSCRIPTS)}"


def share_text(share: float) -> str:
    """A share, such as a weight, for a sentence: "47.5%"; "under 0.1%" for shares that would round to 0."""
    if 0 < share < 0.0005:
        return "under 0.1%"
    return f"{100 * share:.1f}%"


def percent_text(share: float) -> str:
    """A share in whole percent: "83%"."""
    return f"{100 * share:.0f}%"
