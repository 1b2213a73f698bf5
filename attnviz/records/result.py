"""What a computation gives, and how it shows itself: as CSV, as a DataFrame, as a figure and as a table in a notebook.

numpy only; pandas and plotly are imported when they are asked for.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from html import escape
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from attnviz.errors import ArgumentError
from attnviz.records.record import Record
from attnviz.records.table import Table, table_csv

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    from plotly import graph_objects as go

_FIGURES = "attnviz.figures.of_results"
"""What stands above the records, and is looked up when it is asked for."""

MOST_ROWS, MOST_COLUMNS = 30, 40
"""Most rows and columns of the table in a notebook."""
_GROWS, _FALLS = "0,114,178", "213,94,0"
"""The blue and the vermilion of Okabe and Ito 2008, "Color Universal Design"."""
_STRONGEST = 0.45
"""Opacity behind the largest number: text in the notebook's own colour stays readable on it, light or dark."""
_CELL = "padding:2px 8px;border:0;white-space:nowrap;color:inherit;text-align:"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Result(Record):
    """A record that shows itself; a subclass has `_table`, and `attnviz.figures.of_results` its figure.

    The table holds numbers and texts as they are: read from CSV, a token "1" would be a number, and "nan" nothing.
    """

    _IS_MATRIX: ClassVar[bool] = False
    """Whether the first column names the rows of a matrix, whose numbers have one scale."""
    _MOST_ROWS: ClassVar[int] = MOST_ROWS

    def _table(self) -> Table:
        """Names of the columns, and the rows; a cell without a number is empty."""
        raise NotImplementedError

    def csv(self) -> bytes:
        """The numbers as CSV; see `attnviz.records.table`."""
        return table_csv(*self._table())

    def frame(self) -> "pd.DataFrame":
        """The rows of `csv` as a DataFrame of pandas.

        Raises:
            ArgumentError: pandas is not installed.
        """
        return frame_of(self._table(), is_matrix=self._IS_MATRIX)

    def figure(self, *, theme: Literal["light", "dark"] = "light", **options: Any) -> "go.Figure":
        """The figure that the app draws of it.

        Args:
            options: as the function takes them that `attnviz.figures.of_results` names.
        """
        return import_module(_FIGURES).draw_result(self, theme=theme, **options)

    def _repr_html_(self) -> str:
        """A table for notebooks, whose numbers are shaded; without a script, in the notebook's own colours."""
        table = _html(self._table(), is_matrix=self._IS_MATRIX, most_rows=self._MOST_ROWS)
        return f'<div style="overflow-x:auto;color:inherit"><p style="margin:4px 0">{self._headline()}</p>{table}</div>'

    def _headline(self) -> str:
        """What it is, as HTML: its name, the first sentence about it, and its single numbers and words."""
        said = (type(self).__doc__ or "").partition("\n")[0].rstrip(".").replace("`", "")
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        facts = [
            name.replace("_", " ") + f" {_written(value)}" * (value is not True)
            for name, value in values
            if isinstance(value, str | int | float | np.number) and value != "" and value is not False
        ]
        return f"<b>{type(self).__name__}</b>: {escape('. '.join(filter(None, [said, ', '.join(facts)])))}"


def frame_of(table: Table, *, is_matrix: bool = False) -> "pd.DataFrame":
    """A table as a DataFrame: missing numbers are NaN, missing whole numbers NA.

    Args:
        is_matrix: whether the first column is the index.

    Raises:
        ArgumentError: pandas is not installed.
    """
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise ArgumentError("A DataFrame needs pandas: pip install pandas.") from error
    names, rows = table

    def column(cells: list[object]) -> Any:
        if not _is_numeric(cells):
            return cells
        is_blank = [isinstance(cell, str) for cell in cells]
        kinds = {type(cell) for cell, blank in zip(cells, is_blank, strict=True) if not blank}
        if all(issubclass(kind, int | np.integer) for kind in kinds):
            whole = [None if blank else int(cell) for cell, blank in zip(cells, is_blank, strict=True)]  # type: ignore[call-overload]
            return pd.array(whole, dtype="Int64" if any(is_blank) else "int64")
        numbers = [np.nan if blank else cell for cell, blank in zip(cells, is_blank, strict=True)]
        return np.array(numbers, dtype=np.float32 if kinds == {np.float32} else np.float64)

    columns = [column([row[at] for row in rows]) for at in range(len(names))]
    frame = pd.DataFrame(dict(enumerate(columns)))
    frame.columns = pd.Index([str(name) for name in names])
    return frame.set_index(frame.columns[0]) if is_matrix else frame


def _is_numeric(cells: Sequence[object]) -> bool:
    """Whether all cells are numbers or empty, and at least one is a number."""
    given = [cell for cell in cells if not (isinstance(cell, str) and not cell)]
    return bool(given) and all(
        isinstance(cell, int | float | np.number) and not isinstance(cell, bool) for cell in given
    )


def _html(table: Table, *, is_matrix: bool, most_rows: int) -> str:
    names, rows = table
    shown = [list(islice(row, MOST_COLUMNS + 1)) for row in rows[:most_rows]]
    n_column = min(len(names), MOST_COLUMNS + 1)
    largest = _largest(shown, n_column, is_matrix=is_matrix)
    sides = ["right" if _is_numeric([row[at] for row in shown]) else "left" for at in range(n_column)]
    head = "".join(
        f'<th style="{_CELL}{side}">{escape(str(name))}</th>'
        for name, side in zip(names, sides, strict=False)
    )
    body = "".join(
        f'<tr style="background:transparent">{"".join(_cells(row, largest))}</tr>' for row in shown
    )
    left_out = [
        f"{count - kept:,} more {what}"
        for count, kept, what in ((len(rows), len(shown), "rows"), (len(names), n_column, "columns"))
        if count > kept
    ]
    note = f'<p style="margin:4px 0">{" and ".join(left_out)}: frame() has all.</p>' * bool(left_out)
    style = "border-collapse:collapse;color:currentColor;font-variant-numeric:tabular-nums"
    return f'<table style="{style}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}'


def _largest(rows: Sequence[Sequence[object]], n_column: int, *, is_matrix: bool) -> Mapping[int, float]:
    """The number that has the strongest shade of each column that is shaded, or of the whole matrix; no shade for whole numbers."""
    largest: dict[int, float] = {}
    for at in range(n_column):
        sizes = [abs(float(cell)) for row in rows if isinstance(cell := row[at], float | np.floating)]
        sizes = [size for size in sizes if np.isfinite(size)]
        if sizes:
            largest[at] = max(sizes)
    return dict.fromkeys(largest, max(largest.values())) if is_matrix and largest else largest


def _cells(row: Sequence[object], largest: Mapping[int, float]) -> Iterator[str]:
    for at, cell in enumerate(row):
        is_number = isinstance(cell, int | float | np.number) and not isinstance(cell, bool)
        shade = ""
        if at in largest and largest[at] and isinstance(cell, float | np.floating) and np.isfinite(cell):
            hue = _GROWS if cell >= 0 else _FALLS
            shade = f";background:rgba({hue},{_STRONGEST * abs(float(cell)) / largest[at]:.3f})"
        side = "right" if is_number else "left"
        yield f'<td style="{_CELL}{side}{shade}">{escape(_written(cell))}</td>'


def _written(value: object) -> str:
    """A number to four digits, or a text."""
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)
