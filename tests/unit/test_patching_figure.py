"""The cells of the page Patching: shares of the difference, or the change of the outcome where no shares are given."""

from dataclasses import replace

import numpy as np
import pytest

from attnviz.effects.patching import PatchEffects
from attnviz.figures.patching import DIFFERS, draw_patching
from tests.hand_made import tokens

TOKENS = {"receiver_tokens": tokens(["door", "it"]), "donor_tokens": tokens(["box", "it"])}


def drawn(*outcomes, donor=1.0):
    effects = PatchEffects(
        **TOKENS,
        kind="encoder",
        carried="layer",
        layer=None,
        base=0.0,
        donor=donor,
        outcomes=np.array([outcomes], dtype=np.float32),
    )
    return draw_patching(effects).data[0]


@pytest.mark.parametrize(
    ("outcomes", "donor", "cells", "limit", "what", "title"),
    [
        ((0.5, 1.25), 1.0, [0.5, 1.25], 1.25, "share 0.500, outcome 0.500", "share of the difference"),
        ((0.125, 0.25), 0.5, [0.25, 0.5], 1, "share 0.250, outcome 0.125", "share of the difference"),
        ((0.5, -3.0), 0.25, [0.5, -3.0], 3, "change 0.500, outcome 0.500", "change of the outcome"),
        ((0.5, 0.25), 0.0, [0.5, 0.25], 0.5, "change 0.500, outcome 0.500", "change of the outcome"),
    ],
)
def test_what_the_cells_show(outcomes, donor, cells, limit, what, title):
    heatmap = drawn(*outcomes, donor=donor)
    np.testing.assert_allclose(heatmap.z, [cells])
    assert (heatmap.zmin, heatmap.zmax) == (-limit, limit)
    assert heatmap.hovertext[0][0].endswith(what)
    assert heatmap.colorbar.title.text == title


@pytest.mark.parametrize(
    ("donor", "ending"),
    [(4.0, "share 0.250 ± 0.125, outcome 1.00"), (0.0, "change 1.00 ± 0.500, outcome 1.00")],
)
def test_the_spread_of_a_mean_is_in_the_unit_of_the_mean(donor, ending):
    """A standard deviation of 0.5 beside a difference of 4 is an eighth of it; beside no difference it stays what it is."""
    effects = PatchEffects(
        **TOKENS,
        kind="encoder",
        carried="layer",
        base=0.0,
        donor=donor,
        outcomes=np.array([[1.0, 0.0]], dtype=np.float32),
    )
    spread = np.array([[0.5, 0.25]], dtype=np.float32)
    assert draw_patching(effects, spread=spread).data[0].hovertext[0][0].endswith(ending)


def test_a_token_that_differs_has_a_mark_that_looks_the_same_upright():
    """A disc: a triangle points elsewhere where labels are upright, and the words below do not turn with them."""
    effects = PatchEffects(
        **TOKENS, kind="encoder", carried="layer", base=0.0, donor=1.0, outcomes=np.ones((1, 2), np.float32)
    )
    assert DIFFERS == "\N{BLACK CIRCLE}"
    labels = draw_patching(effects, differing=[0]).layout.xaxis.ticktext
    assert [DIFFERS in label for label in labels] == [True, False]


def with_ids(*ids):
    return replace(tokens([f"t{number}" for number in ids]), ids=np.array(ids, dtype=np.int64))


def test_a_token_is_named_once_where_both_texts_have_it():
    effects = PatchEffects(
        receiver_tokens=with_ids(3, 5),
        donor_tokens=with_ids(3, 7),
        kind="encoder",
        carried="layer",
        base=1.0,
        donor=5.0,
        outcomes=np.array([[1.0, 3.0], [2.0, 6.0]], dtype=np.float32),
    )
    figure = draw_patching(effects, picked=1)
    cells = figure.data[0]
    assert list(figure.layout.xaxis.ticktext) == ["t3", "t5 → t7"]
    np.testing.assert_allclose(cells.z, [[0, 0.5], [0.25, 1.25]])  # of the difference, 4
    assert (cells.zmin, cells.zmax) == (-1.25, 1.25)
    assert cells.hovertext[1][0] == "layer 1, t3·0<br>share 0.250, outcome 2.00"
    assert cells.hovertext[0][1] == "layer 0, t5 → t7·1<br>share 0.500, outcome 3.00"
    [frame] = figure.layout.shapes
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (0.5, 1.5, -0.5, 1.5)


@pytest.mark.parametrize(
    ("carried", "layer", "row", "names", "written"),
    [
        ("key", None, "layer", ["key-value head 0·0", "key-value head 1·1"], ["KV0", "KV1"]),
        ("value", None, "layer", ["key-value head 0·0", "key-value head 1·1"], ["KV0", "KV1"]),
        ("query", None, "layer", ["head 0·0", "head 1·1"], ["H0", "H1"]),
        ("key", 2, "head", ["t3·0", "t5·1"], ["t3", "t5"]),
    ],
)
def test_columns_are_heads_or_tokens(carried, layer, row, names, written):
    effects = PatchEffects(
        receiver_tokens=with_ids(3, 5),
        donor_tokens=with_ids(3, 5),
        kind="encoder",
        carried=carried,
        layer=layer,
        base=0.0,
        donor=-8.0,
        outcomes=np.array([[-1.0, 2.0]], dtype=np.float32),
    )
    figure = draw_patching(effects, picked=1)
    cells = figure.data[0]
    assert list(figure.layout.xaxis.ticktext) == written and figure.layout.yaxis.title.text == row
    hover = cells.hovertext[0][1].split("<br>")
    assert hover == [
        f"{row} 0, {names[1] if row == 'head' else names[1].split('·')[0]}",
        "share −0.250, outcome 2.00",
    ]
    assert len(figure.layout.shapes) == (row == "head")  # the selected token is no head
