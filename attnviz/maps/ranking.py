"""All maps of one head, and how reliable each is.

Arrays in and a small record out, so that another process can do the work.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float

from attnviz.maps.layouts import METHOD_NAMES, METRICS, MISSING
from attnviz.maps.projection import place
from attnviz.maps.spaces import SPACES, Space
from attnviz.maps.table import RELIABILITY, reliability
from attnviz.records import Chance, Record, Reliability
from attnviz.records.table import table_csv


@dataclass(frozen=True, slots=True, kw_only=True)
class MapChoice:
    """The settings of a map: its method, and the vectors that are fed to it."""

    method: str
    space: Space = "lifted"
    """Not used by the attention map."""
    metric: str = "euclidean"
    """Not used by the attention map and "pca"."""


def _choices() -> tuple[MapChoice, ...]:
    """Every distinct map, the fastest first.

    Balanced vectors have the same cosine distances as centred vectors, since lengths do not count; and classical
    scaling of Euclidean distances is "pca".
    """
    fed = [
        (space, metric) for space in SPACES for metric in METRICS if (space, metric) != ("balanced", "cosine")
    ]
    return (
        MapChoice(method="attention"),
        *(MapChoice(method="pca", space=space) for space in SPACES),
        *(MapChoice(method="mds", space=space, metric=metric) for space, metric in fed if metric == "cosine"),
        *(
            MapChoice(method=method, space=space, metric=metric)
            for method in ("tsne", "umap")
            if method not in MISSING
            for space, metric in fed
        ),
    )


MAPS = _choices()
"""The maps that are compared: those that can be made here."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RatedMap(Record):
    """A map of one head and how reliable it is; see `attnviz.records.Placement`."""

    choice: MapChoice
    in_map: Reliability
    chance: Chance
    trustworthiness: float
    divergence: float | None
    duration_s: float
    """Seconds to place the points and measure the map, without what a method does only once per process."""


def rate(
    query: Float[np.ndarray, "query d_head"],
    key: Float[np.ndarray, "key d_head"],
    scores: Float[np.ndarray, "query key"],
    weights: Float[np.ndarray, "query key"],
    choice: MapChoice,
    *,
    dimensions: int,
    **parameters: Any,
) -> RatedMap:
    """How reliable this map of a head is; arguments as for `attnviz.maps.projection.place`.

    Raises:
        ProjectionError: a parameter outside its range.
    """
    _make_ready(choice.method, choice.metric, dimensions)
    started = time.perf_counter()
    placed = place(
        query,
        key,
        scores,
        weights,
        method=choice.method,
        space=choice.space,
        metric=choice.metric,
        dimensions=dimensions,
        **parameters,
    )
    return RatedMap(
        choice=choice,
        in_map=placed.in_map,
        chance=placed.chance,
        trustworthiness=placed.trustworthiness,
        divergence=placed.divergence,
        duration_s=time.perf_counter() - started,
    )


def best_first(rated: Sequence[RatedMap]) -> list[RatedMap]:
    """Maps sorted by their mean correlation of score and distance; maps without a correlation last."""
    return sorted(rated, key=lambda rating: np.nan_to_num(rating.in_map.order_correlation, nan=np.inf))


def ranking_csv(rated: Sequence[RatedMap]) -> bytes:
    """The maps as a table, best first; an entry is empty where a map does not have the number."""
    header = ["method", "fed with", "distance", *RELIABILITY, "divergence in nats", "seconds"]
    rows = []
    for rating in best_first(rated):
        choice = rating.choice
        is_fitted = choice.method == "attention"
        rows.append(
            [
                METHOD_NAMES[choice.method],
                "weights" if is_fitted else choice.space,
                "" if is_fitted or choice.method == "pca" else choice.metric,
                *reliability(rating.in_map, rating.chance, rating.trustworthiness),
                "" if rating.divergence is None else rating.divergence,
                rating.duration_s,
            ]
        )
    return table_csv(header, rows)


@cache
def _make_ready(method: str, metric: str, dimensions: int) -> None:
    """Makes a method import and compile what it needs, which takes UMAP 10 to 25 seconds."""
    few = np.random.default_rng(0).normal(size=(4, 6, 6)).astype(np.float32)
    settings: dict[str, Any] = {
        "perplexity": 1.0,
        "iterations": 250,
        "neighbours": 2,
        "min_dist": 0.0,
        "seed": 0,
    }
    query, key, scores, weights = few
    place(
        query,
        key,
        scores,
        weights,
        method=method,
        space="raw",
        metric=metric,
        dimensions=dimensions,
        **settings,
    )
