"""Export: what the popover of every page gives, and the bundles that pages make."""

import csv
import io
import json
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest

import attnviz
from attnviz.bundle.reading import read_bundle
from attnviz.figures.heads import draw_heads
from attnviz.records import AttentionPattern
from tests.app.opened import banner
from tests.app.screen import (
    DOOR,
    assert_no_exception,
    component,
    errors,
    facts,
    figure,
    is_stage,
    numbers,
    open_bundle,
    open_page,
    saved_matrix,
    type_text,
    until_drawn,
)
from tests.tiers import first_gates
from ui.part import part_named
from ui.rooms import PAGES
from ui.rooms.how_it_works.scaling import MEASURES
from ui.shell.export import captions as picture_captions
from ui.shell.export import take

PLACE = {"text": DOOR, "layer": 3, "head": 1, "query": 7, "key": 5}


@pytest.mark.parametrize(
    "page", first_gates(*(page for page in PAGES if page.name != "Glossary")), ids=lambda page: page.name
)
def test_every_saved_picture_says_what_its_colours_lengths_or_places_mean(page, monkeypatch):
    captions = {}

    def noting(view, picture, about="", note=""):
        told = picture_captions.caption(view, picture, about, note)
        captions[picture.key] = told[-1].split(" · ")[3:]  # after name, model and head
        return told

    monkeypatch.setattr(take, "caption", noting)
    at = open_page(page.file, **PLACE, **({"step": 0} if page.name == "Step by step" else {}))
    assert_no_exception(at)
    # The bundled model has nothing to show on the first two, and tokens are not saved as a picture.
    assert captions or page.name in ("Joint map", "Generate", "Find tokens")
    assert [key for key, told in captions.items() if len(told) < 2] == []


@pytest.mark.parametrize(("n_layer", "axes"), [(6, "xy"), (12, "xy"), (13, "yx"), (30, "yx")])
def test_the_picture_of_a_claim_says_which_axis_is_which(n_layer, axes):
    """Against the figure itself, in which a point of layer 1 has its number, 0.75, on one axis, and layers count from the top or left."""
    numbers = np.full((n_layer, 1), 0.25)
    numbers[1] = 0.75
    drawn = draw_heads(numbers, what="share").data[0]
    of_number = "xy"[[drawn.x[1], drawn.y[1]].index(0.75)]
    assert of_number == axes[0]
    view = SimpleNamespace(kind="encoder", trace=SimpleNamespace(n_layers=lambda _: n_layer))
    assert part_named("Myths").pictures["claim_full"].meaning(view) == "a point for each head; " + (
        "across: its number; down: its layer" if of_number == "x" else "across: its layer; up: its number"
    )


def rows_of(csv_bytes):
    return list(csv.reader(io.StringIO(csv_bytes.decode("utf-8-sig"), newline="")))


