"""Numbers as CSV, for spreadsheets and programs.

RFC 4180, UTF-8 with a byte order mark, float32 in full.
"""

import csv
import io
from collections.abc import Iterable, Sequence

import numpy as np

from attnviz.records.attention import AttentionPattern
from attnviz.records.tokens import Axis


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


def matrix_csv(pattern: AttentionPattern, *, scores: bool = False) -> bytes:
    """The matrix with queries down and keys across; cells that a query may not see are empty.

    Args:
        scores: whether to write the scores before the softmax instead of the weights, where the pattern has them.
    """
    cells = pattern.scores if scores and pattern.scores is not None else pattern.weights
    written = np.where(pattern.allowed, cells.astype(str), "").tolist()
    rows = ([name, *row] for name, row in zip(entry_names(pattern.queries), written, strict=True))
    return table_csv(["query \\ key", *entry_names(pattern.keys)], rows)
