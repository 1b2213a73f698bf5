"""Changes inside a forward pass: at which layers and heads, and how.

One concept: the Intervention. It is passed to one forward pass and used by the attention function during that pass
(`attnviz.model.capture`); the model itself is not changed, so that passes do not affect each other.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from attnviz.errors import ShapeError
from attnviz.records import Kind, Record, check_index


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Intervention(Record):
    """A change of the attention in one layer or all layers, and in one head or all heads."""

    allowed: Bool[np.ndarray, "query key"]
    """Keys that each query may see from now on; those that the model forbids stay forbidden."""
    kind: Kind | None = None
    """Kind of attention; None for the model's only kind, or for all kinds with this number of queries and keys."""
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
    """The keys that queries of a layer may see after all interventions; None where none applies.

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
