"""Hatching covers the cells that are missing and no others, below the cells or above an overview."""

import re

import numpy as np
import pytest

from attnviz.figures import draw_pattern
from attnviz.figures.cells import boxes, hatching
from attnviz.figures.theme import DARK, LIGHT
from tests import hand_made

MASKS = {
    "causal": ~np.tri(7, dtype=bool),
    "window": np.abs(np.subtract.outer(np.arange(7), np.arange(7))) > 1,
    "scattered": np.random.default_rng(5).random((7, 11)) < 0.4,
    "all": np.ones((3, 5), dtype=bool),
}


@pytest.mark.parametrize("missing", MASKS.values(), ids=MASKS)
def test_boxes_cover_each_missing_cell_once_and_no_other(missing):
    covered = np.zeros(missing.shape, dtype=int)
    for left, right, top, bottom in boxes(missing):
        covered[int(top + 0.5) : int(bottom + 0.5), int(left + 0.5) : int(right + 0.5)] += 1
    np.testing.assert_array_equal(covered, missing.astype(int))


@pytest.mark.parametrize("missing", MASKS.values(), ids=MASKS)
def test_lines_cross_every_missing_cell_and_no_other(missing):
    crossed = np.zeros(missing.shape, dtype=int)
    path = hatching(missing, LIGHT)[1]["path"]
    for ends in re.findall(r"M([-\d.]+),([-\d.]+)L([-\d.]+),([-\d.]+)", path):
        x0, y0, x1, y1 = map(float, ends)
        assert x0 + y0 == x1 + y1  # from the top right to the bottom left
        for step in range(round(y1 - y0)):  # a cell's height each; its middle is half a cell on
            crossed[round(y0 + step + 0.5), round(x0 - step - 0.5)] += 1
    np.testing.assert_array_equal(crossed, missing.astype(int))


@pytest.mark.parametrize("shape", [(3, 90), (90, 3), (125, 130)])
def test_a_long_side_has_at_most_forty_odd_lines(shape):
    """Lines of row + column = 0, step, 2 step ..., each from corner to corner of the cells that it crosses."""
    step = max(shape) // 40
    lines = []
    for total in range(0, sum(shape) - 1, step):
        crossed = [row for row in range(shape[0]) if 0 <= total - row < shape[1]]
        top, bottom = crossed[0] - 0.5, crossed[-1] + 0.5
        lines.append((total - top, top, total - bottom, bottom))
    path = hatching(np.ones(shape, dtype=bool), LIGHT)[1]["path"]
    drawn = re.findall(r"M([-\d.]+),([-\d.]+)L([-\d.]+),([-\d.]+)", path)
    assert [tuple(map(float, ends)) for ends in drawn] == lines


def test_a_causal_mask_on_paper():
    grey, lines = hatching(~np.tri(2, dtype=bool), DARK)
    assert grey["path"] == "M0.5,-0.5L1.5,-0.5L1.5,0.5L0.5,0.5Z"
    assert lines["path"] == "M1.5,-0.5L0.5,0.5"
    assert grey["fillcolor"] == DARK.edge and lines["line"]["color"] == DARK.quiet
    assert hatching(np.zeros((2, 2), dtype=bool), DARK) == []


def paths(pattern, *, hatched):
    return [shape for shape in draw_pattern(pattern, hatched=hatched).layout.shapes if shape.type == "path"]


def test_a_matrix_is_hatched_where_a_mask_forbids():
    allowed = np.tri(2, dtype=bool)
    weights = np.array([[1, 0], [0.25, 0.75]])[None, None]
    pattern = hand_made.trace(weights, ["the", "door"], allowed=allowed).pattern(0, 0)
    grey, lines = paths(pattern, hatched=True)
    assert (grey.path, lines.path) == ("M0.5,-0.5L1.5,-0.5L1.5,0.5L0.5,0.5Z", "M1.5,-0.5L0.5,0.5")
    assert grey.layer == "below"
    assert paths(pattern, hatched=False) == []


def test_an_overview_does_not_cover_the_hatching():
    n = 193  # one more than an overview begins with
    weights = np.tri(n) / np.arange(1, n + 1)[:, None]
    pattern = hand_made.trace(weights[None, None], ["a"] * n, allowed=np.tri(n, dtype=bool)).pattern(0, 0)
    assert {path.layer for path in paths(pattern, hatched=True)} == {"above"}
    assert len(paths(pattern, hatched=True)[1].path) < 10_000  # for the wire
