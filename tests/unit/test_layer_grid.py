"""Where layers stand in figures: the first on top, or on the left where there are more than twelve; each has its label."""

import re
from dataclasses import replace

import numpy as np
import pytest

from attnviz.effects.lens import Lens
from attnviz.figures.heads import draw_heads
from attnviz.figures.layer_grid import Colours, draw_layer_grid
from attnviz.figures.lens import draw_lens
from attnviz.figures.theme import LIGHT
from attnviz.figures.verification import draw_errors
from attnviz.records import head_table
from tests import small_records
from tests.hand_made import tokens

ISOLATES = "\u2068\u2069"  # around a token, so that its direction does not change that of the rest
COLOURS = Colours(scale=[(0.0, "#ffffff"), (1.0, "#000000")], low=0.0, high=1.0, title="share")


def drawn(n_row: int, n_token: int, picked: int | None = None, missing: tuple[int, int] | None = None):
    """A grid whose cell of row r and token t holds r + t / 10, and says so; a missing one has no number."""
    numbers = np.add.outer(np.arange(n_row), np.arange(n_token) / 10).astype(np.float32)
    if missing is not None:
        numbers[missing] = np.nan
    names = [f"t{at}" for at in range(n_token)]
    return draw_layer_grid(
        numbers,
        row="layer",
        names=names,
        written=names,
        colours=COLOURS,
        hovers=[[f"{row} {at}" for at in range(n_token)] for row in range(n_row)],
        letters=[[f"{row}|{at}" for at in range(n_token)] for row in range(n_row)]
        if missing is None
        else None,
        picked=picked,
    )


def shown(figure):
    """What a reader sees at each place, from the upper left: number, custom data, hover text and letters."""
    cells, letters = figure.data
    bottom, top = figure.layout.yaxis.range
    left, right = figure.layout.xaxis.range
    assert left < right
    places = {(x, y): text for x, y, text in zip(letters.x, letters.y, letters.text, strict=True)}
    rows = [
        [
            (
                float(cells.z[y][x]),
                tuple(cells.customdata[y][x]),
                cells.hovertext[y][x],
                places[cells.x[x], cells.y[y]],
            )
            for x in range(len(cells.x))
        ]
        for y in range(len(cells.y))
    ]
    return rows if bottom > top else rows[::-1]


def cell(row: int, at: int):
    return (pytest.approx(row + at / 10), (row, at), f"{row} {at}", f"{row}|{at}")


def test_twelve_layers_stand_from_the_first_on_top():
    figure = drawn(12, 3)
    assert shown(figure) == [[cell(row, at) for at in range(3)] for row in range(12)]
    assert (figure.layout.yaxis.title.text, figure.layout.xaxis.title.text) == ("layer", None)


def test_thirteen_layers_stand_from_the_first_on_the_left():
    figure = drawn(13, 3)
    assert shown(figure) == [[cell(row, at) for row in range(13)] for at in range(3)]
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("layer", None)


@pytest.mark.parametrize(
    ("n_row", "x", "y"), [(12, (1.5, 2.5), (-0.5, 11.5)), (13, (-0.5, 12.5), (1.5, 2.5))]
)
def test_the_selected_token_is_outlined(n_row, x, y):
    [frame] = drawn(n_row, 3, picked=2).layout.shapes
    assert ((frame.x0, frame.x1), (frame.y0, frame.y1)) == (x, y)


@pytest.mark.parametrize(("n_row", "x", "y"), [(12, (1.5, 2.5), (3.5, 4.5)), (13, (3.5, 4.5), (1.5, 2.5))])
def test_a_cell_without_a_number_is_hatched(n_row, x, y):
    """Its place is what a reader would take for 0 otherwise: layer 4, token 2."""
    shapes = drawn(n_row, 3, missing=(4, 2)).layout.shapes
    ends = [tuple(map(float, place.split(","))) for place in re.findall(r"[-\d.]+,[-\d.]+", shapes[0].path)]
    assert [(min(coordinates), max(coordinates)) for coordinates in zip(*ends, strict=True)] == [x, y]
    assert not drawn(n_row, 3).layout.shapes


@pytest.mark.parametrize(("n_row", "axis"), [(12, "yaxis"), (30, "xaxis")])
def test_every_layer_has_its_label(n_row, axis):
    assert drawn(n_row, 3).layout[axis].dtick == 1


@pytest.mark.parametrize(("n_layer", "most"), [(12, 9), (13, 4)])
def test_answers_are_as_long_as_their_cells(n_layer, most):
    lens = lens_of(["considerably", "a"], n_layer)
    written = {text.strip(ISOLATES) for text in draw_lens(lens).data[1].text}
    assert {len(part) for part in written} == {1, most}


