"""The points of a map as CSV, with how they were placed; and the columns that say how reliable a map is."""

import numpy as np

from attnviz.records import Chance, Projection, Reliability
from attnviz.records.table import table_csv

RELIABILITY = (
    "mean correlation",
    "worst correlation",
    "nearest is strongest",
    "trustworthiness",
    "p of mean correlation",
    "p of nearest is strongest",
    "permutations",
)
"""Names of the columns that `reliability` fills."""


def reliability(in_map: Reliability, chance: Chance, trustworthiness: float) -> list[float | int | str]:
    """How reliable a map is, for the columns `RELIABILITY`; an entry is empty where the map lacks the number."""
    numbers = (
        in_map.order_correlation,
        in_map.worst_correlation,
        in_map.nearest_agreement,
        trustworthiness,
        chance.correlation_p,
        chance.nearest_p,
        chance.n_permutations,
    )
    return ["" if np.isnan(number) else number for number in numbers]


def points_csv(projection: Projection) -> bytes:
    """A row for each point; every row repeats method, vectors and settings, so that it can be read alone."""
    settings = [f"{name}={value}" for name, value in projection.parameters.items()]
    made = [projection.method, projection.space, " ".join(settings)]
    n_axis = projection.points.shape[1]
    rows = []
    for role, position, point in zip(projection.role, projection.position, projection.points, strict=True):
        tokens = projection.query_tokens if role == "query" else projection.key_tokens
        rows.append([role, f"{position} {tokens.labels[position]}", *map(str, point), *made])
    return table_csv(["role", "token", *"xyz"[:n_axis], "method", "vectors", "settings"], rows)
