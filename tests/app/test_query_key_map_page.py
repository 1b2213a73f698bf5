"""The page "Query-key map": what it draws is the map that was asked for, and its words say how it was made."""

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import attnviz
from attnviz.maps.projection import METHODS
from attnviz.maps.spaces import SPACES
from tests.app.screen import (
    DOOR,
    Facts,
    ask_until,
    assert_no_exception,
    charts,
    component,
    errors,
    facts,
    figure,
    finding,
    notices,
    numbers,
    open_page,
    shown,
    step_head,
    unescaped,
)
from tests.tiers import first_gates
from ui.rooms.explore.other_maps import EVERY_TOKEN
from ui.words.findings import METHOD_NAMES, SPACE_WORDS, WITHOUT_ROOM, map_settings

PAGE = "pages/query_key_map.py"
HEAD_FIELDS = ("field_layer", "field_head")
PLACE = {"text": DOOR, "layer": 3, "head": 1, "query": 7, "key": 5}
QUICK = [method for method in METHODS if method != "umap"]  # which are made while the page is
LONG = "the river flooded an old market twice; Paris reported 17 bridges, and nobody was surprised. " * 12


def points(at: AppTest) -> np.ndarray:
    """The points [point, axis] of the map, queries first."""
    clouds = [cloud for cloud in figure(at, "space_map")["data"] if "customdata" in cloud]
    axes = [axis for axis in "xyz" if axis in clouds[0]]
    return np.concatenate([np.column_stack([numbers(cloud[axis]) for axis in axes]) for cloud in clouds])


def lines(at: AppTest) -> list[list[list[float]]]:
    """The two ends of each line."""
    traces = [
        trace for trace in figure(at, "space_map")["data"] if trace["mode"] == "lines" and "name" not in trace
    ]
    return [np.column_stack([numbers(trace["x"]), numbers(trace["y"])]).tolist() for trace in traces]


def note(at: AppTest) -> str:
    """What stands under the map."""
    assert_no_exception(at)
    assert errors(at) == []
    captions = [unescaped(element.value) for element in at.caption]
    names = tuple(METHOD_NAMES.values())
    return next(caption for caption in captions if caption.startswith(names) or "too few" in caption)


def wait_for_map(at: AppTest) -> AppTest:
    """Runs the page, as its fragment does in a browser, until the map is there."""

    def is_there(at: AppTest) -> bool:
        assert errors(at) == []
        drawn = charts(at)
        return not drawn or "space_map" in drawn

    return ask_until(at, is_there)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("method", first_gates(*QUICK))
def test_every_method_with_everything_it_is_fed_with(door_trace, method, space):
    at = open_page(PAGE, **PLACE, method=method, space=space, iterations=250)
    expected = attnviz.project(door_trace, 3, 1, method=method, space=space, iterations=250)
    np.testing.assert_array_equal(points(at), expected.points)
    assert (SPACE_WORDS[space] in note(at)) == (method != "attention")


def test_first_visit(door_trace):
    at = open_page(PAGE)
    expected = attnviz.project(door_trace, 3, 1, method="attention")
    np.testing.assert_array_equal(points(at), expected.points)
    assert facts(note(at)).numbers[:2] == ("1000", "0")  # iterations and seed
    assert "½" in note(at)  # of the largest weight, on a circle
    in_finding = facts(finding(at))
    assert (in_finding.heads, in_finding.quoted[:2], in_finding.numbers[0]) == (
        ((3, 1),),
        ("it", "door"),
        "47.5%",
    )
    assert at.selectbox(key="field_space").disabled
    strongest = np.argsort(-door_trace.weights(3, 1)[7])[:5]
    ends = [[expected.points[7].tolist(), expected.points[11 + key].tolist()] for key in strongest]
    assert lines(at) == ends


