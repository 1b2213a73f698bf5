"""The joint map of one head over many sentences.

The vectors fed in are made by `attnviz.maps.spaces`, the points by `attnviz.maps.layouts`, the figures of reliability
by `attnviz.maps.reliability`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import numpy as np
from jaxtyping import Float

from attnviz.arguments import typed
from attnviz.errors import ProjectionError
from attnviz.maps.chance import chance
from attnviz.maps.layouts import METHOD_NAMES, Layout, lay_out, limits, settle
from attnviz.maps.reliability import reliability, trustworthiness
from attnviz.maps.spaces import Space, fed
from attnviz.records import Chance, Progress, Record, Reliability

MOST_COMPARED = 2_000
"""Most points whose trustworthiness is measured: all their distances take 32 MB."""


JointMethod = Literal["pca", "umap", "tsne"]
"""Methods for many points. Classical scaling would need all their distances; the attention map could not place the
sentences relative to each other, since no query sees a key of another sentence."""
JOINT_METHODS: tuple[JointMethod, ...] = get_args(JointMethod)

_ITERATIONS = 750
"""Steps of t-SNE, 250 with early exaggeration and 500 without: the defaults of openTSNE 1.0.4."""
_METRIC = "euclidean"  # with lifted vectors, a nearer key then has a higher score
_LAID_OUT = 0.85  # approximate share of the time that the layout takes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JointMap(Record):
    """Queries and keys of one head over a collection as points: all queries first, then all keys."""

    points: Float[np.ndarray, "point axis"]
    method: str
    """Method that placed the points: one of `JOINT_METHODS`; "pca" where it needs more points."""
    space: Space
    """The vectors that were fed to the method."""
    parameters: Mapping[str, Any]
    """Parameters of the method, adjusted to the number of points; empty for "pca"."""
    remark: str
    """What had to be changed to draw the map, in one sentence; empty when nothing was."""
    in_map: Reliability
    """How well the map keeps the order of the scores within each sentence."""
    in_space: Reliability
    """How well the vectors that were fed in keep this order."""
    chance: Chance
    """How well the map would do so by chance, with key points permuted within each sentence."""
    trustworthiness: float
    """Whether neighbours in the map are neighbours among the vectors fed in, from 0 to 1."""
    n_compared: int
    """Points among which trustworthiness was measured: all, or a sample of `MOST_COMPARED`."""


@typed
def joint_map(
    queries: Float[np.ndarray, "token d_head"],
    keys: Float[np.ndarray, "token d_head"],
    scores: Sequence[Float[np.ndarray, "_query _key"]],
    *,
    method: str = "pca",
    space: Space = "lifted",
    perplexity: float = 30.0,
    neighbours: int = 15,
    min_dist: float = 0.1,
    seed: int = 0,
    progress: Progress | None = None,
) -> JointMap:
    """Queries and keys of one head laid out together, all sentences in one map; same settings, same picture.

    Keys are centred over the whole collection. That is one shift for all keys, so the weights within every sentence
    stay what they are. Distances between tokens of different sentences stand for scores that the model never computes.

    Args:
        queries, keys: of one head, as `Collection.vectors` gives them.
        scores: of each sentence, as `Collection.scores` gives them; reliability is measured against them.
        method: one of `JOINT_METHODS`, by Euclidean distance.
        space: vectors that are fed to the method, one of `attnviz.maps.spaces.SPACES`.
        perplexity: of t-SNE, at least 1; 30 is the default of openTSNE 1.0.4.
        neighbours, min_dist: of UMAP, at least 2, and 0 to 1.
        seed: random seed of the method.
        progress: called with the share that is done, 0 to 1.

    Raises:
        ProjectionError: a parameter outside its range, or UMAP where it is not installed.
    """
    asked: dict[str, Any] = {
        "perplexity": perplexity,
        "iterations": _ITERATIONS,
        "neighbours": neighbours,
        "min_dist": min_dist,
        "seed": seed,
    }
    if method not in JOINT_METHODS:
        raise ProjectionError(
            f"Method {method!r} was asked for; a map of many sentences takes {', '.join(JOINT_METHODS)}. Select one of those."
        )
    told = progress or (lambda share: None)
    vectors = np.concatenate(fed(queries, keys, space))
    n_point = len(vectors)
    for name, (lowest, _) in limits(method, n_point).items():
        if not asked[name] >= lowest:
            raise ProjectionError(
                f"{name.capitalize()} {asked[name]} was asked for; {METHOD_NAMES[method]} takes {lowest:g} or more. Raise it."
            )
    method, used, remark = settle(vectors, method, _METRIC, asked)
    laid_out = lay_out(
        vectors, cast(Layout, method), metric=_METRIC, progress=lambda share: told(_LAID_OUT * share), **used
    )
    told(_LAID_OUT)
    in_map = _within_sentences(laid_out, scores)
    by_chance = chance(*_sentences(laid_out, scores))
    told((1 + _LAID_OUT) / 2)
    compared = np.arange(n_point)
    if n_point > MOST_COMPARED:
        compared = np.random.default_rng(0).choice(n_point, MOST_COMPARED, replace=False)
    return JointMap(
        points=laid_out,
        method=method,
        space=space,
        parameters=used,
        remark=remark,
        in_map=in_map,
        in_space=_within_sentences(vectors, scores),
        chance=by_chance,
        trustworthiness=trustworthiness(vectors[compared], laid_out[compared], metric=_METRIC),
        n_compared=len(compared),
    )


def _sentences(
    points: Float[np.ndarray, "point axis"], scores: Sequence[Float[np.ndarray, "_query _key"]]
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Query points, key points and scores of each sentence."""
    n_token, first = len(points) // 2, 0
    for score in scores:
        here = slice(first, first + len(score))
        yield points[:n_token][here], points[n_token:][here], score
        first += len(score)


def _within_sentences(
    points: Float[np.ndarray, "point axis"], scores: Sequence[Float[np.ndarray, "_query _key"]]
) -> Reliability:
    """Reliability of each sentence by itself, combined as the mean over all queries that see two keys."""
    of_all = [reliability(*sentence) for sentence in _sentences(points, scores)]
    each = [of_sentence for of_sentence in of_all if of_sentence.n_query]
    if not each:
        return of_all[0]
    n_query = sum(of_sentence.n_query for of_sentence in each)
    share = np.array([of_sentence.n_query for of_sentence in each]) / n_query
    return Reliability(
        n_query=n_query,
        order_correlation=float(share @ [of_sentence.order_correlation for of_sentence in each]),
        worst_correlation=max(of_sentence.worst_correlation for of_sentence in each),
        nearest_agreement=float(share @ [of_sentence.nearest_agreement for of_sentence in each]),
    )
