"""t-SNE of one head: what it may be asked, that it repeats, and how its faithfulness is measured."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import attnviz
from attnviz import projection
from attnviz.models import Model
from attnviz.trace import Trace


def with_vectors(trace: Trace, query: np.ndarray, key: np.ndarray) -> Trace:
    """The trace with other queries and keys in layer 3, head 1."""
    layers = list(trace.layers["encoder"])
    new_query, new_key = layers[3].query.copy(), layers[3].key.copy()
    new_query[1], new_key[1] = query, key
    layers[3] = replace(layers[3], query=new_query, key=new_key)
    return replace(trace, layers={"encoder": tuple(layers)})


def test_points_are_queries_then_keys_with_their_positions(door_trace: Trace) -> None:
    found = attnviz.project(door_trace, 3, 1)
    assert found.points.shape == (22, 2)
    assert found.role == ("query",) * 11 + ("key",) * 11
    assert found.position.tolist() == [*range(11), *range(11)]
    assert found.rows("key").tolist() == list(range(11, 22))
    assert found.parameters == {"metric": "cosine", "perplexity": 5.0, "iterations": 1000, "seed": 0}
    assert not found.remark


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
    found = attnviz.project(with_vectors(trace, vectors[:30], vectors[30:]), 3, 1, seed=seed)
    distances = np.linalg.norm(found.points[:, None] - found.points[None], axis=2)
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
    found = attnviz.project(embedded.trace(text), 0, 0)
    assert len(found.points) == n_point
    assert found.parameters["perplexity"] == pytest.approx(perplexity)
    assert found.remark == f"Perplexity 5 is lowered to {perplexity:.1f}: there are only {n_point} points."


def test_too_few_points_for_tsne_are_placed_all_the_same(tiny_model) -> None:
    trace = tiny_model("gpt2").trace("a")
    assert len(trace.tokens) == 1
    found = attnviz.project(trace, 0, 0)
    assert np.isfinite(found.points).all()
    assert "too few for t-SNE" in found.remark
    assert (found.method, dict(found.parameters)) == ("pca", {})
    assert np.isnan(found.neighbour_agreement)


def test_equal_vectors_are_no_error(door_trace: Trace) -> None:
    same = np.ones((11, 32), dtype=np.float32)
    assert np.isfinite(attnviz.project(with_vectors(door_trace, same, same), 3, 1).points).all()


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"method": "umap"}, "'umap'"),
        ({"metric": "manhattan"}, "'manhattan'"),
        ({"perplexity": 0.5}, "0.5"),
        ({"perplexity": float("nan")}, "nan"),
        ({"iterations": 249}, "249"),
        ({"iterations": 5001}, "5001"),
        ({"seed": -1}, "-1"),
        ({"seed": 2**32}, "4294967296"),
    ],
)
def test_what_a_map_cannot_be_asked(door_trace: Trace, asked: dict, found: str) -> None:
    with pytest.raises(attnviz.ProjectionError, match="Pick one of those") as caught:
        attnviz.project(door_trace, 3, 1, **asked)
    assert found in str(caught.value)


SCORES = np.array([[3.0, 2.0, 1.0], [1.0, 3.0, 2.0]], dtype=np.float32)


def test_a_perfect_map_is_believed_and_a_reversed_one_not() -> None:
    # Keys on a line at 0, 1 and 3; query 0 sits at key 0, query 1 nearest to key 1, then to 2... by hand:
    keys = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]])
    queries = np.array([[-1.0, 0.0], [1.8, 0.0]])  # distances 1 2 4 and 1.8 0.8 1.2
    assert projection._faithfulness(queries, keys, SCORES) == (1.0, pytest.approx(-1.0))
    assert projection._faithfulness(queries, keys, -SCORES) == (0.0, pytest.approx(1.0))


def test_keys_that_a_query_may_not_see_do_not_count() -> None:
    keys = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]])
    queries = np.array([[-1.0, 0.0], [1.0, 0.0]])
    scores = np.array([[3.0, 2.0, -np.inf], [9.0, -np.inf, -np.inf]], dtype=np.float32)
    # The masked key is left out of the first row, and the second row has one key and so no order.
    assert projection._faithfulness(queries, keys, scores) == (1.0, pytest.approx(-1.0))


def test_shuffled_points_say_nothing() -> None:
    random = np.random.default_rng(0)
    scores = random.normal(size=(200, 50)).astype(np.float32)
    agreement, correlation = projection._faithfulness(
        random.normal(size=(200, 2)), random.normal(size=(50, 2)), scores
    )
    assert agreement < 0.1
    assert abs(correlation) < 0.05
