"""A model whose layers have 4, 6 and 2 heads, on every page: heads are counted in the layer that is selected."""

import numpy as np
import pytest

import attnviz
from tests import tiny
from tests.app.screen import (
    assert_no_exception,
    component,
    document,
    errors,
    facts,
    figure,
    matrix,
    notices,
    numbers,
    open_page,
    settle,
    shown,
    step_head,
    unescaped,
    until_drawn,
)
from ui.rooms import PAGES

COUNTS = [4, 6, 2]
PLACES = [(layer, head) for layer, count in enumerate(COUNTS) for head in range(count)]
TEXT = "the cat"
WITHOUT = {
    "pages/lens.py": "the parts of an answer: this family's W_O does not take the heads' outputs unchanged",
    "pages/positions.py": "position vectors: this family turns queries and keys",
}
"""Pages that cannot show this family, and the part that each of them names."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.save_with_head("laguna", tmp_path_factory.mktemp("uneven") / "laguna")


@pytest.fixture(scope="module")
def trace(folder):
    return attnviz.load_model(str(folder)).trace(TEXT)


@pytest.fixture
def opened(folder, offer_to_workers):
    offer_to_workers(folder)

    def at(page="attention.py", **params):
        screen = open_page(page, **{"model": "laguna", "text": TEXT} | params)
        assert_no_exception(screen)
        return screen

    return at


@pytest.mark.nightly
@pytest.mark.parametrize("layer", range(3))
@pytest.mark.parametrize("page", [page.file for page in PAGES])
def test_every_page_shows_the_last_head_of_every_layer(page, layer, opened):
    at = until_drawn(opened(page, layer=layer, head=COUNTS[layer] - 1))
    assert errors(at) == [] or page in WITHOUT
    assert "Something went wrong" not in " ".join(errors(at))
    assert notices(at) == []
    assert (shown(at)["layer"], shown(at)["head"]) == (str(layer), str(COUNTS[layer] - 1))
    written = " ".join(unescaped(element.value) for element in (*at.markdown, *at.caption))
    assert "nan" not in written.lower().replace("\N{NO-BREAK SPACE}", " ").split()
    checked = [
        element.proto.label for element in at.get("page_link") if element.proto.label.startswith(":green[")
    ]
    assert checked or page == "pages/verification.py"


def test_the_first_screen_shows_a_head_that_only_this_layer_has(opened, trace):
    at = opened(layer=1, head=5)
    np.testing.assert_allclose(np.nan_to_num(matrix(at)), trace.weights(1, 5), atol=4e-5)
    assert document(at)["counts"] == COUNTS
    assert notices(at) == errors(at) == []


def test_another_layer_has_its_own_heads(opened, trace):
    at = settle(opened(layer=1, head=5), layer=2)
    assert (shown(at)["layer"], shown(at)["head"]) == ("2", "1")
    [notice] = notices(at)
    assert facts(notice).numbers == ("5", "2", "0", "1", "1")  # asked for; the layer; first, last and shown
    np.testing.assert_allclose(np.nan_to_num(matrix(at)), trace.weights(2, 1), atol=4e-5)


@pytest.mark.parametrize(
    ("start", "by", "end"),
    [
        ((0, 3), 1, (1, 0)),
        ((1, 5), 1, (2, 0)),
        ((2, 1), 1, (0, 0)),
        ((2, 0), -1, (1, 5)),
        ((0, 0), -1, (2, 1)),
    ],
)
def test_previous_and_next_walk_through_the_heads_that_there_are(start, by, end, opened):
    at = opened(layer=start[0], head=start[1])
    step_head(at, by)
    assert (shown(at)["layer"], shown(at)["head"]) == tuple(map(str, end))
    assert notices(at) == []


def test_all_heads_are_those_that_there_are(opened, trace):
    at = opened("pages/all_heads.py", layer=1, head=5, grid="self")
    assert errors(at) == []
    cells = component(at, "head_grid")["cells"]
    assert [len(row) for row in cells] == COUNTS
    labels = [cell["label"] for row in cells for cell in row]
    expected = [float(np.diag(trace.weights(*place)).mean()) for place in PLACES]
    assert [float(label) for label in labels] == pytest.approx(expected, abs=0.006)  # two digits in a cell
    table = at.dataframe[0].value
    assert list(zip(table["Layer"], table["Head"], strict=True)) == PLACES
    assert figure(at, "head_map")["data"][0]["text"] is not None
    points = numbers(figure(at, "head_map")["data"][0]["customdata"])
    assert points.tolist() == [list(place) for place in PLACES]


def test_the_verification_page_has_a_cell_for_each_head(opened):
    at = opened("pages/verification.py", layer=1, head=5)
    assert errors(at) == []
    cells = np.array(numbers(figure(at, "errors")["data"][0]["z"]), dtype=float)
    assert [tuple(place) for place in np.argwhere(np.isfinite(cells)).tolist()] == PLACES