def lens_of(labels: list[str], n_layer: int = 1) -> Lens:
    """The same answers after each layer, a token each."""
    n_token = len(labels)
    return Lens(
        kind="decoder",
        tokens=tokens(labels),
        ids=np.zeros((n_layer, n_token, 1), dtype=np.int64),
        labels=(tuple((label,) for label in labels),) * n_layer,
        probabilities=np.full((n_layer, n_token, 1), 0.5, dtype=np.float32),
        answers=tuple(labels),
        answer_probabilities=np.full((n_layer, n_token), 0.5, dtype=np.float32),
        answer_ranks=np.zeros((n_layer, n_token), dtype=np.int64),
    )


@pytest.mark.parametrize("n_token", [16, 17])
def test_answers_are_written_in_the_cells_of_up_to_16_tokens(n_token):
    labels = [f"w{at}" for at in range(n_token)]
    figure = draw_lens(lens_of(labels))
    assert [mark.type for mark in figure.data] == ["heatmap", "scatter"][: 1 + (n_token == 16)]
    cells = figure.data[0]
    assert (cells.zmin, cells.zmax, cells.colorbar.title.text) == (0, 1, "its probability")
    assert cells.hovertext[0][3] == "layer 0, w3·3<br>most likely w3, 0.500"


@pytest.mark.parametrize(("n_layer", "written"), [(12, ["␣ab", "␣"]), (13, ["ab", "␣"])])
def test_narrow_cells_have_no_room_for_the_space_before_a_word(n_layer, written):
    letters = draw_lens(lens_of(["␣ab", "␣"], n_layer)).data[1]
    assert {*letters.text} == {*written}


def test_letters_need_the_room_of_all_but_the_longest_quarter():
    texts = [["a", "abc", "abcd", "abcde"]] * 2
    grids = [
        draw_layer_grid(
            np.array([[0.0, 1.0, 0.25, 0.75]] * 2, dtype=np.float32),
            row="layer",
            names=["w", "x", "y", "z"],
            written=["w", "x", "y", "z"],
            colours=COLOURS,
            hovers=texts,
            letters=[[length * text for text in row] for row in texts],
        ).data[1]
        for length in (1, 2)
    ]
    assert [letters.meta for letters in grids] == [
        30,
        61,
    ]  # three quarters have up to 4.25 letters of 7.2 px, or twice that
    assert grids[0].textfont.color[:2] == (
        LIGHT.text,
        LIGHT.background,
    )  # on the background and on the strongest tone


def test_errors_are_those_of_the_kind_that_is_shown():
    check = small_records.check([[1e-6, 2e-6]])
    check = replace(
        check,
        differences=dict(check.differences) | {"decoder": np.full((1, 2), 3e-6, dtype=np.float32)},
        tolerances=dict(check.tolerances) | {"decoder": np.full((1, 2), 1e-5, dtype=np.float32)},
    )
    shown_ = [
        draw_errors(check, kind=kind).data[0].customdata[0, :, 0].tolist() for kind in (None, "decoder")
    ]
    assert shown_ == [pytest.approx([1e-6, 2e-6]), pytest.approx([3e-6, 3e-6])]


@pytest.mark.parametrize("n_layer", [12, 13])
def test_heads_as_points(n_layer):
    numbers = head_table([[layer / 20, layer / 20 + 0.01, 0.02] for layer in range(n_layer)])
    figure = draw_heads(numbers, what="share", picked=(3, 1))
    [points] = figure.data
    of_layer, of_number = (points.x, points.y) if n_layer > 12 else (points.y, points.x)
    np.testing.assert_allclose(of_number, numbers.ravel())
    np.testing.assert_array_equal(np.rint(of_layer), np.repeat(np.arange(n_layer), 3))
    low, high = figure.layout.xaxis.range if n_layer > 12 else figure.layout.yaxis.range[::-1]
    assert low < 0 < n_layer - 1 < high  # the first on the left, or on top
    assert [*map(tuple, points.customdata)] == [
        (layer, head) for layer in range(n_layer) for head in range(3)
    ]


@pytest.mark.parametrize("n_layer", [12, 13])
def test_errors_of_heads(n_layer):
    differences = (np.arange(n_layer * 3).reshape(n_layer, 3) + 1) * 1e-7
    figure = draw_errors(
        small_records.check(differences.tolist(), np.full((n_layer, 3), 1e-5).tolist()), picked=(7, 1)
    )
    [cells] = figure.data
    z, both = np.array(cells.z, dtype=float), np.array(cells.customdata, dtype=float)
    if n_layer > 12:
        z, both = z.T, both.swapaxes(0, 1)
    np.testing.assert_allclose(z, np.log10(differences / 1e-5), rtol=1e-5)  # float32
    np.testing.assert_allclose(both[..., 0], differences, rtol=1e-5)
    [frame] = figure.layout.shapes
    of_layer, of_head = (frame.x0, frame.y0) if n_layer > 12 else (frame.y0, frame.x0)
    assert (of_layer, of_head) == (6.5, 0.5)
    across, down = (figure.layout[axis].title.text for axis in ("xaxis", "yaxis"))
    assert (across, down) == (("layer", "head") if n_layer > 12 else ("head", "layer"))
    assert ("layer %{x}" in cells.hovertemplate) == (n_layer > 12)
