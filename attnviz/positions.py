"""Position vectors: the sines and cosines of the 2017 paper, to lay beside those that a model has learned.

One concept: a vector for each position. numpy only.
"""

import numpy as np
from jaxtyping import Float


def sinusoidal_positions(n_position: int, d_model: int) -> Float[np.ndarray, "position d_model"]:
    """Sines in the even dimensions and cosines in the odd ones, of wavelengths from 2 pi to 10,000 x 2 pi.

    The dot product of two of them depends only on how far apart they are, and a shift by k positions is a linear
    map: each pair of dimensions is turned by an angle that is k times the pair's own.

    Source: Vaswani et al. 2017 (arXiv:1706.03762), section 3.5: PE(pos, 2i) = sin(pos / 10000^(2i / d_model)) and
    PE(pos, 2i + 1) = cos(pos / 10000^(2i / d_model)).

    >>> sinusoidal_positions(2, 2).round(4).tolist()
    [[0.0, 1.0], [0.8414999842643738, 0.5403000116348267]]
    """
    pairs = np.arange(d_model) // 2
    angles = np.arange(n_position)[:, None] / 10_000 ** (2 * pairs / d_model)
    positions = np.where(np.arange(d_model) % 2 == 0, np.sin(angles), np.cos(angles))
    return positions.astype(np.float32)


def shift(k: int, d_model: int) -> Float[np.ndarray, "d_model d_model"]:
    """The matrix M with ``PE(pos + k) = PE(pos) M`` for every position, for an even d_model.

    Source: the addition theorems: sin(a + b) = sin a cos b + cos a sin b, cos(a + b) = cos a cos b - sin a sin b.
    """
    moved = np.zeros((d_model, d_model))
    for sine in range(0, d_model, 2):
        angle = k / 10_000 ** (sine / d_model)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        moved[sine : sine + 2, sine : sine + 2] = turn
    return moved.astype(np.float32)
