"""Numbers in words, cells and hover texts have one form each."""

import re
from pathlib import Path

import attnviz
from attnviz.figures.numbers import HOVER_NUMBER, cell_text, counted, number_text, share_text, sum_text
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