class TestPopover:
    @pytest.mark.parametrize(
        ("page", "figures"),
        [
            ("attention.py", {"matrix", "token_flow", "map"}),
            ("pages/verification.py", {"errors"}),
            ("pages/token_flow.py", {"token_flow"}),
            ("pages/find_a_head.py", {"head_grid"}),
            ("pages/all_heads.py", {"head_grid", "head_map"}),
            (
                "pages/scaling.py",
                {"spread_random", "spread_model", "sharp_entropy", "sharp_largest", "sharp_jacobian"},
            ),
        ],
    )
    def test_names_the_pictures_of_its_page(self, page, figures):
        at = open_page(page)
        assert_no_exception(at)
        data = component(at, "save_picture")
        assert {picture["key"] for picture in data["figures"]} == figures
        drawn = {element.key for element in at.get("bidi_component")}
        of_viewer = {"matrix", "token_flow"} if is_stage(at) else set()  # drawn in the browser
        assert figures - of_viewer <= drawn
        assert data["link"] is True

    def test_what_is_drawn_is_what_the_caption_says(self):
        """Lines hold the measure, whatever the cells show."""
        for params, cells, lines in (
            ({"show": "scores"}, "attention score", "attention weight"),
            ({"show": "norms"}, "norm-based weight", "norm-based weight"),
            ({}, "attention weight", "attention weight"),
        ):
            at = open_page(**PLACE, **params)
            caption_of = {
                picture["key"]: picture["caption"][1] for picture in component(at, "save_picture")["figures"]
            }
            assert f"cell colour: {cells}" in caption_of["matrix"]
            assert f"line thickness: {lines}" in caption_of["token_flow"]

    @pytest.mark.parametrize(
        ("page", "key"),
        [
            ("attention.py", "map"),
            ("pages/door_experiment.py", "door_map"),
            ("pages/query_key_map.py", "space_map"),
        ],
    )
    def test_a_saved_map_says_how_it_was_made_and_how_reliable_it_is(self, page, key):
        at = open_page(page, **PLACE, method="tsne", perplexity=5, seed=3)
        [caption] = [
            picture["caption"][1]
            for picture in component(at, "save_picture")["figures"]
            if picture["key"] == key
        ]
        assert " · t-SNE, " in caption
        assert facts(caption).has("5", "1000", "3")  # perplexity, iterations, seed
        reliability = facts(caption).numbers[facts(caption).numbers.index("1000") + 2 :]
        assert reliability[0].endswith("%") and any(number.startswith("−0.") for number in reliability)
        assert caption.endswith(f" · attnviz {attnviz.__version__}")

    def test_saved_maps_of_all_heads_say_what_they_were_made_with(self):
        at = open_page("pages/all_maps.py", **PLACE, method="tsne", perplexity=1000, seed=3)
        [picture] = component(at, "save_picture")["figures"]
        assert " · t-SNE, " in picture["caption"][1]
        assert facts(picture["caption"][1]).has("7", "1000", "3")  # perplexity, iterations, seed

    def test_numbers_are_those_of_the_matrix(self, taken, embedded):
        text = "Unbelievable doorknobs opened."
        open_page(special="hidden", unit="words", text=text, show="norms", layer=2, head=1)
        label, _, name = taken["take_csv"]
        assert (label, name) == ("Matrix as CSV", "attnviz-layer2-head1.csv")
        saved = saved_matrix(taken)
        trace = embedded.trace(text)
        norms = trace.pattern(2, 1, measure="norms").weights
        words = [np.flatnonzero(trace.tokens.word == word) for word in range(4)]
        assert [len(pieces) > 1 for pieces in words] == [False, True, False, False]
        expected = [[norms[np.ix_(queries, keys)].sum(axis=1).mean() for keys in words] for queries in words]
        np.testing.assert_allclose(saved.cells, expected, rtol=1e-5)
        labels = ["unbelievable", "doorknobs", "opened", "."]
        assert [name.split(" ", 1)[1] for name in saved.keys] == labels
        assert saved.queries == saved.keys

    def test_scores_where_scores_are_shown(self, taken, door_trace):
        open_page(**PLACE, show="scores")
        np.testing.assert_array_equal(saved_matrix(taken).cells, door_trace.scores(3, 1))

    def test_numbers_of_a_pair_are_ranked(self, taken, door_trace):
        open_page("pages/find_a_head.py", query=7, key=5)
        rows = rows_of(taken["take_csv"][1]())
        assert rows[0] == ["layer", "head", "number"]
        assert rows[1][:2] == ["3", "1"]  # the door sentence's head
        assert len(rows) == 73
        for layer, head, number in rows[1:]:
            weight = door_trace.weights(int(layer), int(head))[7, 5]
            assert float(number) == pytest.approx(weight, rel=1e-5)  # of its row alone

    def test_numbers_of_a_page_of_curves_are_those_drawn(self, taken):
        at = open_page("pages/scaling.py", layer=2, head=7, query=3, scale=4)
        label, make, _ = taken["take_csv"]
        header, *rows = rows_of(make())
        assert label == "Curves as CSV"
        assert header[:4] == ["scale", *MEASURES.values()]
        read = np.array(rows, dtype=np.float64)
        for column, name in enumerate(("entropy", "largest", "jacobian"), 1):
            random, _, row, _ = figure(at, f"sharp_{name}")["data"]
            np.testing.assert_array_equal(read[:, 0], numbers(row["x"]))
            np.testing.assert_array_equal(read[:, column], numbers(row["y"]))
            np.testing.assert_array_equal(read[:, column + 3], numbers(random["y"]))

    def test_numbers_of_the_cost_are_counted_by_hand(self, taken):
        open_page("pages/cost.py", reach=1, quantity="cells")
        label, make, _ = taken["take_csv"]
        header, *rows = rows_of(make())
        assert label == "Costs as CSV"
        assert header[:3] == ["tokens", "cells, whole matrix", "cells, sliding window"]
        assert [int(row[0]) for row in rows] == [11, 16, 512, 1000, 10_000, 100_000, 1_000_000]
        # 12 heads; a window of 3 keys, less one at each end; 32 numbers a query and 32 a value; 4 bytes a cell
        cost = dict(zip(header, map(int, rows[1]), strict=True))
        assert cost["cells, whole matrix"] == 12 * 16 * 16
        assert cost["cells, sliding window"] == 12 * (3 * 16 - 2)
        assert cost["bytes, whole matrix"] == 4 * 12 * 16 * 16
        assert cost["multiplications, whole matrix"] == 12 * 16 * 16 * (32 + 32)

    def test_numbers_of_the_claims_are_those_of_all_heads(self, taken):
        at = open_page("pages/claims.py")
        _, make, _ = taken["take_csv"]
        header, *rows = rows_of(make())
        assert [row[:2] for row in rows] == [
            [str(layer), str(head)] for layer in range(6) for head in range(12)
        ]
        for name, chart in (("weight asymmetry", "symmetric"), ("on itself", "diagonal")):
            read = np.array([row[header.index(name)] for row in rows], dtype=np.float32)
            np.testing.assert_array_equal(read, numbers(figure(at, f"claim_{chart}")["data"][0]["x"]))

    def test_bundle_is_the_view(self, taken, embedded):
        open_page(text=DOOR, layer=1, head=7, query=2, key=4, show="scores", seed=9, masked="5")
        data = taken["take_bundle"][1]()
        assert data == taken["take_bundle"][1]()
        bundle = read_bundle(data)
        assert (bundle.layer, bundle.head, bundle.query, bundle.key, bundle.show) == (1, 7, 2, 4, "scores")
        expected = embedded.trace(DOOR.replace("door", "[MASK]"))
        np.testing.assert_allclose(bundle.pattern.scores, expected.scores(1, 7), atol=1e-5)
        assert bundle.settings["seed"] == "9"
        assert bundle.trace.tokens.masked == {5: "door"}
        assert bundle.weights_sha256 == embedded.weights_sha256

    def test_nothing_is_made_before_it_is_asked_for(self, monkeypatch):
        made = []
        monkeypatch.setattr(take, "write_bundle", made.append)
        monkeypatch.setattr(AttentionPattern, "csv", made.append)
        assert_no_exception(open_page())
        assert made == []

    @pytest.mark.nightly
    def test_a_text_too_long_for_a_link_has_none(self):
        at = type_text(open_page(), "é " * 12_000)
        at.button(key="cut").click().run()
        assert component(at, "save_picture")["link"] is False