def test_a_link_restores_everything(door_trace):
    settings = {
        "method": "tsne",
        "space": "balanced",
        "metric": "euclidean",
        "perplexity": 3.5,
        "iterations": 750,
        "seed": 11,
        "dimensions": 3,
        "values": True,
    }
    at = open_page(PAGE, **PLACE, **settings | {"values": 1}, tint="special")
    expected = attnviz.project(door_trace, 3, 1, **settings)
    np.testing.assert_array_equal(points(at), expected.points)
    assert len(expected.points) == 33
    assert note(at).startswith(map_settings(expected))
    assert facts(note(at)).numbers[:3] == ("3.5", "750", "11")
    assert SPACE_WORDS["balanced"] in note(at)
    assert (
        shown(at).items() >= {"method": "tsne", "perplexity": "3.5", "dimensions": "3", "values": "1"}.items()
    )
    assert at.number_input(key="field_perplexity").value == 3.5
    assert at.selectbox(key="field_tint").value == "special"


def test_the_same_settings_give_the_same_picture_and_another_seed_another():
    first, same, other = (points(open_page(PAGE, **PLACE, method="tsne", seed=seed)) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first, same)
    assert not np.allclose(first, other)


@pytest.mark.parametrize(
    ("link", "named"),
    [
        ({"method": "pcaa"}, Facts(("pcaa",))),
        ({"space": "lift"}, Facts(("lift",))),
        ({"dimensions": "4"}, Facts(numbers=("4", "3"))),
        ({"min_dist": "x"}, Facts(("x",))),
        ({"aligned_with": "9.9"}, Facts(heads=((9, 9),))),
        ({"aligned_with": "3"}, Facts(("3",), numbers=("3.5",))),
        ({"tint": "hue"}, Facts(("hue",), numbers=("5",))),  # it can be the position mod 5
    ],
)
def test_a_bad_link_is_explained(link, named):
    at = open_page(PAGE, **PLACE, **link)
    assert len(points(at)) == 22
    [notice] = notices(at)
    assert facts(notice) == named
    note(at)


class TestParameters:
    def test_are_those_of_the_method_in_their_range_for_this_many_points(self):
        at = open_page(PAGE, **PLACE, method="tsne")
        ranges = [
            facts(element.label).numbers for element in at.number_input if element.key not in HEAD_FIELDS
        ]
        assert ranges == [("1", "7"), ("250", "5,000"), ()]  # (22 - 1) / 3 neighbours, iterations, seed
        at.selectbox(key="field_method").set_value("pca").run()
        assert [element.key for element in at.number_input] == ["field_layer", "field_head"]
        assert "field_metric" not in [element.key for element in at.button_group]

    def test_too_large_ones_are_lowered_and_it_is_said(self):
        at = open_page(PAGE, **PLACE, method="tsne", perplexity=30)
        assert facts(note(at)).has("30", "7.0", "22")
        assert at.number_input(key="field_perplexity").value == 7
        assert shown(at)["perplexity"] == "30"  # a longer text has room for it

    def test_every_control_says_what_it_does(self):
        at = open_page(PAGE, **PLACE, method="tsne", aligned_with="2.3")
        kinds = ("selectbox", "number_input", "button", "button_group", "toggle")
        controls = [element for kind in kinds for element in at.main.get(kind)]
        assert len(controls) > 10
        assert {control.proto.label for control in controls if not control.proto.help} <= {"Examples"}


class TestPicking:
    def test_a_key_has_lines_from_its_strongest_queries(self, door_trace):
        at = open_page(PAGE, **PLACE, lines_of="key")
        expected = attnviz.project(door_trace, 3, 1, method="attention").points
        weights = door_trace.weights(3, 1)
        strongest = np.argsort(-weights[:, 5])[:5]
        assert lines(at) == [[expected[16].tolist(), expected[query].tolist()] for query in strongest]
        most = f"{100 * weights[strongest[0], 5]:.1f}%"
        assert facts(finding(at)) == Facts(("door", "opened"), ((3, 1),), (most,))
        column = figure(at, "matrix")["layout"]["shapes"][0]
        assert (column["x0"], column["x1"], column["y0"], column["y1"]) == (4.5, 5.5, -0.5, 10.5)
        assert "½" not in note(at)

    def test_lines_are_of_query_or_key_by_keyboard_too(self):
        at = open_page(PAGE, **PLACE)
        at.button_group(key="field_lines_of").set_value("key").run()
        assert shown(at)["lines_of"] == "key"
        assert facts(finding(at)).quoted == ("door", "opened")

    def test_the_chart_can_be_walked_through(self):
        at = open_page(PAGE, **PLACE)
        assert "arrow keys" in component(at, "space_map")["listeners"]["point_clicks"]["name"]


