"""Query and key vectors of one head as a map, with figures of its reliability.

The vectors fed in are made by `attnviz.maps.spaces`, the points by `attnviz.maps.layouts` and
`attnviz.maps.attention_map`, the figures of reliability by `attnviz.maps.reliability`. Neither torch nor transformers
is needed.
"""

from dataclasses import fields
from inspect import signature
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from jaxtyping import Float

from attnviz.arguments import typed
from attnviz.errors import ProjectionError
from attnviz.maps import attention_map
from attnviz.maps.chance import chance
from attnviz.maps.layouts import (
    FEWEST_ITERATIONS,
    LARGEST_SEED,
    LAYOUTS,
    METRICS,
    MOST_ITERATIONS,
    Engine,
    Layout,
    lay_out,
    limits,
    settle,
)
from attnviz.maps.reliability import reliability, trustworthiness
from attnviz.maps.spaces import Space, fed
from attnviz.records import Kind, Placement, Progress, Projection, Role

if TYPE_CHECKING:
    from attnviz.model.trace import Trace

METHODS = ("attention", *LAYOUTS)
_RANGES: dict[str, tuple[str, int, float]] = {
    "perplexity": ("perplexity", 1, np.inf),
    "iterations": ("number of iterations", FEWEST_ITERATIONS, MOST_ITERATIONS),
    "neighbours": ("number of neighbours", 2, np.inf),
    "min_dist": ("smallest distance", 0, 1),
    "seed": ("seed", 0, LARGEST_SEED),
}
"""Parameters with the lowest and the highest value that makes sense for any number of points."""
_EVEN = "Every query attends to all its keys alike: all points coincide."


@typed
def project(
    trace: "Trace",
    layer: int,
    head: int,
    *,
    kind: Kind | None = None,
    method: str = "tsne",
    space: Space = "raw",
    dimensions: int = 2,
    metric: str = "cosine",
    perplexity: float = 5.0,
    iterations: int = 1000,
    neighbours: int = 15,
    min_dist: float = 0.1,
    seed: int = 0,
    engine: Engine = "quickest",
    values: bool = False,
) -> Projection:
    """Queries and keys of one head laid out together; same settings, same picture.

    That holds on one machine, for any number of threads. The vectors are then the same too if torch uses MKL, unless it
    computed anything before attnviz was imported, which sets MKL_CBWR.

    Args:
        method: one of `METHODS`: "attention", the map that `attnviz.maps.attention_map` fits to the weights, or one of
            `attnviz.maps.layouts.LAYOUTS`.
        space: vectors that are fed to the method, one of `attnviz.maps.spaces.SPACES`; not used by the attention map.
        dimensions: axes of the map, 2 or 3.
        metric: "cosine" or "euclidean" distance between the vectors.
        perplexity: of t-SNE, the effective number of neighbours of a point, at least 1.
        iterations: of t-SNE and the attention map, most steps of the optimiser, 250 to 5000.
        neighbours: of UMAP, the number of neighbours of a point, at least 2.
        min_dist: of UMAP, the smallest distance between points, 0 to 1.
        seed: random seed of the method, 0 to 2^32 - 1. Features that differ between random seeds are not reliable.
        engine: of t-SNE, "quickest" for the number of points, or "scikit-learn" for any, the reference.
        values: whether value vectors are added as a third group; not for the attention map.

    Returns:
        Points [point, axis], queries first, then keys, then values, and how reliable they are. Perplexity and
        neighbours are lowered where there are too few points; ``remark`` then says so, and where all points coincide.

    Raises:
        ProjectionError: a parameter outside its range, values with the attention map, numbers that are not finite, or UMAP where
            it is not installed.
        SelectionError: no such layer, head or kind.
    """
    given = arrays(trace, layer, head, kind)
    placed = place(
        *given,
        value=trace.value(layer, head, kind) if values else None,
        method=method,
        space=space,
        dimensions=dimensions,
        metric=metric,
        perplexity=perplexity,
        iterations=iterations,
        neighbours=neighbours,
        min_dist=min_dist,
        seed=seed,
        engine=engine,
    )
    return with_tokens(placed, trace, layer, head, kind, weights=given[3])


DEFAULTS = {
    name: parameter.default
    for name, parameter in signature(project).parameters.items()
    if name not in ("kind", "values") and parameter.default is not parameter.empty
}
"""The defaults of `project`, as `place` takes them."""


@typed
def arrays(
    trace: "Trace", layer: int, head: int, kind: Kind | None = None
) -> tuple[
    Float[np.ndarray, "query d_head"],
    Float[np.ndarray, "key d_head"],
    Float[np.ndarray, "query key"],
    Float[np.ndarray, "query key"],
]:
    """Queries, keys, scores and weights of a head, as `place` takes them.

    Raises:
        SelectionError: no such layer, head or kind.
    """
    trace.query(layer, head, kind)  # refuses a trace without
    attention = trace.head(layer, head, kind)
    return attention.query, attention.key, *attention.scores_and_weights()


