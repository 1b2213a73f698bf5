"""The matrix of a long text as tiles: exact at level 0, and each level above pooled from 2 x 2 cells of the one below.

A head is read through once, by rows, for what is said of it as a whole; then a tile takes milliseconds. The form of the answers
is that of docs/viewer.md.
"""

import math
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from attnviz.figures.heatmap import Shown
from attnviz.model.head_attention import score_inputs, tensor_of
from attnviz.records import Axis, Kind, LayerAttention, check_index, resting_places
from attnviz.viewer.codes import Scale, coded

if TYPE_CHECKING:
    from torch import Tensor

    from attnviz.model.trace import Trace

SIDE = 256
"""Cells of a tile, each way."""
_BASE = 3
"""The finest level that is made of the whole matrix; the tiles of finer ones are made of their rows."""
FAR = 64
"""Tokens between a query and a key from which their link is a far one: beyond the sentence, and beyond most of a sliding window."""
MOST_ASKED = 16
"""Tiles of one answer, as tiles.js asks for them."""
MOST_FAR = 20
"""Far links that are told, of as many queries."""

_LEAST = 1e-6
"""As a share of the largest number, the smallest that keeps its digits in a tile; the overview knows no smaller ones."""

Pool = Literal["max", "mean"]
"""What a cell that stands for several shows of them."""


class Tiling(Struct, frozen=True, rename="camel"):
    """What the document says of a matrix that comes in tiles."""

    side: int
    far: int
    """How many tokens a far link spans at least."""
    levels: int
    """Number of levels; the last one is a single tile."""
    windows: tuple[tuple[int, int] | None, ...]
    """Of each layer with a sliding window, how many tokens before and after its own a query may see."""


class Tiles(Struct, frozen=True, rename="camel"):
    """Some tiles of one level of a head; their codes are deflated one by one."""

    level: int
    pool: Pool
    at: tuple[tuple[int, int], ...]
    """Row and column of each tile, in tiles."""
    sizes: tuple[int, ...]
    """Bytes of each; 0 for a tile without a cell that a query may see."""
    codes: Scale
    ends: tuple[float, float, float | None]
    """The smallest and the largest number of the head, and where its colours end, `attnviz.heads.facts.colour_end`."""
    far: tuple[tuple[int, int, float], ...]
    """Query, key and number of the strongest far links, one for each query, beside resting places."""


class Lines(Struct, frozen=True, rename="camel"):
    """The numbers of one query on all keys, and then of all queries on one key, deflated together."""

    query: int
    key: int
    codes: Scale


def tiling(trace: "Trace", kind: Kind) -> Tiling:
    """The levels of the matrices of a text, and the windows of its layers."""
    return Tiling(
        side=SIDE,
        far=FAR,
        levels=1 + max(0, math.ceil(math.log2(_longest(trace, kind) / SIDE))),
        windows=tuple(window_of(trace.attention(layer, kind)) for layer in range(trace.n_layers(kind))),
    )


