"""Which keys a query may see, as boolean matrices: causal, a sliding window, segments."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def causal_mask(n_query: int, n_key: int) -> Bool[Tensor, "query key"]:
    """True where a key is the query's own token or an earlier token.

    With fewer queries than keys, the queries are the last tokens, as when a text is continued.

    >>> causal_mask(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    return torch.ones(n_query, n_key, dtype=torch.bool).tril(diagonal=n_key - n_query)


def window_mask(
    n_query: int, n_key: int, reach: int, *, causal: bool = False, rows: slice = slice(None)
) -> Bool[Tensor, "row key"]:
    """True where a key is at most ``reach`` positions away; with ``causal``, only the query's own and earlier tokens.

    With fewer queries than keys, the queries are the last tokens. A row has at most ``2 reach + 1`` keys, or
    ``reach + 1`` with ``causal``.

    Args:
        rows: the queries that are asked for; all by default.

    Source: Beltagy et al. 2020, Longformer (arXiv:2004.05150), section 3.1, whose window w is 2 reach; causal:
    Jiang et al. 2023, Mistral 7B (arXiv:2310.06825), section 2, whose window W is reach + 1.

    >>> window_mask(3, 3, 1)
    tensor([[ True,  True, False],
            [ True,  True,  True],
            [False,  True,  True]])
    >>> window_mask(3, 3, 1, rows=slice(2, 3))
    tensor([[False,  True,  True]])
    """
    apart = torch.arange(n_key) - (torch.arange(n_query) + n_key - n_query)[rows, None]
    near = apart.abs() <= reach
    return near & (apart <= 0) if causal else near


def segment_mask(
    query_segment: Int[Tensor, " query"], key_segment: Int[Tensor, " key"]
) -> Bool[Tensor, "query key"]:
    """True where query and key are in the same segment, such as one sentence of a pair.

    >>> segment_mask(torch.tensor([0, 1]), torch.tensor([0, 0, 1]))
    tensor([[ True,  True, False],
            [False, False,  True]])
    """
    return query_segment[:, None] == key_segment
