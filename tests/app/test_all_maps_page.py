"""The page "All maps": each map is the head's, its number and lines are the trace's, and they come one by one."""

from base64 import b64decode

import numpy as np
import pytest

from attnviz.errors import ModelNotAvailableError
from attnviz.maps.projection import arrays, place
from tests.app.screen import (
    Facts,
    ask_until,
    assert_no_exception,
    component,
    errors,
    facts,
    headline,
    open_page,
    shown,
    type_text,
    until_drawn,
)
from tests.calls import Held
from ui.runtime import head_cache
from ui.words.reliability import listed, reading_of

PAGE = "pages/all_maps.py"
SETTINGS = dict(
    dimensions=2,
    method="pca",
    space="lifted",
    metric="cosine",
    perplexity=5.0,
    iterations=1000,
    neighbours=15,
    min_dist=0.1,
    seed=0,
)


def open_maps(**params):
    """The page once all maps are there. PCA is exact and fast."""
    at = until_drawn(open_page(PAGE, **{"method": "pca"} | params))
    assert errors(at) == []
    return at


def cells(at):
    """What is drawn of each head, by its place."""
    return {tuple(cell["place"]): cell for cell in component(at, "map_grid")["cells"]}


def points(at, layer, head):
    """As the browser reads them, from 0 to 255."""
    packed = component(at, f"map_grid_{layer}")["points"][head]
    return np.frombuffer(b64decode(packed), dtype=np.uint8).reshape(-1, 2).astype(float)


@pytest.fixture(scope="module")
def placed(door_trace):
    heads = np.ndindex(6, 12)
    return {head: place(*arrays(door_trace, *head), **SETTINGS) for head in heads}


def test_each_map_is_its_head_s(placed):
    at = open_maps()
    for layer, head in ((0, 0), (3, 1), (5, 11)):
        expected = placed[layer, head].points
        size = np.ptp(expected, axis=0).max()
        middle = (expected.min(axis=0) + expected.max(axis=0)) / 2
        drawn = (points(at, layer, head) / 255 - 0.5) * size + middle
        np.testing.assert_allclose(drawn, expected, atol=0.51 * size / 255)


def test_the_number_is_the_correlation_and_maps_like_chance_are_faint(door_trace):
    """With vectors as they are: none of the maps of lifted vectors is like chance here."""
    placed = {
        head: place(*arrays(door_trace, *head), **SETTINGS | {"space": "raw"}) for head in np.ndindex(6, 12)
    }
    at = open_maps(space="raw")
    drawn = cells(at)
    assert len(drawn) == 72
    faint = 0
    for head, cell in drawn.items():
        correlation, chance = placed[head].in_map.order_correlation, placed[head].chance
        assert float(cell["number"].replace("−", "-")) == pytest.approx(correlation, abs=0.0051)
        assert cell["faint"] == (min(chance.correlation_p, chance.nearest_p) > 0.05), head
        assert listed(reading_of(placed[head].in_map, chance)) in cell["text"]
        faint += cell["faint"]
    assert 0 < faint < 72


def test_lines_go_from_the_picked_query_to_its_strongest_keys(door_trace):
    drawn = cells(open_maps(query=8))
    for head in ((0, 0), (3, 1), (5, 11)):
        row = door_trace.weights(*head)[8]
        strongest = np.argsort(-row, kind="stable")[:5]
        assert drawn[head]["lines"] == [[int(key), round(float(row[key]), 2)] for key in strongest]


def test_the_best_map_comes_first(placed):
    at = open_maps(order="reliability")
    order = [tuple(cell["place"]) for cell in component(at, "map_grid")["cells"]]
    correlations = [placed[index].in_map.order_correlation for index in order]
    assert len(set(order)) == 72
    assert correlations == sorted(correlations)
    assert not component(at, "map_grid")["axes"]
    assert component(open_maps(), "map_grid")["axes"]
    best = min(placed, key=lambda head: placed[head].in_map.order_correlation)
    in_headline = facts(headline(at))
    assert in_headline.heads == (best,)
    written = [f"{made.in_map.order_correlation:.2f}".replace("-", "−") for made in placed.values()]
    lowest = f"{placed[best].in_map.order_correlation:.2f}".replace("-", "−")
    n_alike = written.count(lowest) - 1  # to a reader they are equal
    assert in_headline.numbers[: 1 + bool(n_alike)] == (*([str(n_alike)] if n_alike else []), lowest)


