"""Which keys a query may see, by the common names of attention masks."""

from collections.abc import Iterable
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool

from attnviz.arguments import typed
from attnviz.errors import SelectionError
from attnviz.maths.masks import causal_mask, segment_mask, window_mask
from attnviz.records import Tokens

MaskName = Literal["none", "causal", "window", "sentences"]
MASKS: tuple[MaskName, ...] = get_args(MaskName)


@typed
def make_mask(
    queries: Tokens,
    keys: Tokens,
    name: str = "none",
    *,
    reach: int = 2,
    hidden: Iterable[int] = (),
    flipped: Iterable[tuple[int, int]] = (),
) -> Bool[np.ndarray, "query key"]:
    """True where a query may see a key.

    Args:
        name: "none", every key; "causal", the query's own token and earlier ones; "window", tokens at most
            ``reach`` away; "sentences", tokens of the same sentence of a pair.
        hidden: positions of keys that no query may see.
        flipped: cells (query, key) that change from allowed to masked or from masked to allowed.

    Raises:
        SelectionError: no such mask, or a position outside the text.
    """
    n_query, n_key = len(queries), len(keys)
    match name:
        case "none":
            allowed = np.ones((n_query, n_key), dtype=bool)
        case "causal":
            allowed = causal_mask(n_query, n_key).numpy()
        case "window":
            allowed = window_mask(n_query, n_key, reach).numpy()
        case "sentences":
            segments = (torch.tensor(axis.segment) for axis in (queries, keys))
            allowed = segment_mask(*segments).numpy()
        case _:
            raise SelectionError(
                f"Mask {name!r} was asked for; there are {', '.join(MASKS)}. Select one of those."
            )
    hidden, flipped = list(hidden), list(flipped)
    outside: list[object] = [key for key in hidden if not 0 <= key < n_key]
    outside += [cell for cell in flipped if not (0 <= cell[0] < n_query and 0 <= cell[1] < n_key)]
    if outside:
        raise SelectionError(
            f"The mask names {outside[0]}; this text has {n_query} queries and {n_key} keys, counted from 0. "
            "Select one of those."
        )
    allowed[:, hidden] = False
    for cell in flipped:
        allowed[cell] = not allowed[cell]
    return allowed