class TestBundlesOfPages:
    """A bundle holds what the page shows that it was made from."""

    @pytest.fixture
    def bundled(self, taken):
        def of(page, **params):
            assert_no_exception(until_drawn(open_page(page, **PLACE, **params)))
            data = taken["take_bundle"][1]()
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                return read_bundle(data), {name: archive.read(name) for name in archive.namelist()}

        return of

    def test_says_its_page_and_can_be_opened_on_another(self, bundled, taken):
        bundle, files = bundled("pages/all_heads.py")
        data = taken["take_bundle"][1]()
        assert bundle.page == "Pictures and numbers · All heads"
        assert "All heads" in files["view.html"].decode()
        at = open_bundle(open_page(), data)
        assert errors(at) == []
        assert banner(at)
        assert read_bundle(taken["take_bundle"][1]()).page == "Explore"

    def test_token_flow(self, bundled):
        bundle, files = bundled("pages/token_flow.py", heads="3.5")
        assert (bundle.page, bundle.settings["heads"]) == ("Several heads · Explore", "3.5")
        assert rows_of(files["page.csv"])[0] == ["layer", "head", "query", "key", "number"]
        svg = json.loads(files["figures.json"])["Token flow"]
        assert svg.count("<path ") == len(rows_of(files["page.csv"])) - 1
        assert svg in files["view.html"].decode()

    def test_query_key_map(self, bundled):
        bundle, files = bundled("pages/query_key_map.py", method="pca")
        assert (bundle.page, bundle.settings["method"]) == ("Other maps · Explore", "pca")
        header, *rows = rows_of(files["points.csv"])
        assert header == ["role", "token", "x", "y", "method", "vectors", "settings"]
        assert len(rows) == 22
        assert rows[7][:2] == ["query", "7 it"]
        assert {row[4] for row in rows} == {"pca"}
        [drawn] = [chart for chart in json.loads(files["figures.json"]).values() if len(chart["data"]) > 2]
        points = drawn["data"][-2]
        assert points["name"] == "queries"
        assert numbers(points["x"])[7] == pytest.approx(float(rows[7][2]))

    def test_compare(self, bundled):
        bundle, files = bundled("pages/compare.py", other_head=5)
        assert bundle.page == "Side by side · Compare"
        assert set(json.loads(files["figures.json"])) == {"Matrix A", "Matrix B", "B minus A"}
        assert len(rows_of(files["page.csv"])) > 1
        assert b'id="more_2"' in files["view.html"]

    @pytest.mark.parametrize(
        ("page", "place", "n_figures"),
        first_gates(
            ("lens", "Lens · Cause", 3),
            ("effects", "Heads off · Cause", 4),
            ("patching", "Patching · Compare", 2),
            ("inputs", "Inputs · Cause", 2),
        ),
    )
    def test_experiments(self, bundled, page, place, n_figures):
        bundle, files = bundled(f"pages/{page}.py")
        assert bundle.page == place
        assert len(json.loads(files["figures.json"])) == n_figures
        assert len(rows_of(files["page.csv"])) > 11