def test_maps_lie_like_the_held_one(placed):
    """Mirrored and rotated maps are aligned: the sum of squared distances to the fixed head's map falls."""

    def apart(at, head):
        first, second = points(at, *head), points(at, 3, 1)
        return np.square(first - first.mean(axis=0) - second + second.mean(axis=0)).sum()

    free, turned = open_maps(), open_maps(aligned_with="3.1")
    others = [head for head in placed if head != (3, 1)]
    np.testing.assert_array_equal(points(free, 3, 1), points(turned, 3, 1))
    nearer = np.mean([apart(turned, other) <= apart(free, other) + 1 for other in others])
    assert nearer > 0.8  # each fills its square, so that a turn changes the scale a little
    assert sum(apart(turned, other) for other in others) < sum(apart(free, other) for other in others)
    turned.toggle(key="maps_aligned").set_value(False).run()
    assert "aligned_with" not in shown(turned)


def test_everybody_shares_the_maps_and_other_settings_are_other_maps():
    open_maps()
    again = open_page(PAGE, method="pca")
    assert not any(element.label == "Cancel" for element in again.button)  # there at once
    other = open_maps(space="raw")
    assert points(again, 2, 2).tolist() != points(other, 2, 2).tolist()


@pytest.fixture
def only_nine(tmp_path, monkeypatch):
    """Once called, it lets nine maps be made and holds back the others."""
    held = Held("attnviz.maps.projection:place", tmp_path, n_free=9)
    yield lambda: monkeypatch.setattr("ui.rooms.all_heads.maps.place", held)
    held.let_go()


@pytest.mark.nightly
def test_cancel_keeps_what_is_made(only_nine):
    only_nine()
    at = open_page(PAGE, method="tsne", text="a new text whose maps are not there yet", seed=3)

    def n_map(at):
        return sum(cell["nPoint"] > 0 for cell in cells(at).values())

    ask_until(at, lambda at: n_map(at) == 9)
    at.button(key="maps_act").click().run()
    assert_no_exception(at)
    assert at.button(key="maps_act").label == "Go on"
    assert any(facts(line.value).has("9", "72") for line in at.caption)
    assert n_map(at) == 9


@pytest.mark.nightly
def test_the_maps_before_stay_in_grey_until_the_next_are_there(only_nine):
    at = open_maps(seed=5)
    before = {cell: points(at, *cell).tolist() for cell in cells(at)}
    only_nine()
    at.selectbox(key="field_method").set_value("tsne").run()
    ask_until(at, lambda at: sum(cell["isOld"] for cell in cells(at).values()) == 63)
    at.button(key="maps_act").click().run()
    assert at.button(key="maps_act").label == "Go on"
    drawn = cells(at)
    old = [head for head, cell in drawn.items() if cell["isOld"]]
    assert len(old) == 63
    for head in old:
        assert points(at, *head).tolist() == before[head]
        assert drawn[head]["number"] == ""
        assert facts(drawn[head]["text"]) == Facts((), (head,))  # no number: its map is not there
    for head in drawn.keys() - set(old):
        assert points(at, *head).tolist() != before[head]
    type_text(at, "Two doors.")  # has other tokens; the maps of the first text stay with theirs
    at.button(key="maps_act").click().run()
    drawn = cells(at)
    for head in drawn:
        n_token = 11 if drawn[head]["isOld"] else 5
        assert (drawn[head]["nQuery"], drawn[head]["nPoint"]) == (n_token, 2 * n_token)
    assert_no_exception(at)


def test_what_cannot_be_drawn_any_more_is_explained(monkeypatch):
    """While maps are drawn again and again, a model may disappear from the disk."""

    message = "The model is *not* on this disk."

    def gone(source, kind, query):
        raise ModelNotAvailableError(message)

    monkeypatch.setattr(head_cache, "rows", gone)
    at = open_page(PAGE, method="pca")
    assert_no_exception(at)
    assert errors(at) == [message]


def test_a_text_of_one_token_has_nothing_to_judge():
    drawn = cells(open_maps(text="hello"))
    assert all("too few keys" in cell["text"] for cell in drawn.values())


@pytest.mark.nightly
@pytest.mark.parametrize("family", ["bart", "gpt2", "t5", "llama"])
def test_every_kind_of_attention(family, checkpoint, monkeypatch):
    folder = checkpoint(family)
    monkeypatch.setenv("ATTNVIZ_MODELS", str(folder))
    second = "the door" if family in ("bart", "t5") else ""
    for kind in ("encoder", "decoder", "cross") if second else ("decoder",):
        at = open_maps(model=folder.name, kind=kind, text="a cat sat on the mat", second=second)
        assert all(component(at, "map_grid_0")["points"])
