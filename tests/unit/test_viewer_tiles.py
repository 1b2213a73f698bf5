"""Tiles of a long matrix, against the whole matrix cut and pooled by loops."""

import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from attnviz.errors import SelectionError
from attnviz.model.trace import Trace
from attnviz.viewer import tiles

N = 120


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of 8 cells a side, so that a small matrix has several levels."""
    monkeypatch.setattr(tiles, "SIDE", 8)


def trace(kind: Any = "decoder", window: int | None = None, n: int = N) -> Trace:
    """A head pair with some structure: random queries and keys, causal where it is a decoder's."""
    made = np.random.default_rng(5)
    vectors = {
        name: made.normal(size=(1, 2, n, 8)).astype(np.float32) for name in ("queries", "keys", "values")
    }
    given = Trace.from_arrays([f"t{at}" for at in range(n)], kind=kind, **vectors)
    call = given.attention(0)
    apart = np.arange(n)[:, None] - np.arange(n)
    allowed = apart >= 0 if kind == "decoder" else np.ones((n, n), dtype=bool)
    if window is not None:
        allowed &= np.abs(apart) < window
    return given.with_layer(replace(call, allowed=allowed[None]))


def whole(given: Trace, measure: str) -> np.ndarray:
    """The matrix of head 1 in float64 by the paper's formula; NaN where masked."""
    call = given.attention(0)
    scores = call.query[1].astype(np.float64) @ call.key[1].T.astype(np.float64) * call.scale
    allowed = call.allowed[0]
    if measure == "scores":
        return np.where(allowed, scores, np.nan)
    powers = np.where(allowed, np.exp(scores), 0.0)
    return np.where(allowed, powers / powers.sum(axis=1, keepdims=True), np.nan)


def unpacked(said: tiles.Tiles, content: bytes) -> dict[tuple[int, int], np.ndarray]:
    """The numbers of each tile."""
    found, start = {}, 0
    for place, size in zip(said.at, said.sizes, strict=True):
        codes = zlib.decompress(content[start : start + size], -15) if size else b"\xff\xff" * tiles.SIDE**2
        found[place] = said.codes.numbers(np.frombuffer(codes, dtype="<u2")).reshape(tiles.SIDE, tiles.SIDE)
        start += size
    assert start == len(content)
    return found


def looped(matrix: np.ndarray, level: int, row: int, column: int, pool: str) -> np.ndarray:
    """A tile by loops over its cells."""
    side, wide = 2**level, tiles.SIDE
    tile = np.full((wide, wide), np.nan)
    for at in range(wide):
        for to in range(wide):
            top, left = (row * wide + at) * side, (column * wide + to) * side
            block = matrix[top : top + side, left : left + side]
            if np.isfinite(block).any():
                tile[at, to] = np.nanmax(block) if pool == "max" else np.nanmean(block)
    return tile


@pytest.mark.parametrize("pool", ["max", "mean"])
@pytest.mark.parametrize("measure", ["weights", "scores"])
@pytest.mark.parametrize("window", [None, 30])
def test_a_tile_has_the_cells_of_the_matrix(measure: Any, pool: Any, window: int | None) -> None:
    given = trace(window=window)
    seen = tiles.overview(given, "decoder", 0, 1, measure, pool=pool)
    matrix = whole(given, measure)
    size = np.nanmax(np.abs(matrix))
    levels = tiles.tiling(given, "decoder").levels
    assert levels == 5  # 120 cells in tiles of 8 << 4
    for level in range(levels):  # the last two are made of the head's overview
        n_tile = -(-N // (tiles.SIDE << level))
        at = [(row, column) for row in range(n_tile) for column in range(n_tile)]
        said, content = tiles.tiles(given, seen, level, at)
        assert said.sizes[n_tile - 1] == 0 or n_tile == 1  # the upper right of a decoder's
        for (row, column), tile in unpacked(said, content).items():
            expected = looped(matrix, level, row, column, pool)
            np.testing.assert_allclose(tile, expected, atol=2e-4 * size, rtol=2e-2)


@pytest.mark.parametrize("measure", ["weights", "scores"])
@pytest.mark.parametrize("kind", ["decoder", "encoder"])
def test_a_row_and_a_column(measure: Any, kind: Any) -> None:
    given = trace(kind)
    seen = tiles.overview(given, kind, 0, 1, measure)
    matrix = whole(given, measure)
    said, content = tiles.lines(given, seen, 101, 77)
    numbers = said.codes.numbers(np.frombuffer(zlib.decompress(content, -15), dtype="<u2"))
    size = np.nanmax(np.abs(matrix))
    np.testing.assert_allclose(
        numbers, np.concatenate([matrix[101], matrix[:, 77]]), atol=2e-4 * size, rtol=2e-2
    )
    np.testing.assert_allclose(tiles.column(given, seen, 77), matrix[:, 77], atol=1e-6 * size, rtol=1e-5)


def test_ends_and_far_links_are_those_of_the_matrix() -> None:
    given = trace()
    seen = tiles.overview(given, "decoder", 0, 1, "weights")
    matrix = np.nan_to_num(whole(given, "weights"))
    ordinary = matrix[:, 1:].max()  # a decoder rests on its first token
    assert seen.ends == pytest.approx((0.0, matrix.max(), ordinary if ordinary < matrix.max() else None))
    best = []
    for query in range(N):
        keys = [key for key in range(1, N) if query - key >= tiles.FAR]
        if keys:
            key = max(keys, key=lambda key: matrix[query, key])
            best.append((matrix[query, key], query, key))
    expected = sorted(best, reverse=True)[: tiles.MOST_FAR]
    assert [link[:2] for link in seen.far] == [(query, key) for _, query, key in expected]
    np.testing.assert_allclose(
        [link[2] for link in seen.far], [weight for weight, _, _ in expected], rtol=1e-5
    )


def test_a_sliding_window_is_found_in_the_mask() -> None:
    assert tiles.window_of(trace(window=40).attention(0)) == (39, 0)
    assert tiles.window_of(trace("encoder", window=40).attention(0)) == (39, 39)
    assert tiles.window_of(trace().attention(0)) is None


def test_what_is_not_there_is_refused() -> None:
    given = trace()
    seen = tiles.overview(given, "decoder", 0, 1, "weights")
    with pytest.raises(SelectionError, match="Level 9 was asked for; this matrix has levels 0 to 4"):
        tiles.tiles(given, seen, 9, [(0, 0)])
    with pytest.raises(SelectionError, match="Tile row 15 was asked for"):
        tiles.tiles(given, seen, 0, [(15, 0)])
    with pytest.raises(SelectionError, match="Key 120 was asked for"):
        tiles.lines(given, seen, 0, 120)
