"""All maps of one head: the table holds their figures, best first; the work can be stopped and continued."""

import csv
import io
from types import SimpleNamespace

import numpy as np
import pytest

import attnviz
from attnviz.maps.ranking import MAPS, MapChoice
from tests.app.screen import ask_until, assert_no_exception, open_page, until_drawn
from tests.calls import Held
from ui.rooms.explore.other_maps import ranked_maps
from ui.runtime import jobs

PAGE = "pages/query_key_map.py"
DOOR = {"text": "I was watching the door when it opened.", "layer": 3, "head": 1, "query": 7, "key": 5}


@pytest.fixture(autouse=True)
def _without_umap(monkeypatch):
    """UMAP alone compiles for up to half a minute."""
    monkeypatch.setattr(ranked_maps, "MAPS", [choice for choice in MAPS if choice.method != "umap"])


def ranked(at):
    until_drawn(at.button(key="compare_maps").click().run())
    [frame] = [element.value for element in at.dataframe]
    return frame


def test_are_ranked_with_their_figures_and_can_be_taken_along(door_trace, monkeypatch):
    made, real = {}, ranked_maps.st.download_button

    def noting(label, data, **rest):
        made[label] = (data, rest["file_name"])
        return real(label, data, **rest)

    monkeypatch.setattr(ranked_maps.st, "download_button", noting)
    at = open_page(PAGE, **DOOR, seed=77, method="tsne", space="centred", metric="cosine")
    assert not at.dataframe
    frame = ranked(at)
    assert len(frame) == len(ranked_maps.MAPS) == 15
    assert (np.diff(frame["Mean"]) >= 0).all()
    assert frame["Lost"].notna().sum() == 1
    is_shown = (frame["Map"] == "t-SNE") & (frame["Fed with"] == "Keys centred; cosine")
    assert at.session_state["ranked_maps"]["selection"]["rows"] == np.flatnonzero(is_shown).tolist()
    row = frame[is_shown].iloc[0]
    map_ = attnviz.project(door_trace, 3, 1, method="tsne", space="centred", metric="cosine", seed=77)
    assert row["Mean"] == pytest.approx(map_.in_map.order_correlation)
    assert row["Worst"] == pytest.approx(map_.in_map.worst_correlation)
    assert row["Nearest"] == pytest.approx(100 * map_.in_map.nearest_agreement)
    assert row["Trust"] == pytest.approx(map_.trustworthiness)

    make, name = made["Ranking as CSV"]
    assert name == "attnviz-layer3-head1-maps.csv"
    rows = list(csv.DictReader(io.StringIO(make().decode("utf-8-sig"), newline="")))
    assert [float(row["mean correlation"]) for row in rows] == frame["Mean"].tolist()


@pytest.mark.parametrize(
    ("chosen", "same"),
    [
        (("tsne", "balanced", "cosine"), ("tsne", "centred", "cosine")),  # factors change no cosine
        (("tsne", "balanced", "euclidean"), ("tsne", "balanced", "euclidean")),
        (("umap", "raw", "cosine"), ("umap", "raw", "cosine")),
        (("mds", "raw", "cosine"), ("mds", "raw", "cosine")),
        (("mds", "centred", "euclidean"), ("pca", "centred", None)),
        (("pca", "balanced", "cosine"), ("pca", "balanced", None)),
        (("attention", "raw", "cosine"), ("attention", None, None)),
    ],
)
def test_which_of_the_maps_is_shown(chosen, same):
    maps = SimpleNamespace(**dict(zip(("method", "space", "metric"), chosen, strict=True)))
    choice = ranked_maps._shown(SimpleNamespace(selection=SimpleNamespace(of=lambda record: maps)))
    plain = MapChoice(method=choice.method)
    method, space, metric = same
    assert choice == MapChoice(method=method, space=space or plain.space, metric=metric or plain.metric)


def test_a_map_that_is_the_same_as_another_is_marked_there():
    at = open_page(PAGE, **DOOR, seed=77, method="mds", space="raw", metric="euclidean")
    frame = ranked(at)
    is_shown = (frame["Map"] == "PCA") & (frame["Fed with"] == "As they are")
    assert at.session_state["ranked_maps"]["selection"]["rows"] == np.flatnonzero(is_shown).tolist()


@pytest.mark.nightly
def test_another_head_is_asked_for_anew():
    at = open_page(PAGE, **DOOR, seed=78)
    ranked(at)
    at.number_input(key="field_head").set_value(2).run()
    assert not at.dataframe
    assert any(element.key == "compare_maps" for element in at.button)


@pytest.mark.nightly
def test_can_be_stopped_and_go_on(tmp_path, monkeypatch):
    held = Held("attnviz.maps.ranking:rate", tmp_path, n_free=3)
    monkeypatch.setattr(ranked_maps, "rate", held)
    at = open_page(PAGE, **DOOR, seed=79)
    at.button(key="compare_maps").click().run()
    ask_until(at, lambda at: bool(at.dataframe) and len(at.dataframe[0].value) == 3)
    assert at.button(key="ranking_act").label == "Cancel"
    at.button(key="ranking_act").click().run()
    assert_no_exception(at)
    assert jobs.state().n_running == 0
    assert len(at.dataframe[0].value) == 3
    held.let_go()
    at.button(key="ranking_act").click().run()
    assert_no_exception(at)
    until_drawn(at)
    assert len(at.dataframe[0].value) == 15
