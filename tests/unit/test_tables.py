"""Tables on pages show whole rows."""

import ast
from pathlib import Path

import pytest

from ui.shell.table import whole_rows

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for folder in ("ui", "pages") for path in (ROOT / folder).rglob("*.py"))


def heights_of_tables(source: str) -> list[bool]:
    """For every table that can be scrolled, whether its height is one of whole rows."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [
        any(
            keyword.arg == "height" and ast.unparse(keyword.value).startswith("whole_rows(")
            for keyword in call.keywords
        )
        for call in calls
        if ast.unparse(call.func) in ("st.dataframe", "st.data_editor")
    ]


def test_a_height_without_whole_rows_is_found():
    assert heights_of_tables("st.dataframe(rows, height=400)") == [False]
    assert heights_of_tables("st.dataframe(rows, height=whole_rows(3))\nst.dataframe(rows)") == [True, False]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_table_cuts_a_row(path):
    assert all(heights_of_tables(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(("n_row", "height"), [(3, 142), (10, 387), (500, 387)])
def test_the_height_is_that_of_whole_rows(n_row, height):
    """35 px for the header and each row, and 2 for the frame: DataFrame.js of Streamlit 1.67."""
    assert whole_rows(n_row) == height
