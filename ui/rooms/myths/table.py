"""The numbers of all claims as CSV."""

from dataclasses import fields

import numpy as np

from attnviz.heads.claims import Claims
from attnviz.records import heads_in
from attnviz.records.table import table_csv


def as_csv(claims: Claims) -> bytes:
    """A line for each head: all its numbers."""
    measured = {
        field.name: array for field in fields(claims) if (array := getattr(claims, field.name)) is not None
    }
    places = heads_in(claims.positive)
    rows = (
        [*place, *("" if np.isnan(table[place]) else float(table[place]) for table in measured.values())]
        for place in places
    )
    return table_csv(["layer", "head", *(name.replace("_", " ") for name in measured)], rows)
