"""Position vectors: the sines and cosines of Vaswani et al. 2017, to compare with a model's own.

numpy only.
"""

from typing import Literal

import numpy as np
from jaxtyping import Float


def sinusoidal_positions(n_position: int, d_model: int) -> Float[np.ndarray, "position d_model"]:
    """Sines in the even dimensions and cosines in the odd ones, of wavelengths from 2 pi to 10,000 x 2 pi.

    The dot product of two position vectors depends only on their distance, and a shift by k positions is a linear
    map: each pair of dimensions is rotated by k times the pair's own angle.

    Source: Vaswani et al. 2017 (arXiv:1706.03762), section 3.5: PE(pos, 2i) = sin(pos / 10000^(2i / d_model)) and
    PE(pos, 2i + 1) = cos(pos / 10000^(2i / d_model)).

    >>> sinusoidal_positions(2, 2).round(4).tolist()
    [[0.0, 1.0], [0.8414999842643738, 0.5403000116348267]]
    """
    pairs = np.arange(d_model) // 2
    angles = np.arange(n_position)[:, None] / 10_000 ** (2 * pairs / d_model)
    positions = np.where(np.arange(d_model) % 2 == 0, np.sin(angles), np.cos(angles))
    return positions.astype(np.float32)


def sinusoidal_order(
    table: Float[np.ndarray, "position d_model"],
) -> Literal["in turn", "sines first"] | None:
    """The order in which a table of positions holds the paper's sines and cosines; None where it holds other numbers.

    "in turn", as in the paper, or "sines first", all of them before the cosines, as in Marian (transformers 5.23.0,
    MarianSinusoidalPositionalEmbedding). Within 1e-3, since half precision rounds numbers near 1 by up to 2.4e-4.

    >>> sinusoidal_order(sinusoidal_positions(5, 4)), sinusoidal_order(np.ones((5, 4), dtype=np.float32))
    ('in turn', None)
    """
    in_turn = sinusoidal_positions(*table.shape)
    if np.allclose(table, in_turn, rtol=0, atol=1e-3):
        return "in turn"
    sines_first = np.concatenate([in_turn[:, 0::2], in_turn[:, 1::2]], axis=1)
    return "sines first" if np.allclose(table, sines_first, rtol=0, atol=1e-3) else None


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
