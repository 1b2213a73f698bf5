"""The points of a map as CSV, with how they were placed."""

from attnviz.records import Projection
from attnviz.records.table import table_csv


def points_csv(projection: Projection) -> bytes:
    """A row for each point; method, vectors and settings stand in each row, so that it can be read alone."""
    settings = [f"{name}={value}" for name, value in projection.parameters.items()]
    made = [projection.method, projection.space, " ".join(settings)]
    n_axis = projection.points.shape[1]
    rows = []
    for role, position, point in zip(projection.role, projection.position, projection.points, strict=True):
        tokens = projection.query_tokens if role == "query" else projection.key_tokens
        rows.append([role, f"{position} {tokens.labels[position]}", *map(str, point), *made])
    return table_csv(["role", "token", *"xyz"[:n_axis], "method", "vectors", "settings"], rows)
