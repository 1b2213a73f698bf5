"""Properties of spaces, the attention map, and the figures of reliability, whatever the vectors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.spatial.distance import cdist, pdist

from attnviz.maps.attention_map import divergence, fit, implied_weights, objective
from attnviz.maps.layouts import LAYOUTS, aligned, limits, principal_components
from attnviz.maps.reliability import reliability
from attnviz.maps.spaces import SPACES, Space, fed

pytestmark = pytest.mark.slow

settings.register_profile("attnviz", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("attnviz")

coordinates = st.floats(-4, 4, width=32).map(lambda number: round(number, 3))
"""Far enough apart that float32 can tell them apart, or equal."""


def points(n_point: int, n_axis: int) -> st.SearchStrategy[np.ndarray]:
    return arrays.arrays(np.float32, (n_point, n_axis), elements=coordinates)


@given(points(5, 3), points(7, 3), points(1, 3))
def test_lift_puts_a_key_nearer_exactly_where_its_score_is_higher(queries, keys, shift) -> None:
    scores = queries.astype(np.float64) @ keys.astype(np.float64).T
    distances = cdist(*(vectors.astype(np.float64) for vectors in fed(queries, keys + shift, "lifted"))) ** 2
    gaps = scores[:, :, None] - scores[:, None]  # [query, key, key]
    nearer = distances[:, None] - distances[:, :, None]
    np.testing.assert_allclose(nearer, 2 * gaps, atol=1e-3)


@given(points(5, 3), points(7, 3), st.sampled_from([space for space in SPACES if space != "lifted"]))
def test_weights_are_the_same_in_every_space(queries, keys, space: Space) -> None:
    weights = []
    for here in ((queries, keys), fed(queries, keys, space)):
        scores = here[0].astype(np.float64) @ here[1].astype(np.float64).T
        exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights.append(exponentials / exponentials.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(*weights, atol=1e-3)


@given(points(5, 2), points(7, 2), points(1, 2), arrays.arrays(bool, (5, 7)))
def test_implied_weights_do_not_change_when_a_map_is_moved_and_sum_to_one(
    queries, keys, shift, allowed
) -> None:
    implied = implied_weights(queries, keys, allowed)
    np.testing.assert_allclose(implied.sum(axis=1), allowed.any(axis=1), atol=1e-5)
    assert (implied[~allowed] == 0).all()
    np.testing.assert_allclose(implied, implied_weights(queries + shift, keys + shift, allowed), atol=1e-3)


@given(points(5, 2), points(7, 2), points(5, 2), points(7, 2))
def test_no_map_loses_less_than_the_one_that_implies_the_weights(queries, keys, others, other_keys) -> None:
    allowed = np.ones((5, 7), dtype=bool)
    weights = implied_weights(queries, keys, allowed)
    assert (divergence(weights, implied_weights(others, other_keys, allowed)) > -1e-5).all()
    loss, *gradients = objective(queries.astype(np.float64), keys.astype(np.float64), weights, allowed)
    assert objective(others, other_keys, weights, allowed)[0] >= loss - 1e-3
    assert max(np.abs(gradient).max() for gradient in gradients) < 1e-4


@settings(max_examples=20)
@given(arrays.arrays(np.float32, (5, 7), elements=st.floats(0, 1, width=32)), arrays.arrays(bool, (5, 7)))
def test_a_fit_is_finite_and_loses_no_more_than_a_single_point_does(weights, allowed) -> None:
    weights = weights * allowed + np.float32(1e-3) * allowed
    weights = (weights / weights.sum(axis=1, keepdims=True).clip(min=1e-9)).astype(np.float32)
    queries, keys = fit(weights, allowed, iterations=300)
    assert np.isfinite(np.concatenate([queries, keys])).all()
    one_point = implied_weights(np.zeros((5, 2)), np.zeros((7, 2)), allowed)
    loss = divergence(weights, implied_weights(queries, keys, allowed)).mean()
    assert loss <= divergence(weights, one_point).mean() + 1e-2


@given(points(5, 2), points(7, 2), points(5, 7), st.permutations(range(7)))
def test_order_of_the_keys_does_not_matter_to_the_figures(queries, keys, scores, order) -> None:
    measured, again = reliability(queries, keys, scores), reliability(queries, keys[order], scores[:, order])
    assert -1 - 1e-9 <= measured.order_correlation <= measured.worst_correlation <= 1 + 1e-9
    assert 0 <= measured.nearest_agreement <= 1
    np.testing.assert_allclose(measured.order_correlation, again.order_correlation, atol=1e-9)
    np.testing.assert_allclose(measured.worst_correlation, again.worst_correlation, atol=1e-9)


@given(points(9, 3), points(9, 3))
def test_a_picture_laid_onto_another_is_itself_and_lies_as_near_as_its_mirror_image(picture, onto) -> None:
    laid = aligned(picture, onto)
    np.testing.assert_allclose(pdist(laid), pdist(picture), atol=1e-3)
    np.testing.assert_allclose(laid.mean(axis=0), onto.mean(axis=0), atol=1e-3)
    mirrored = aligned(picture * np.array([-1, 1, 1], dtype=np.float32), onto)
    far, far_mirrored = (((here - onto) ** 2).sum() for here in (laid, mirrored))
    np.testing.assert_allclose(far, far_mirrored, rtol=1e-3, atol=1e-2)


@given(points(9, 4), st.sampled_from([2, 3]))
def test_principal_components_bring_no_two_points_farther_apart(vectors, dimensions: int) -> None:
    assert (pdist(principal_components(vectors, dimensions)) <= pdist(vectors) + 1e-3).all()


@given(st.sampled_from(["attention", *LAYOUTS]), st.integers(1, 20_000))
def test_limits_leave_something_to_choose(method: str, n_point: int) -> None:
    for lowest, highest in limits(method, n_point).values():
        assert lowest <= highest
