"""All maps of one head: each is rated as it is when made by itself, and the best comes first."""

import csv
import io
import pickle
from dataclasses import replace

import numpy as np
import pytest

from attnviz.maps.layouts import METRICS, lay_out
from attnviz.maps.projection import METHODS, arrays, project
from attnviz.maps.ranking import MAPS, MapChoice, RatedMap, best_first, ranking_csv, rate
from attnviz.maps.spaces import SPACES, fed
from attnviz.records import Chance, Reliability

SETTINGS = {
    "dimensions": 2,
    "perplexity": 5.0,
    "iterations": 250,
    "neighbours": 4,
    "min_dist": 0.1,
    "seed": 3,
}


def rated(correlation: float, method: str = "tsne", **others: object) -> RatedMap:
    return RatedMap(
        choice=MapChoice(method=method),
        in_map=Reliability(
            n_query=3, order_correlation=correlation, worst_correlation=0.5, nearest_agreement=0.25
        ),
        chance=Chance(
            n_permutations=999, correlation=-0.4, correlation_p=0.125, nearest=0.5, nearest_p=0.625
        ),
        trustworthiness=0.75,
        divergence=None,
        duration_s=2.0,
        **others,
    )


class TestMaps:
    def test_each_once_and_every_method_and_space(self) -> None:
        assert len(set(MAPS)) == len(MAPS)
        assert {choice.method for choice in MAPS} == set(METHODS)
        for method in set(METHODS) - {"attention", "mds"}:
            assert {choice.space for choice in MAPS if choice.method == method} == set(SPACES)

    def test_what_is_left_out_is_there_by_another_name(self, door_trace) -> None:
        """Every map that can be chosen is one of those compared, or the same as one of them."""
        query, key = door_trace.query(3, 1), door_trace.key(3, 1)
        vectors = {space: np.concatenate(fed(query, key, space)) for space in SPACES}
        by_cosine = [
            lay_out(vectors[space], "mds", metric="cosine").astype(np.float64)
            for space in ("centred", "balanced")
        ]
        np.testing.assert_allclose(*(np.abs(points) for points in by_cosine), atol=1e-5)
        for space in SPACES:
            scaled = lay_out(vectors[space], "mds", metric="euclidean")
            principal = lay_out(vectors[space], "pca")
            np.testing.assert_allclose(np.abs(scaled), np.abs(principal), rtol=1e-3, atol=1e-3)
        left_out = {
            (method, space, metric)
            for method in ("tsne", "umap", "mds")
            for space in SPACES
            for metric in METRICS
            if MapChoice(method=method, space=space, metric=metric) not in MAPS
        }
        assert left_out == {
            *((method, "balanced", "cosine") for method in ("tsne", "umap", "mds")),
            *(("mds", space, "euclidean") for space in SPACES),
        }


@pytest.mark.parametrize(
    "choice",
    [
        MapChoice(method="attention"),
        MapChoice(method="pca", space="balanced"),
        MapChoice(method="tsne", space="lifted", metric="euclidean"),
        MapChoice(method="tsne", space="centred", metric="cosine"),
        MapChoice(method="mds", space="raw", metric="cosine"),
    ],
    ids=lambda choice: f"{choice.method}-{choice.space}",
)
def test_a_map_is_rated_as_the_one_on_screen(choice, door_trace) -> None:
    rating = rate(*arrays(door_trace, 3, 1), choice, **SETTINGS)
    map_ = project(
        door_trace, 3, 1, method=choice.method, space=choice.space, metric=choice.metric, **SETTINGS
    )
    assert rating.choice == choice
    assert rating.in_map.order_correlation == map_.in_map.order_correlation
    assert rating.in_map.worst_correlation == map_.in_map.worst_correlation
    assert rating.chance.correlation_p == map_.chance.correlation_p
    assert rating.chance.nearest == map_.chance.nearest
    assert rating.in_map.worst_query == map_.in_map.worst_query
    assert rating.in_map.nearest_agreement == map_.in_map.nearest_agreement
    assert rating.trustworthiness == map_.trustworthiness
    assert rating.divergence == map_.divergence
    assert 0 < rating.duration_s < 30


def test_another_process_can_be_asked(door_trace) -> None:
    call = pickle.loads(pickle.dumps((rate, (*arrays(door_trace, 3, 1), MAPS[0]), SETTINGS)))
    assert len(pickle.dumps(call)) < 10_000  # the arrays of one head: 2 x 11 x 32 and 2 x 11 x 11 numbers
    rating = pickle.loads(pickle.dumps(call[0](*call[1], **call[2])))
    assert rating.choice == MAPS[0]
    assert rating.divergence > 0


def test_too_few_tokens_are_rated_too(embedded) -> None:
    trace = embedded.trace("a")
    for choice in MAPS:
        if choice.method != "umap":
            rating = rate(*arrays(trace, 0, 0), choice, **SETTINGS)
            assert -1 <= rating.in_map.order_correlation <= 1


def test_the_best_comes_first_and_what_has_no_number_last() -> None:
    maps = [rated(-0.2), rated(float("nan")), rated(0.4), rated(-0.9)]
    assert [map_.in_map.order_correlation for map_ in best_first(maps)][:3] == [-0.9, -0.2, 0.4]
    assert np.isnan(best_first(maps)[3].in_map.order_correlation)


def test_as_a_table() -> None:
    maps = [
        rated(-0.5),
        replace(rated(-0.75, "attention"), divergence=0.125, trustworthiness=float("nan")),
        rated(-0.25, "pca"),
    ]
    rows = list(csv.reader(io.StringIO(ranking_csv(maps).decode("utf-8-sig"))))
    assert rows[1:] == [
        ["Attention map", "weights", "", "-0.75", "0.5", "0.25", "", "0.125", "0.625", "999", "0.125", "2.0"],
        ["t-SNE", "lifted", "euclidean", "-0.5", "0.5", "0.25", "0.75", "0.125", "0.625", "999", "", "2.0"],
        ["PCA", "lifted", "", "-0.25", "0.5", "0.25", "0.75", "0.125", "0.625", "999", "", "2.0"],
    ]
    assert rows[0] == [
        *("method", "fed with", "distance", "mean correlation", "worst correlation", "nearest is strongest"),
        *("trustworthiness", "p of mean correlation", "p of nearest is strongest", "permutations"),
        *("divergence in nats", "seconds"),
    ]