def tile_places(trace: "Trace", kind: Kind, level: int) -> list[tuple[int, int]]:
    """Row and column of every tile of a level."""
    sides = (len(trace.query_tokens(kind)), len(trace.key_tokens(kind)))
    n_row, n_column = (-(-n_token // (SIDE << level)) for n_token in sides)
    return [(row, column) for row in range(n_row) for column in range(n_column)]


def strongest_key(trace: "Trace", kind: Kind, layer: int, head: int, query: int) -> int:
    """The key of a query's largest weight beside resting places and the query itself; itself where there is none."""
    [(_, row)] = _blocks(trace, kind, layer, head, "weights", slice(query, query + 1))
    weights = row[0].nan_to_num(-1.0).numpy()
    is_aside = resting_places(Axis.of(trace.key_tokens(kind)), kind)[: len(weights)]
    weights[is_aside] = -1.0
    if kind != "cross" and query < len(weights):
        weights[query] = -1.0
    best = int(weights.argmax())
    return best if weights[best] > 0 else min(query, len(trace.key_tokens(kind)) - 1)


def _longest(trace: "Trace", kind: Kind | None) -> int:
    return max(len(trace.query_tokens(kind)), len(trace.key_tokens(kind)))


def window_of(call: LayerAttention) -> tuple[int, int] | None:
    """How many tokens before and after its own a query may see; None where only the ends of the text limit it.

    By the last query's first key and the first one's last key: a window that is open only at the other side has None, too.
    """
    if call.allowed is None or call.kind == "cross" or call.allowed.shape[1] == 1:
        return None
    first, last = (np.flatnonzero(call.allowed[0, row]) for row in (0, -1))
    if not len(last) or last[0] == 0:
        return None
    return int(call.allowed.shape[1] - 1 - last[0]), int(first[-1]) if len(first) else 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Overview:
    """What reading a head through once gives."""

    kind: Kind
    layer: int
    head: int
    measure: Shown
    pool: Pool
    base: "_Parts"
    """Level `_BASE`."""
    strongest: Int[np.ndarray, " query"]
    """The key of each query's largest number."""
    largest: Float[np.ndarray, " query"]
    """That number; minus infinity for a query that sees no key."""
    ends: tuple[float, float, float | None]
    far: tuple[tuple[int, int, float], ...]
    scale: Scale


def overview(
    trace: "Trace", kind: Kind, layer: int, head: int, measure: Shown, pool: Pool = "max"
) -> Overview:
    """Reads a head through, some rows at a time.

    Raises:
        SelectionError: no such layer, head or measure, or rollout, which takes whole matrices.
    """
    import torch

    queries, keys = Axis.of(trace.query_tokens(kind)), Axis.of(trace.key_tokens(kind))
    is_aside, is_resting = torch.tensor(queries.is_special), torch.tensor(resting_places(keys, kind))
    is_score = measure == "scores"
    bases: list[_Parts] = []
    largest, ordinary, far = [], [], []
    total, lowest = 0.0, math.inf if is_score else 0.0
    for rows, numbers in _blocks(trace, kind, layer, head, measure, slice(0, len(queries))):
        wide = numbers.shape[1]  # beyond it no query of the block sees a key
        bases.append(_pooled(_parts(numbers, pool), 2**_BASE, -(-len(keys) // 2**_BASE)))
        seen = numbers.nan_to_num(-math.inf)
        largest.append(seen.max(dim=1))
        if is_score:
            lowest = min(lowest, float(numbers.nan_to_num(math.inf).min()))
        else:
            total += float(numbers.nansum(dtype=torch.float64))
        seen[:, is_resting[:wide]] = -math.inf
        ordinary.append(seen.amax(dim=1).masked_fill(is_aside[rows], -math.inf))
        if kind != "cross":
            first = max(0, rows.start - FAR + 1)
            near = seen[:, first : rows.stop + FAR - 1]
            apart = torch.arange(rows.start, rows.stop)[:, None] - torch.arange(first, first + near.shape[1])
            near.masked_fill_(apart.abs_() < FAR, -math.inf)
        far.append(seen.max(dim=1))
    most, best = (torch.cat([block.values for block in blocks]) for blocks in (largest, far))
    strongest, farthest = (torch.cat([block.indices for block in blocks]) for blocks in (largest, far))
    base = tuple(torch.cat(parts) for parts in zip(*bases, strict=True))
    highest = float(most.max())
    end = max(float(torch.cat(ordinary).max()), float(np.float32(total / (len(queries) * len(keys)))))
    return Overview(
        kind=kind,
        layer=layer,
        head=head,
        measure=measure,
        pool=pool,
        base=base,
        strongest=strongest.numpy(),
        largest=most.numpy(),
        ends=(lowest, highest, end if end < highest and not is_score else None),
        far=tuple(
            (query, int(farthest[query]), float(best[query]))
            for query in best.argsort(descending=True, stable=True)[:MOST_FAR].tolist()
            if best[query] > (-math.inf if is_score else 0.0)
        ),
        scale=Scale.of(
            np.append(_numbers(base), [lowest, highest, _LEAST * highest]), is_share=measure == "weights"
        ),
    )


def tiles(trace: "Trace", seen: Overview, level: int, at: Iterable[tuple[int, int]]) -> tuple[Tiles, bytes]:
    """Some tiles of a head, which answers ``ask("tiles")``.

    Raises:
        SelectionError: no such level or tile.
    """
    check_index("level", level, tiling(trace, seen.kind).levels, "this matrix")
    there, asked = tile_places(trace, seen.kind, level), tuple(sorted(set(at)))
    for place in asked:
        for name, number, last in zip(("row", "column"), place, there[-1], strict=True):
            check_index(f"tile {name}", number, last + 1, f"level {level}")
    packed = [_packed(numbers, seen) for numbers in _cut(trace, seen, level, asked)]
    said = Tiles(
        level=level,
        pool=seen.pool,
        at=asked,
        sizes=tuple(map(len, packed)),
        codes=seen.scale,
        ends=seen.ends,
        far=seen.far,
    )
    return said, b"".join(packed)


def lines(trace: "Trace", seen: Overview, query: int, key: int) -> tuple[Lines, bytes]:
    """The row of a query and the column of a key, which answers ``ask("lines")``.

    Raises:
        SelectionError: no such query or key.
    """
    check_index("query", query, len(trace.query_tokens(seen.kind)), "this text")
    check_index("key", key, len(trace.key_tokens(seen.kind)), "this text")
    place = seen.kind, seen.layer, seen.head, seen.measure
    [(_, block)] = _blocks(trace, *place, slice(query, query + 1))
    row = block[0].numpy()
    beyond = np.full(len(trace.key_tokens(seen.kind)) - len(row), np.nan, dtype=np.float32)
    numbers = np.concatenate([row, beyond, column(trace, seen, key)])
    return Lines(query=query, key=key, codes=seen.scale), _deflated(numbers, seen)


def column(trace: "Trace", seen: Overview, key: int) -> Float[np.ndarray, " query"]:
    """The numbers of all queries on one key; NaN where a query may not see it.

    Weights need no softmax of every row: w_ij = w_im exp(s_ij - s_im), where m is the key of row i's largest weight.
    """
    import torch

    call = trace.attention(seen.layer, seen.kind)
    n_query = len(seen.largest)
    if call.weights is not None or trace.interventions:
        blocks = _blocks(trace, seen.kind, seen.layer, seen.head, seen.measure, slice(0, n_query))
        unseen = np.float32(np.nan)
        return np.concatenate(
            [
                numbers[:, key].numpy() if key < numbers.shape[1] else np.full(len(numbers), unseen)
                for _, numbers in blocks
            ]
        )
    scores = _scores_with(call.of_head(seen.head), np.full(n_query, key))
    is_masked = scores == -math.inf
    if seen.measure == "scores":
        return scores.masked_fill(is_masked, math.nan).numpy()
    apart = scores - _scores_with(call.of_head(seen.head), seen.strongest)
    weights = torch.tensor(seen.largest) * apart.exp()
    if seen.measure == "norms":
        lengths = trace.value_lengths(seen.layer, seen.kind)[seen.head]
        weights *= torch.tensor(lengths[key] / lengths[seen.strongest])
    return weights.masked_fill(is_masked, math.nan).numpy()


def _scores_with(call: LayerAttention, keys: Int[np.ndarray, " query"]) -> "Tensor":
    """The score of each query of a head with one key of its own; minus infinity where it may not see it."""
    from attnviz.maths.attention import attention_scores

    given = score_inputs(call)
    for name in ("allowed", "bias"):
        if given[name] is not None:
            whole = given[name][0].expand(len(keys), call.key.shape[1])
            given[name] = whole.gather(1, tensor_of(keys)[:, None])[:, None]  # [query, 1, 1]
    given["query"], given["key"] = (
        given["query"][0][:, None],
        given["key"][0][keys][:, None],
    )  # [query, 1, d_head]
    return attention_scores(**given)[:, 0, 0]


def _blocks(
    trace: "Trace", kind: Kind, layer: int, head: int, measure: Shown, rows: slice
) -> "Iterator[tuple[slice, Tensor]]":
    """The numbers of some queries on each key up to the last that any of them may see, [row, key]; NaN where a query may not see it."""
    import torch

    call = trace.attention(layer, kind)
    check_index("head", head, len(call.query), f"layer {layer} of {trace.provenance.model}")
    of_head = call.of_head(head)
    if measure == "scores":
        blocks = _score_blocks(of_head, rows)
    else:
        made = trace.blocks(layer, kind, head=head, rows=rows, measure=measure)
        blocks = ((block, torch.from_numpy(weights[0])) for block, weights in made)
    for block, numbers in blocks:
        if of_head.allowed is None:
            yield block, numbers
            continue
        allowed = tensor_of(
            of_head.allowed[0] if of_head.allowed.shape[1] == 1 else of_head.allowed[0, block]
        )
        wide = _stop(allowed) if allowed.shape[1] == numbers.shape[1] else numbers.shape[1]
        yield block, numbers[:, :wide].masked_fill(~allowed[:, :wide], math.nan)


def _stop(allowed: "Tensor") -> int:
    """The place after the last key that any query may see; at least 1."""
    seen = allowed.any(dim=0).nonzero()
    return 1 + int(seen[-1]) if len(seen) else 1


def _score_blocks(call: LayerAttention, rows: slice) -> "Iterator[tuple[slice, Tensor]]":
    from attnviz.maths.attention import attention_scores
    from attnviz.maths.blocks import QUERY_BLOCK

    def part(matrix: np.ndarray | None, block: slice) -> np.ndarray | None:
        return matrix if matrix is None or matrix.shape[1] == 1 else matrix[:, block]

    for start in range(rows.start, rows.stop, QUERY_BLOCK):
        block = slice(start, min(start + QUERY_BLOCK, rows.stop))
        some = replace(
            call, query=call.query[:, block], allowed=part(call.allowed, block), bias=part(call.bias, block)
        )
        yield block, attention_scores(**score_inputs(some))[0]


_Parts = tuple["Tensor", ...]
"""Cells that stand for blocks of cells: their largest number, minus infinity for none, or their sum and how many a query may see."""


def _parts(numbers: "Tensor", pool: Pool) -> _Parts:
    if pool == "max":
        return (numbers.nan_to_num(-math.inf),)
    return numbers.nan_to_num(0.0), (~numbers.isnan()).float()


def _pooled(parts: _Parts, side: int, wide: int | None = None) -> _Parts:
    """The same of side x side blocks, as many in a row as are asked for; what is beyond the last cells counts as masked."""
    from torch.nn.functional import avg_pool2d, max_pool2d, pad

    made: _Parts
    if len(parts) == 1:
        made = (max_pool2d(parts[0][None], side, ceil_mode=True)[0],)
    else:
        high, long = parts[0].shape
        beyond = (0, -long % side, 0, -high % side)
        made = tuple(avg_pool2d(pad(part, beyond)[None], side, divisor_override=1)[0] for part in parts)
    missing = 0 if wide is None else wide - made[0].shape[1]
    if not missing:
        return made
    return tuple(pad(part, (0, missing), value=-math.inf if len(parts) == 1 else 0.0) for part in made)


def _numbers(parts: _Parts) -> Float[np.ndarray, "row column"]:
    """What the blocks are shown as; NaN where no query may see any key."""
    if len(parts) == 1:
        numbers: np.ndarray = parts[0].masked_fill(parts[0] == -math.inf, math.nan).numpy()
        return numbers
    return np.asarray((parts[0] / parts[1]).numpy())


def _cut(
    trace: "Trace", seen: Overview, level: int, at: Iterable[tuple[int, int]]
) -> Iterator[Float[np.ndarray, "row column"]]:
    """The numbers of some tiles, those of a row of tiles after each other."""
    import torch
    from torch.nn.functional import pad

    pool, long = 2 ** max(0, level - _BASE), SIDE << (level if level < _BASE else level - _BASE)
    whole: tuple[int | None, _Parts] = (None, seen.base)
    for row, column in at:
        rows, columns = slice(row * long, (row + 1) * long), slice(column * long, (column + 1) * long)
        if level >= _BASE:
            yield _numbers(_pooled(tuple(part[rows, columns] for part in seen.base), pool))
            continue
        if whole[0] != row:
            stop = min(rows.stop, len(seen.largest))
            blocks = _blocks(trace, seen.kind, seen.layer, seen.head, seen.measure, slice(rows.start, stop))
            n_key = len(trace.key_tokens(seen.kind))
            rows_of_tile = [
                pad(numbers, (0, n_key - numbers.shape[1]), value=math.nan) for _, numbers in blocks
            ]
            whole = row, _parts(torch.cat(rows_of_tile), seen.pool)
        yield _numbers(_pooled(tuple(part[:, columns] for part in whole[1]), 2**level))


def _packed(numbers: Float[np.ndarray, "row column"], seen: Overview) -> bytes:
    """The codes of a tile, filled up to its whole size; nothing where all is masked."""
    if np.isnan(numbers).all():
        return b""
    whole = np.full((SIDE, SIDE), np.nan, dtype=np.float32)
    whole[: numbers.shape[0], : numbers.shape[1]] = numbers
    return _deflated(whole, seen)


def _deflated(numbers: Float[np.ndarray, "*cell"], seen: Overview) -> bytes:
    codes = coded(numbers, is_share=seen.measure == "weights", scale=seen.scale).codes
    packer = zlib.compressobj(1, wbits=-15)
    return packer.compress(codes.tobytes()) + packer.flush()