@typed
def with_tokens(
    placed: Placement,
    trace: "Trace",
    layer: int,
    head: int,
    kind: Kind | None = None,
    *,
    weights: Float[np.ndarray, "query key"] | None = None,
) -> Projection:
    """A placement of a head's vectors, with the tokens that its points belong to.

    Args:
        weights: of the head, where they are there already.
    """
    queries, keys = trace.query_tokens(kind), trace.key_tokens(kind)
    n_query, n_key = len(queries), len(keys)
    counts: tuple[tuple[Role, int], ...] = (
        ("query", n_query),
        ("key", n_key),
        ("value", len(placed.points) - n_query - n_key),
    )
    return Projection(
        **{field.name: getattr(placed, field.name) for field in fields(placed)},
        role=tuple(role for role, n in counts for _ in range(n)),
        position=np.concatenate([np.arange(n) for _, n in counts]),
        query_tokens=queries,
        key_tokens=keys,
        weights=trace.weights(layer, head, kind) if weights is None else weights,
        kind=trace.attention(layer, kind).kind,
        layer=layer,
        head=head,
        provenance=trace.provenance,
    )


def place(
    query: Float[np.ndarray, "query d_head"],
    key: Float[np.ndarray, "key d_head"],
    scores: Float[np.ndarray, "query key"],
    weights: Float[np.ndarray, "query key"],
    *,
    value: Float[np.ndarray, "key d_value"] | None = None,
    method: str,
    space: Space,
    dimensions: int,
    metric: str,
    engine: Engine = "quickest",
    progress: Progress | None = None,
    **parameters: Any,
) -> Placement:
    """The placement that `project` makes, from the `arrays` of a head, which can be sent to another process.

    Args:
        scores: minus infinity where a query may not see a key.
        value: vectors that are added as a third group, or None.
        engine: of t-SNE, `attnviz.maps.layouts.Engine`.
        progress: called with the share that is done, 0 to 1, where the method reports it.
        parameters: perplexity, iterations, neighbours, min_dist and seed, all of them.

    Raises:
        ProjectionError: as `project` does.
    """
    _check(method, metric, dimensions, value is not None, parameters)
    if (
        not (np.isfinite(weights).all() and np.isfinite(query).all() and np.isfinite(key).all())
        or np.isnan(scores).any()
    ):
        raise ProjectionError(
            "A map of a head was asked for; its queries, keys, scores or weights hold numbers that are not finite. Select another "
            "head or text."
        )
    n_query, n_key = scores.shape
    if method == "attention":
        space, metric = "lifted", "euclidean"  # trustworthiness is measured against these
    vectors, loss = _vectors(query, key, value, space), None
    if method == "attention":
        used = {name: parameters[name] for name in limits(method, n_query + n_key)}
        allowed = np.isfinite(scores)
        remark = _EVEN if attention_map.is_even(weights, allowed) else ""
        queries, keys = attention_map.fit(weights, allowed, dimensions=dimensions, progress=progress, **used)
        implied = attention_map.implied_weights(queries, keys, allowed)
        loss = float(attention_map.divergence(weights, implied).mean())
        points = np.concatenate([queries, keys])
    else:
        method, used, remark = settle(vectors, method, metric, parameters)
        if method != "pca":
            used = {"metric": metric, **used}
        points = lay_out(
            vectors, cast(Layout, method), dimensions=dimensions, engine=engine, progress=progress, **used
        )
    metric = used.get("metric", "euclidean")
    of_queries, of_keys = slice(n_query), slice(n_query, n_query + n_key)
    return Placement(
        points=points,
        method=method,
        space=space,
        parameters=used,
        remark=remark,
        in_map=reliability(points[of_queries], points[of_keys], scores),
        chance=chance((points[of_queries], points[of_keys], scores)),
        in_space=None
        if loss is not None
        else reliability(vectors[of_queries], vectors[of_keys], scores, metric=metric),
        trustworthiness=trustworthiness(vectors, points, metric=metric),
        divergence=loss,
    )


def _vectors(
    query: Float[np.ndarray, "query d_head"],
    key: Float[np.ndarray, "key d_head"],
    value: Float[np.ndarray, "key d_value"] | None,
    space: Space,
) -> Float[np.ndarray, "point d_fed"]:
    queries, keys = fed(query, key, space)
    if value is None:
        return np.concatenate([queries, keys])
    if value.shape[1] != key.shape[1]:
        raise ProjectionError(
            f"Values were asked for; they have {value.shape[1]} dimensions here and keys {key.shape[1]}, so one "
            "map cannot show both. Leave the values out."
        )
    lifted = np.zeros((len(value), keys.shape[1]), dtype=np.float32)
    lifted[:, : value.shape[1]] = value
    return np.concatenate([queries, keys, lifted])


def _check(method: str, metric: str, dimensions: int, values: bool, asked: dict[str, Any]) -> None:
    def refuse(what: str, valid: str) -> ProjectionError:
        return ProjectionError(f"{what} was asked for; a map takes {valid}. Select one of those.")

    if method not in METHODS:
        raise refuse(f"Method {method!r}", ", ".join(METHODS))
    if metric not in METRICS:
        raise refuse(f"Metric {metric!r}", " or ".join(METRICS))
    if dimensions not in (2, 3):
        raise refuse(f"A map of {dimensions} dimensions", "2 or 3 dimensions")
    if values and method == "attention":
        raise refuse("The attention map with values", "values in every map but the attention map")
    for name, (title, lowest, highest) in _RANGES.items():
        if not (lowest <= asked[name] <= highest and np.isfinite(asked[name])):
            valid = f"{lowest} or more" if highest == np.inf else f"{lowest} to {highest}"
            raise refuse(f"A {title} of {asked[name]}", valid)
