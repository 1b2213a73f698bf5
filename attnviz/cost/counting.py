"""The cost of attention, counted: cells, bytes and multiplications, for any number of tokens.

Whole numbers, exact; no torch, no numpy.
"""

from dataclasses import dataclass
from typing import Literal

from attnviz.model.trace import Trace
from attnviz.records import Kind

Way = Literal["whole", "window", "streaming"]
"""The whole matrix at once; only the cells of a sliding window; all cells, some keys at a time."""
Quantity = Literal["cells", "bytes", "multiplications"]

TILE = 64
"""Keys that streaming attention reads at a time. Dao 2023, FlashAttention-2 (arXiv:2307.08691), section 3.3, takes
64 or 128."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """The sizes that the cost of a layer's attention depends on, besides the number of tokens."""

    n_head: int
    d_head: int
    """Dimension of a query and of a key."""
    d_value: int
    """Dimension of a value."""
    number_bytes: int
    """Bytes of a number: 4 for float32, which all models run in here."""
    reach: int
    """Tokens that a sliding window reaches to each side, or back where it is causal."""
    causal: bool

    @classmethod
    def of(cls, trace: Trace, layer: int, kind: Kind, *, reach: int) -> "Layer":
        """A layer of the model that a trace was recorded from.

        Raises:
            SelectionError: no such layer or kind.
        """
        call = trace.attention(layer, kind)
        n_head, _, d_head = call.query.shape
        return cls(
            n_head=n_head,
            d_head=d_head,
            d_value=call.value.shape[-1],
            number_bytes=call.query.itemsize,
            reach=reach,
            causal=kind == "decoder",
        )

    def cost(self, quantity: Quantity, way: Way, n_query: int, n_key: int) -> int:
        """The cost of this many queries and keys in all heads together.

        ``cells`` are the weights that are held at once. ``bytes`` is their memory, for streaming also that of each
        row's running maximum and sum; queries, keys, values and output are needed in every way and not counted.
        ``multiplications`` are those of q . k and of weights times values, for every cell that is computed; the
        softmax and the projections, which grow linearly with n, are not counted.

        A causal mask does not change the cost of the whole matrix, whose masked cells are computed too.

        Args:
            way: ``window`` needs as many queries as keys.

        Source: Vaswani et al. 2017 (arXiv:1706.03762), table 1: n^2 d for self-attention, r n d for restricted;
        Beltagy et al. 2020, Longformer (arXiv:2004.05150), section 3.1: n w cells; Dao et al. 2022, FlashAttention
        (arXiv:2205.14135), theorem 1: n^2 d operations and memory that grows with n.

        >>> layer = Layer(n_head=12, d_head=32, d_value=32, number_bytes=4, reach=2, causal=False)
        >>> layer.cost("cells", "whole", 512, 512), layer.cost("multiplications", "whole", 512, 512)
        (3145728, 201326592)
        """
        held = self.n_head * self._held_cells(way, n_query, n_key)
        if quantity == "cells":
            return held
        if quantity == "bytes":
            running = 2 * self.n_head * n_query if way == "streaming" else 0
            return (held + running) * self.number_bytes
        computed = self.n_head * n_query * n_key if way == "streaming" else held
        return computed * (self.d_head + self.d_value)

    def _held_cells(self, way: Way, n_query: int, n_key: int) -> int:
        if way == "whole":
            return n_query * n_key
        if way == "streaming":
            return n_query * min(TILE, n_key)
        reach = min(self.reach, n_key - 1)
        # The window reaches past each end of the text, where a triangle of reach rows is missing.
        missing = reach * (reach + 1) // 2
        return n_key * (reach + 1) - missing if self.causal else n_key * (2 * reach + 1) - 2 * missing
