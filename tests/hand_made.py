"""Traces whose attention weights are written down: what tests of numbers on paper start from."""

from collections.abc import Sequence

import numpy as np

from attnviz.model.trace import Trace
from attnviz.records import Kind, LayerAttention, Provenance, Tokens

_NOTHING = 1e-30  # whose logarithm is a number; as a float32 weight it adds nothing to 1


def tokens(labels: Sequence[str]) -> Tokens:
    """Tokens of one text; those in angular or square brackets are special, and "##" goes on with a word.

    Tokens with the same label have the same id.
    """
    special = np.array([label[0] in "<[" for label in labels])
    begins = np.array([not label.startswith("##") for label in labels]) & ~special
    return Tokens(
        text=" ".join(labels),
        ids=np.array([labels.index(label) for label in labels], dtype=np.int64),
        labels=tuple(labels),
        is_special=special,
        segment=np.zeros(len(labels), dtype=np.int64),
        word=np.where(special, -1, begins.cumsum() - 1),
    )


def trace(
    weights: np.ndarray,
    labels: Sequence[str],
    *,
    kind: Kind = "encoder",
    allowed: np.ndarray | None = None,
    lengths: np.ndarray | None = None,
) -> Trace:
    """A trace with these weights [layer head query key]: queries are their logarithms, keys are unit vectors.

    Args:
        lengths: of each value after W_O [layer head key]; None for a W_O that is not known.
    """
    n_layer, n_head, _, n_key = weights.shape
    key = np.broadcast_to(np.eye(n_key, dtype=np.float32), (n_head, n_key, n_key)).copy()
    layers = tuple(
        LayerAttention(
            kind=kind,
            layer=layer,
            query=np.log(np.maximum(weights[layer], _NOTHING)).astype(np.float32),
            key=key,
            value=key,
            scale=1.0,
            allowed=None if allowed is None else allowed[None],
            output_weight=None
            if lengths is None
            else np.stack([np.diag(length) for length in lengths[layer]]),
        )
        for layer in range(n_layer)
    )
    return Trace(
        tokens=tokens(labels),
        layers={kind: layers},
        last_hidden_state=np.zeros((n_key, 1), dtype=np.float32),
        provenance=Provenance(model="hand-made", revision="none", dtype="float32", versions={}),
    )
