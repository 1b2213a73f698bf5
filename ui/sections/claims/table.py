"""The numbers of all claims as CSV."""

from dataclasses import fields

import numpy as np

from attnviz.heads.claims import Claims
from attnviz.records import heads_in
from attnviz.records.table import table_csv


def as_csv(claims: Claims) -> bytes:
    """A line for each head: all its numbers."""
    measured = {one.name: found for one in fields(claims) if (found := getattr(claims, one.name)) is not None}
    places = heads_in(claims.positive)
    rows = (
        [*place, *("" if np.isnan(found[place]) else float(found[place]) for found in measured.values())]
        for place in places
    )
    return table_csv(["layer", "head", *(name.replace("_", " ") for name in measured)], rows)
