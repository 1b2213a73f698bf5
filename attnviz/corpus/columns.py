"""The numbers of a text that a profile is made of, by name.

A number of a head over a corpus is the mean over the texts for which it is defined.
"""

from attnviz.heads.head_statistics import STATISTICS

MEASURED = tuple(name for name, statistic in STATISTICS.items() if statistic.in_profiles)
"""Statistics that are sums over cells, so that a batch gives them at once."""
NORMS = "_norms"
"""Suffix of a statistic of norm-based weights, each row divided by its sum."""
ACTIVATION, QUERY = "activation", "activation_query"
"""The length of what a head adds to the stream at the token where it adds most, and that token's position; added special tokens
are left out. Without W_O, the length of the head's output."""
EDGES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16, 32, 64, 128, 256)
"""Largest distance of each histogram bin, the same on both sides of the query; each side has one bin beyond the last."""
N_POSITION = 32
"""Positions of keys, from the first on, whose mean weight is kept."""


def distance_name(bin_: int) -> str:
    """The column of a bin of distances: 0 for a token itself, negative for keys before it."""
    return f"distance_{bin_:+d}"


def position_name(position: int) -> str:
    """The column of the weight on the key at a position."""
    return f"position_{position}"


DISTANCES = tuple(distance_name(offset) for offset in range(-len(EDGES), len(EDGES) + 1))
POSITIONS = tuple(position_name(position) for position in range(N_POSITION))
MEANS = (*MEASURED, *(name + NORMS for name in MEASURED), ACTIVATION)
"""Numbers whose mean has an interval."""
UNBOUNDED = ("distance", "distance" + NORMS, ACTIVATION)
"""Those that may be above 1; none is below 0."""
PLACES = (*DISTANCES, *POSITIONS)
"""Numbers whose mean has no interval."""
COLUMNS = (*MEANS, *PLACES, QUERY)