class TestHeld:
    def test_a_map_lies_as_much_like_the_held_one_as_it_can(self, door_trace):
        at = open_page(PAGE, **PLACE, method="pca", space="centred", aligned_with="2.4")
        own, like = (
            attnviz.project(door_trace, *at, method="pca", space="centred").points for at in ((3, 1), (2, 4))
        )
        own, middle = own - own.mean(axis=0), like - like.mean(axis=0)
        left, _, right = np.linalg.svd(own.T @ middle)  # Schönemann 1966
        np.testing.assert_allclose(points(at), own @ left @ right + like.mean(axis=0), atol=1e-4)
        assert facts(note(at)).heads == ((2, 4),)

    def test_aligning_starts_and_stops_with_a_button(self):
        at = open_page(PAGE, **PLACE, method="pca")
        before = points(at)
        at.button(key="align").click().run()
        assert shown(at)["aligned_with"] == "3.1"
        np.testing.assert_array_equal(points(at), before)  # it is the fixed map itself
        step_head(at)
        held = points(at)
        assert shown(at)["aligned_with"] == "3.1" and facts(note(at)).heads == ((3, 1),)
        at.button(key="stop_aligning").click().run()
        assert "aligned_with" not in shown(at)
        assert not np.allclose(points(at), held)


class TestTexts:
    def test_one_token(self):
        at = open_page(PAGE, text="door", method="tsne")
        assert len(points(at)) == 6
        note(at)

    def test_a_pair_whose_map_is_of_all_tokens(self):
        at = open_page(
            PAGE, text="The door opened.", second="Who was it?", sentences="B → A", special="hidden"
        )
        assert len(points(at)) == 22
        assert EVERY_TOKEN in note(at)

    def test_a_causal_model(self, checkpoint, monkeypatch):
        monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint("gpt2")))
        for query in (0, 3):
            at = open_page(PAGE, model="gpt2", text="the cat sat on a mat", layer=1, head=1, query=query)
            note(at)
            assert len(lines(at)) == min(query + 1, 5)  # it sees no later keys

    def test_cross_attention(self, checkpoint, monkeypatch):
        monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint("bart")))
        at = open_page(
            PAGE, model="bart", text="the cat sat on a mat", second="it opened", kind="cross", lines_of="key"
        )
        note(at)
        queries, keys = (cloud for cloud in figure(at, "space_map")["data"] if "customdata" in cloud)
        assert len(numbers(queries["x"])) != len(numbers(keys["x"]))

    def test_values_have_no_place_in_the_attention_map(self):
        at = open_page(PAGE, **PLACE, values=1)
        assert len(points(at)) == 22
        assert at.toggle(key="field_values").disabled


class TestWorkOfSeconds:
    def test_the_map_of_a_long_text_comes_from_another_process_and_the_one_before_stays(self, embedded):
        at = open_page(PAGE, text=LONG, cut=1, layer=3, head=1, method="pca", space="raw", query=20)
        wait_for_map(at)
        trace = embedded.trace(LONG, cut=True)
        first = attnviz.project(trace, 3, 1, method="pca", space="raw").points
        np.testing.assert_allclose(points(at), first, atol=1e-4)
        assert WITHOUT_ROOM in note(at)
        at.number_input(key="field_head").set_value(2).run()
        second = attnviz.project(trace, 3, 2, method="pca", space="raw").points
        assert any(np.allclose(points(at), placed, atol=1e-4) for placed in (first, second))
        ask_until(at, lambda at: np.allclose(points(at), second, atol=1e-4))
