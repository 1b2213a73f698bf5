"""The columns of a table that say how reliable a map is."""

import numpy as np

from attnviz.records import Chance, Reliability

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
