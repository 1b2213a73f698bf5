"""Sums divided by counts."""

import numpy as np
from jaxtyping import Float, Real


def quotients(
    above: Real[np.ndarray, "*axes"], below: Real[np.ndarray, "*#axes"]
) -> Float[np.ndarray, "*axes"]:
    """Above / below; NaN where the divisor is not above 0.

    >>> quotients(np.array([1.0, 0.0]), np.array([2, 0]))
    array([0.5, nan])
    """
    undefined = np.full(above.shape, np.nan, dtype=np.result_type(above, np.float32))
    return np.asarray(np.divide(above, below, out=undefined, where=below > 0, casting="same_kind"))
