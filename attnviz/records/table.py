"""Numbers as CSV, for spreadsheets and programs.

RFC 4180, UTF-8 with a byte order mark, float32 in full.
"""

import csv
import io
from collections.abc import Iterable, Sequence

from attnviz.records.tokens import Axis

Table = tuple[Sequence[str], Sequence[Sequence[object]]]
"""Names of columns, and rows."""


def table_csv(header: Sequence[object], rows: Iterable[Sequence[object]]) -> bytes:
    """A table with a header line above its rows."""
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow(header)
    writer.writerows(rows)
    return file.getvalue().encode("utf-8-sig")


def entry_names(axis: Axis) -> list[str]:
    """Names of the entries of an axis in a table: the position of the first token and the label, "7 it".

    So names are unique, and none begins with ``=``, ``+``, ``-`` or ``@``, which a spreadsheet would run as a
    formula.

    Source: OWASP, "CSV Injection", on what spreadsheets run.
    """
    return [f"{position} {label}" for position, label in zip(axis.positions, axis.labels, strict=True)]
