"""The columns that say how reliable a map is: each holds the number that its name says."""

from attnviz.maps.projection import project
from attnviz.maps.table import RELIABILITY, reliability


def test_each_column_holds_what_it_is_called(door_trace):
    made = project(door_trace, 3, 1, method="pca")
    chance = made.chance
    assert len({chance.correlation_p, chance.nearest_p, made.in_map.order_correlation}) == 3
    assert dict(zip(RELIABILITY, reliability(made.in_map, chance, made.trustworthiness), strict=True)) == {
        "mean correlation": made.in_map.order_correlation,
        "worst correlation": made.in_map.worst_correlation,
        "nearest is strongest": made.in_map.nearest_agreement,
        "trustworthiness": made.trustworthiness,
        "p of mean correlation": chance.correlation_p,
        "p of nearest is strongest": chance.nearest_p,
        "permutations": chance.n_permutations,
    }
