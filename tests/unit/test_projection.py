"""A map of one head: what it may be asked, that it repeats, and what it says of itself."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import rel_entr
from scipy.stats import spearmanr
from sklearn.datasets import make_blobs
from sklearn.manifold import trustworthiness

import attnviz
from attnviz.maps.attention_map import implied_weights
from attnviz.maps.layouts import limits, principal_components
from attnviz.maps.projection import METHODS
from attnviz.maps.spaces import SPACES
from attnviz.model.model import Model
from attnviz.model.trace import Trace

pytestmark = pytest.mark.slow


def with_vectors(trace: Trace, query: np.ndarray, key: np.ndarray) -> Trace:
    """The trace with other queries and keys in layer 3, head 1."""
    layers = list(trace.layers["encoder"])
    new_query, new_key = layers[3].query.copy(), layers[3].key.copy()
    new_query[1], new_key[1] = query, key
    layers[3] = replace(layers[3], query=new_query, key=new_key)
    return replace(trace, layers={"encoder": tuple(layers)})


def test_points_are_queries_then_keys_with_their_positions(door_trace: Trace) -> None:
    projection = attnviz.project(door_trace, 3, 1)
    assert projection.points.shape == (22, 2)
    assert projection.role == ("query",) * 11 + ("key",) * 11
    assert projection.position.tolist() == [*range(11), *range(11)]
    assert projection.rows("key").tolist() == list(range(11, 22))
    assert projection.parameters == {"metric": "cosine", "perplexity": 5.0, "iterations": 1000, "seed": 0}
    assert not projection.remark


def test_same_settings_give_the_same_picture_and_others_another(door_trace: Trace) -> None:
    first = attnviz.project(door_trace, 3, 1, seed=7)
    again = attnviz.project(door_trace, 3, 1, seed=7)
    np.testing.assert_array_equal(first.points, again.points)
    for other in ({"perplexity": 3.0}, {"metric": "euclidean"}, {"iterations": 300}, {"seed": 8}):
        changed = attnviz.project(door_trace, 3, 1, **{"seed": 7, **other})
        assert not np.allclose(changed.points, first.points), other


@pytest.mark.parametrize("seed", [0, 2**32 - 1])
def test_groups_of_vectors_stay_groups(embedded: Model, seed: int) -> None:
    """A property of t-SNE itself: the two nearest points of the map are nearly always of one group."""
    trace = embedded.trace("a b c d e f g h i j k l m n o p q r s t u v w x y z a b")
    vectors, groups = make_blobs(60, n_features=32, centers=4, cluster_std=0.5, random_state=1)
    vectors = vectors.astype(np.float32)
    projection = attnviz.project(with_vectors(trace, vectors[:30], vectors[30:]), 3, 1, seed=seed)
    distances = np.linalg.norm(projection.points[:, None] - projection.points[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    nearest = distances.argmin(axis=1)
    assert np.mean(groups[nearest] == groups) > 0.95


@pytest.mark.parametrize(
    ("text", "n_point", "perplexity"),
    [("it", 6, 5 / 3), ("it was", 8, 7 / 3), ("the door opened when it", 14, 13 / 3)],
)
def test_perplexity_is_lowered_for_short_texts_and_said(
    embedded: Model, text: str, n_point: int, perplexity: float
) -> None:
    projection = attnviz.project(embedded.trace(text), 0, 0)
    assert len(projection.points) == n_point
    assert projection.parameters["perplexity"] == pytest.approx(perplexity)
    assert (
        projection.remark == f"Perplexity 5 is lowered to {perplexity:.1f}: there are only {n_point} points."
    )


def test_too_few_points_for_tsne_are_placed_all_the_same(tiny_model) -> None:
    trace = tiny_model("gpt2").trace("a")
    assert len(trace.tokens) == 1
    projection = attnviz.project(trace, 0, 0)
    assert np.isfinite(projection.points).all()
    assert "too few for t-SNE" in projection.remark
    assert (projection.method, dict(projection.parameters)) == ("pca", {})
    assert np.isnan(projection.in_map.nearest_agreement)


@pytest.mark.parametrize("n_token", [1, 2, 3])
@pytest.mark.parametrize("method", METHODS)
def test_from_one_token_up_every_method_draws(tiny_model, method: str, n_token: int) -> None:
    trace = tiny_model("gpt2").trace("a" * n_token)
    assert len(trace.tokens) == n_token
    for dimensions in (2, 3):
        projection = attnviz.project(trace, 0, 1, method=method, dimensions=dimensions, iterations=250)
        assert projection.points.shape == (2 * n_token, dimensions)
        assert np.isfinite(projection.points).all()
        falls_back = n_token == 1 and method in ("tsne", "umap")
        assert projection.method == ("pca" if falls_back else method)
        assert ("too few" in projection.remark) == falls_back
        for name, value in projection.parameters.items():
            if name != "metric":
                lowest, highest = limits(method, 2 * n_token)[name]
                assert lowest <= value <= highest, name


@pytest.mark.nightly
def test_neighbours_are_lowered_for_short_texts_and_said(embedded: Model) -> None:
    projection = attnviz.project(embedded.trace("it was"), 0, 0, method="umap")
    assert projection.parameters["neighbours"] == 7
    assert projection.remark == "Neighbours 15 is lowered to 7: there are only 8 points."


class TestFigures:
    """What a map says of itself is what the modules that measure it say of its points."""

    def test_of_the_attention_map(self, door_trace: Trace) -> None:
        projection = attnviz.project(door_trace, 3, 1, method="attention")
        queries, keys = (projection.points[projection.rows(role)] for role in ("query", "key"))
        weights, scores = door_trace.weights(3, 1), door_trace.scores(3, 1)
        distances = cdist(queries, keys).astype(np.float64)
        implied = np.exp(-(distances**2)) / np.exp(-(distances**2)).sum(axis=1, keepdims=True)
        assert projection.divergence == pytest.approx(rel_entr(weights, implied).sum(axis=1).mean(), rel=1e-3)
        correlations = [spearmanr(*rows).statistic for rows in zip(scores, distances, strict=True)]
        assert projection.in_map.order_correlation == pytest.approx(np.mean(correlations))
        assert projection.in_map.worst_correlation == pytest.approx(max(correlations))
        assert projection.in_map.nearest_agreement == np.mean(
            distances.argmin(axis=1) == weights.argmax(axis=1)
        )
        assert projection.in_space is None
        assert dict(projection.parameters) == {"iterations": 1000, "seed": 0}

    def test_of_lifted_vectors_are_perfect_before_they_are_laid_out(self, door_trace: Trace) -> None:
        projection = attnviz.project(door_trace, 3, 1, method="pca", space="lifted")
        assert projection.in_space.order_correlation == pytest.approx(-1.0)
        assert projection.in_space.worst_correlation == pytest.approx(-1.0)
        assert projection.in_space.nearest_agreement == 1.0
        assert -1 < projection.in_map.order_correlation < 0
        assert projection.divergence is None

    def test_what_was_fed_in_is_measured_by_the_distance_that_the_method_was_given(
        self, door_trace: Trace
    ) -> None:
        projection = attnviz.project(door_trace, 3, 1, method="mds", space="centred", metric="cosine")
        key = door_trace.key(3, 1)
        vectors = np.concatenate([door_trace.query(3, 1), key - key.mean(axis=0)])
        expected = trustworthiness(vectors, projection.points, n_neighbors=5, metric="cosine")
        assert projection.trustworthiness == pytest.approx(expected)
        distances = cdist(vectors[:11], vectors[11:], "cosine")
        correlations = [
            spearmanr(*rows).statistic for rows in zip(door_trace.scores(3, 1), distances, strict=True)
        ]
        assert projection.in_space.order_correlation == pytest.approx(np.mean(correlations))

    @pytest.mark.nightly
    def test_attention_map_is_the_most_faithful_in_the_mean_of_a_layer(self, door_trace: Trace) -> None:
        def mean(method: str, space: str) -> float:
            maps = [attnviz.project(door_trace, 2, head, method=method, space=space) for head in range(12)]
            return float(np.mean([map_.in_map.order_correlation for map_ in maps]))

        attention = mean("attention", "raw")
        for method in ("tsne", "pca"):
            for space in SPACES:
                assert attention < mean(method, space), (method, space)


def test_masked_keys_are_nowhere_in_the_figures(tiny_model) -> None:
    trace = tiny_model("gpt2").trace("a door was opened")
    allowed = np.isfinite(trace.scores(0, 1))
    assert not allowed.all()
    projection = attnviz.project(trace, 0, 1, method="attention")
    queries, keys = (projection.points[projection.rows(role)] for role in ("query", "key"))
    implied = implied_weights(queries, keys, allowed)
    np.testing.assert_allclose(implied.sum(axis=1), 1, rtol=1e-6)
    assert (implied[~allowed] == 0).all()
    lost = rel_entr(trace.weights(0, 1), implied).sum(axis=1).mean()
    assert projection.divergence == pytest.approx(lost, abs=1e-5)
    assert projection.divergence < 0.05


@pytest.mark.parametrize("method", METHODS)
def test_cross_attention_has_queries_of_one_text_and_keys_of_another(tiny_model, method: str) -> None:
    trace = tiny_model("bart").trace("a door was opened", "who")
    n_query, n_key = trace.scores(0, 1, "cross").shape
    assert n_query != n_key
    projection = attnviz.project(trace, 0, 1, kind="cross", method=method, iterations=250)
    assert projection.role == ("query",) * n_query + ("key",) * n_key
    assert projection.position.tolist() == [*range(n_query), *range(n_key)]
    assert projection.query_tokens is trace.query_tokens("cross")
    assert projection.key_tokens is trace.key_tokens("cross")


def test_values_are_a_third_group(door_trace: Trace) -> None:
    for space in ("raw", "lifted"):
        projection = attnviz.project(door_trace, 3, 1, method="pca", space=space, values=True)
        assert projection.role == ("query",) * 11 + ("key",) * 11 + ("value",) * 11
        assert projection.points.shape == (33, 2)
    raw = attnviz.project(door_trace, 3, 1, method="pca", values=True)
    vectors = np.concatenate([door_trace.query(3, 1), door_trace.key(3, 1), door_trace.value(3, 1)])
    np.testing.assert_allclose(raw.points, principal_components(vectors), atol=1e-5)


def test_values_of_another_width_than_keys_share_no_map_with_them(door_trace: Trace) -> None:
    call = door_trace.attention(3)
    narrow = door_trace.with_layer(replace(call, value=call.value[..., :5].copy(), output_weight=None))
    with pytest.raises(attnviz.ProjectionError, match="they have 5 dimensions here and keys 32, so one map"):
        attnviz.project(narrow, 3, 1, method="pca", values=True)
    assert len(attnviz.project(narrow, 3, 1, method="pca").points) == 22


def test_equal_vectors_are_no_error(door_trace: Trace) -> None:
    same = np.ones((11, 32), dtype=np.float32)
    assert np.isfinite(attnviz.project(with_vectors(door_trace, same, same), 3, 1).points).all()


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"method": "isomap"}, "'isomap'"),
        ({"dimensions": 1}, "1 dimensions"),
        ({"dimensions": 4}, "4 dimensions"),
        ({"method": "attention", "values": True}, "values"),
        ({"perplexity": float("inf")}, "inf"),
        ({"neighbours": 1}, "number of neighbours of 1"),
        ({"min_dist": -0.1}, "-0.1"),
        ({"min_dist": 1.5}, "0 to 1"),
        ({"metric": "manhattan"}, "'manhattan'"),
        ({"perplexity": 0.5}, "0.5"),
        ({"perplexity": float("nan")}, "nan"),
        ({"iterations": 249}, "249"),
        ({"iterations": 5001}, "5001"),
        ({"seed": -1}, "-1"),
        ({"seed": 2**32}, "4294967296"),
    ],
)
def test_what_a_map_cannot_be_asked(door_trace: Trace, asked: dict, reason: str) -> None:
    with pytest.raises(attnviz.ProjectionError, match="Select one of those") as caught:
        attnviz.project(door_trace, 3, 1, **asked)
    assert reason in str(caught.value)
