"""Attention in float64 numpy, written from the formula and sharing no line with attnviz: what tests compare with."""

from typing import Any

import numpy as np


def weights(
    query: np.ndarray,
    key: np.ndarray,
    scale: float,
    allowed: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    softcap: float | None = None,
) -> np.ndarray:
    """softmax(scale * q k^T + bias) over the allowed keys; zeros for a query with no allowed key.

    With a softcap c the product s becomes c tanh(s / c) before the bias.
    """
    scores = scale * np.einsum("...qd,...kd->...qk", query.astype(np.float64), key.astype(np.float64))
    if softcap is not None:
        scores = softcap * np.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias.astype(np.float64)
    seen = np.broadcast_to(True if allowed is None else allowed, scores.shape)
    highest = np.max(scores, axis=-1, keepdims=True, where=seen, initial=-np.finfo(np.float64).max)
    exponentials = np.exp(scores - highest, where=seen, out=np.zeros_like(scores))
    total = exponentials.sum(axis=-1, keepdims=True)
    return np.divide(exponentials, total, where=total > 0, out=np.zeros_like(scores))


def output(query: np.ndarray, key: np.ndarray, value: np.ndarray, scale: float, **terms: Any) -> np.ndarray:
    """The values, averaged by the weights."""
    return weights(query, key, scale, **terms) @ value.astype(np.float64)
