"""What is changed inside a forward pass: at which layers and heads, and how.

One concept: the Intervention. It is handed to one forward pass and consulted by the attention function while that
pass runs (`attnviz.model.capture`); nothing is written on the model, so that two passes with different ones never meet.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from attnviz.errors import ShapeError
from attnviz.records import Kind, Record, check_index


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Intervention(Record):
    """A change of the attention of one layer or all, and there of one head or all."""

    allowed: Bool[np.ndarray, "query key"]
    """Keys that each query may see from now on; those that the model forbids stay forbidden."""
    kind: Kind | None = None
    """Kind of attention; None for the model's only one, or for all of them that have this many queries and keys."""
    layer: int | None = None
    """None for every layer."""
    head: int | None = None
    """None for every head."""

    def concerns(self, kind: Kind, layer: int) -> bool:
        """Whether this layer is changed."""
        return self.kind in (None, kind) and self.layer in (None, layer)


def allowed_by(
    interventions: Iterable[Intervention], kind: Kind, layer: int, shape: tuple[int, int, int]
) -> Bool[np.ndarray, "#head query key"] | None:
    """What all changes to a layer leave to be seen; None where they change nothing.

    Args:
        shape: heads, queries and keys of the layer.

    Raises:
        SelectionError: a head that the layer does not have.
        ShapeError: a mask for another number of queries or keys.
    """
    n_head, n_query, n_key = shape
    allowed = None
    for one in interventions:
        if not one.concerns(kind, layer):
            continue
        if one.allowed.shape != (n_query, n_key):
            raise ShapeError(
                f"The intervention's mask is {one.allowed.shape[0]} x {one.allowed.shape[1]}; layer {layer} has "
                f"{n_query} queries and {n_key} keys. Make the mask as large."
            )
        mask = one.allowed[None]
        if one.head is not None:
            check_index("head", one.head, n_head, f"layer {layer}")
            mask = mask | (np.arange(n_head) != one.head)[:, None, None]
        allowed = mask if allowed is None else allowed & mask
    return allowed
