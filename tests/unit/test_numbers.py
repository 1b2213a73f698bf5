"""Numbers in words, cells and hover texts have one form each."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

import attnviz
from attnviz.figures.numbers import (
    HOVER_NUMBER,
    cell_text,
    counted,
    number_text,
    percent_text,
    power_text,
    share_text,
    signed_text,
    sum_text,
)
from tests.findings import assert_none


def test_numbers_in_words() -> None:
    assert [share_text(number) for number in (0.0, 0.0003, 0.00049, 0.0006, 0.003, 0.4754, 1.0)] == [
        *("0.0%", "under 0.1%", "under 0.1%", "0.1%", "0.3%", "47.5%", "100.0%"),
    ]
    numbers = (0.0, 0.4754, 0.00412, 0.99996, 1.47, -4.1305, 12345.6, 4.54e-4, -8.9e-7)
    assert [number_text(number).replace("\xa0", " ") for number in numbers] == [
        *("0", "0.475", "0.00412", "1.00", "1.47", "−4.13", "12,346", "4.5 × 10⁻⁴", "−8.9 × 10⁻⁷"),
    ]
    cells = (0.0, 0.4754, 0.0123, 1.0, 4.0, -0.041, -4.5, -12345.6)
    assert [cell_text(number) for number in cells] == [
        *("0.000", "0.475", "0.012", "1.00", "4.00", "−0.041", "−4.50", "−12,346"),
    ]
    assert [sum_text(number) for number in (-4.126, 2.0, -0.004)] == ["−4.13", "2.00", "0.00"]


@pytest.mark.parametrize(
    ("write", "number", "text"),
    [
        *((share_text, number, text) for number, text in {
            0.0: "0.0%", 1e-9: "under 0.1%", 0.00049: "under 0.1%", 0.4754: "47.5%", 0.9994: "99.9%", 0.9996: "over 99.9%",
            1 - 1e-5: "over 99.9%", 1 - 1e-7: "100.0%", 1.0: "100.0%", 1.234: "123.4%", -0.4754: "−47.5%", -0.0003: "over −0.1%", 12.5: "1,250.0%",
        }.items()),
        *((percent_text, number, text) for number, text in {
            0.0: "0%", 0.004: "under 1%", 0.83: "83%", 0.994: "99%", 0.996: "over 99%", 1.0: "100%", 1.5: "150%", -0.02: "−2%",
        }.items()),
        *((number_text, number, text) for number, text in {
            9.996: "10.0", 99.96: "100", 0.99949: "0.999", 0.09996: "0.100", 999.4: "999", 999.6: "1,000", 0.0009997: "0.00100",
            0.000999: "10⁻³", 999_999.6: "10⁶", 9.96e-7: "10⁻⁶", -1e-9: "−10⁻⁹", math.nan: "not a number", math.inf: "∞",
            -math.inf: "−∞",
        }.items()),
        *((power_text, number, text) for number, text in {
            99.6: "100", 99.4: "99", 999.4: "999", 999.6: "10³", 1000.0: "10³", 0.00996: "0.01", 0.0094: "9.4 × 10⁻³", 0.0: "0",
            -99.6: "−100", -8.9e-7: "−8.9 × 10⁻⁷", 1e20: "10²⁰", math.inf: "∞",
        }.items()),
        *((cell_text, number, text) for number, text in {
            0.9996: "1.00", 0.99949: "0.999", 9.996: "10.0", -0.0004: "0.000", math.nan: "not a number", -math.inf: "−∞",
        }.items()),
        *((sum_text, number, text) for number, text in {
            9.996: "10.00", -0.004: "0.00", -4.126: "−4.13", 1e20: "10²⁰", math.inf: "∞", math.nan: "not a number",
        }.items()),
        *((signed_text, number, text) for number, text in {
            0.0: "0", 0.09996: "+0.100", -0.0009997: "−0.00100", math.inf: "+∞", math.nan: "not a number",
        }.items()),
    ],
)  # fmt: skip
def test_rounding_gives_no_other_form_and_nothing_that_is_not_so(write, number, text) -> None:
    """By hand: what rounds to a limit has the limit's form; less than all is not all, and more than nothing is not nothing."""
    assert write(number).replace("\xa0", " ") == text
    assert write(np.float64(number)) == write(number)


def test_one_is_counted_as_one() -> None:
    assert [counted(number, "key") for number in (0, 1, 2, 1234)] == [
        "0 keys",
        "1 key",
        "2 keys",
        "1,234 keys",
    ]
    assert [counted(number, "query", "queries") for number in (1, 2)] == ["1 query", "2 queries"]


FIGURES = {
    path.name: path.read_text(encoding="utf-8") for path in Path(attnviz.figures.__file__).parent.glob("*.py")
}


IN_HOVER = re.compile(r"%\{+[\w.\[\]]+:([^}]+)\}")
"""The form of a number in a hover text, also where Python fills it in."""


def hover_forms(source: str) -> set[str]:
    """Forms in which plotly writes numbers in the hover texts of a figure's module."""
    return {
        match.removeprefix("{sign}").removeprefix("{sign").replace("{HOVER_NUMBER", HOVER_NUMBER)
        for match in IN_HOVER.findall(source)
    }


def other_forms(source: str) -> set[str]:
    """Those that are not the house's: three significant digits, whole numbers with commas, and labels as they are."""
    return hover_forms(source) - {HOVER_NUMBER, f"+{HOVER_NUMBER}", ",", "c", ""} | set(
        re.findall(r"char\.mod\([^)]+\)", source)
    )


def test_numbers_in_hover_texts_have_the_form_of_the_house() -> None:
    assert sum(bool(hover_forms(source)) for source in FIGURES.values()) > 10
    assert_none(
        f"attnviz/figures/{name} has a number in the form {form!r}"
        for name, source in FIGURES.items()
        for form in sorted(other_forms(source))
    )


def test_another_form_is_noticed() -> None:
    cases = {
        '"weight %{customdata:.4f}"': {".4f"},
        'f"{name} %{{y:.3f}}"': {".3f"},
        '"%{customdata[0]:.1e}"': {".1e"},
        'np.char.mod("%.2f", x)': {'char.mod("%.2f", x)'},
    }
    assert {source: other_forms(source) for source in cases} == cases
