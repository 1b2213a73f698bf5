"""Directions of vectors, and how far apart they are: the distance 1 - cos of the angle.

Zero vectors have no direction: two of them are 0 apart, and one is 1 from any other vector, as at a right angle.
"""

import numpy as np
from jaxtyping import Float


def directions(vectors: Float[np.ndarray, "vector axis"]) -> Float[np.ndarray, "vector axis"]:
    """The vectors with length 1, in float64, in which no float32 is too small or too large to be squared; zeros stay zeros."""
    precise = vectors.astype(np.float64)
    lengths = np.linalg.norm(precise, axis=1, keepdims=True)
    unit: np.ndarray = np.divide(precise, lengths, out=np.zeros_like(precise), where=lengths > 0)
    return unit


def cosine_changes(
    before: Float[np.ndarray, "vector axis"], after: Float[np.ndarray, "vector axis"]
) -> Float[np.ndarray, " vector"]:
    """The distance of each vector from the one in its place."""
    first, second = directions(before), directions(after)
    return _distance(((first - second) ** 2).sum(axis=1), _has_direction(first), _has_direction(second))


def cosine_distances(
    first: Float[np.ndarray, "row axis"], second: Float[np.ndarray, "column axis"]
) -> Float[np.ndarray, "row column"]:
    """The distance of each vector of one group from each of the other."""
    from scipy.spatial.distance import cdist  # slow to import

    first, second = directions(first), directions(second)
    squares = cdist(first, second, "sqeuclidean")
    return _distance(squares, _has_direction(first)[:, None], _has_direction(second)[None])


def _has_direction(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors.any(axis=1))


def _distance(squares: np.ndarray, has_first: np.ndarray, has_second: np.ndarray) -> np.ndarray:
    """|a - b|^2 / 2 = 1 - cos for vectors of length 1, without cancellation."""
    return np.asarray(np.where(has_first == has_second, squares / 2, 1.0).clip(0, 2))
