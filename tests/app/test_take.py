"""Export: what the popover of every page gives, and a bundle opened again."""

import csv
import io
import json
import zipfile
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest

import attnviz
from attnviz.bundle.reading import read_bundle
from attnviz.bundle.writing import write_bundle
from attnviz.model.interventions import ReplacedWeights, ScaledOutput
from tests.app.screen import (
    assert_no_exception,
    chips,
    component,
    errors,
    figure,
    finding,
    matrix,
    notices,
    numbers,
    open_bundle,
    open_page,
    picked,
    shown,
    type_text,
    unescaped,
    until_drawn,
)
from ui.export import captions as picture_captions
from ui.export import take
from ui.page import bundles
from ui.page.navigation import PAGES
from ui.work import cache
from ui.work.remembered import NUMBERS

PLACE = {"text": "I was watching the door when it opened.", "layer": 3, "head": 1, "query": 7, "key": 5}


@pytest.fixture
def taken(monkeypatch):
    """What the two download buttons of a page give, called as a click would."""
    made = {}
    real = take.st.download_button

    def noting(label, data, **rest):
        made[rest["key"]] = (label, data, rest["file_name"])
        return real(label, data, **rest)

    monkeypatch.setattr(take.st, "download_button", noting)
    return made


@pytest.mark.parametrize("page", [one for one in PAGES if one.name != "Glossary"], ids=lambda one: one.name)
def test_every_saved_picture_says_what_its_colours_lengths_or_places_mean(page, monkeypatch):
    meanings = {}

    def noting(view, key, name, about="", note=""):
        meanings[key] = picture_captions.meaning(view, key)
        return picture_captions.caption(view, key, name, about, note)

    monkeypatch.setattr(take, "caption", noting)
    at = open_page(page.file, **PLACE, **({"step": 0} if page.name == "Step by step" else {}))
    assert_no_exception(at)
    assert meanings or page.name in ("Many sentences", "Generation")  # which the bundled model has nothing on
    assert [key for key, said in meanings.items() if not said] == []


def captions(at):
    return [unescaped(one.value) for one in at.caption]


def rows_of(csv_bytes):
    return list(csv.reader(io.StringIO(csv_bytes.decode("utf-8-sig"), newline="")))


class TestPopover:
    @pytest.mark.parametrize(
        ("page", "figures"),
        [
            ("attention.py", {"matrix", "ranking", "map"}),
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
        assert {one["key"] for one in data["figures"]} == figures
        drawn = {one.key for one in at.get("bidi_component")}
        assert figures <= drawn
        assert data["link"] is True

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
        [said] = [one["caption"][1] for one in component(at, "save_picture")["figures"] if one["key"] == key]
        assert " · line thickness: attention weight · t-SNE, " in said
        assert ", perplexity 5, 1000 iterations, seed 3. Reliability: for " in said
        assert "correlation of distance and score −0." in said
        assert said.endswith(f" · attnviz {attnviz.__version__}")

    def test_saved_maps_of_all_heads_say_what_they_were_made_with(self):
        at = open_page("pages/all_maps.py", **PLACE, method="tsne", perplexity=1000, seed=3)
        [one] = component(at, "save_picture")["figures"]
        assert (
            " · t-SNE, perplexity 7, iterations 1000, random seed 3. Each number is a map's"
            in one["caption"][1]
        )

    def test_numbers_are_those_of_the_matrix(self, taken):
        at = open_page(
            special="hidden", unit="words", text="Unbelievable doors opened.", show="norms", layer=2
        )
        label, make, name = taken["take_csv"]
        rows = rows_of(make())
        assert (label, name) == ("Matrix as CSV", "attnviz-layer2-head1.csv")
        read = np.array([[float(cell) for cell in row[1:]] for row in rows[1:]], dtype=np.float32)
        np.testing.assert_array_equal(read, matrix(at))
        assert [cell.split(" ", 1)[1] for cell in rows[0][1:]] == ["unbelievable", "doors", "opened", "."]

    def test_numbers_of_a_pair_are_ranked(self, taken, door_trace):
        open_page("pages/find_a_head.py", query=7, key=5)
        rows = rows_of(taken["take_csv"][1]())
        assert rows[0] == ["layer", "head", "number"]
        assert rows[1][:2] == ["3", "1"]  # the door sentence's head
        assert len(rows) == 73
        for layer, head, number in rows[1:]:
            assert np.float32(number) == door_trace.weights(int(layer), int(head))[7, 5]

    def test_numbers_of_a_page_of_curves_are_those_drawn(self, taken):
        at = open_page("pages/scaling.py", layer=2, head=7, query=3, scale=4)
        label, make, _ = taken["take_csv"]
        header, *rows = rows_of(make())
        assert label == "Curves as CSV"
        assert header[:4] == ["scale", "entropy, share of ln n", "largest weight", "norm of the Jacobian"]
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
        found = dict(zip(header, map(int, rows[1]), strict=True))
        assert found["cells, whole matrix"] == 12 * 16 * 16
        assert found["cells, sliding window"] == 12 * (3 * 16 - 2)
        assert found["bytes, whole matrix"] == 4 * 12 * 16 * 16
        assert found["multiplications, whole matrix"] == 12 * 16 * 16 * (32 + 32)

    def test_numbers_of_the_claims_are_those_of_all_heads(self, taken):
        at = open_page("pages/claims.py")
        label, make, _ = taken["take_csv"]
        header, *rows = rows_of(make())
        assert label == "All heads as CSV"
        assert [row[:2] for row in rows] == [
            [str(layer), str(head)] for layer in range(6) for head in range(12)
        ]
        for name, chart in (("weight asymmetry", "symmetric"), ("on itself", "diagonal")):
            read = np.array([row[header.index(name)] for row in rows], dtype=np.float32)
            np.testing.assert_array_equal(read, numbers(figure(at, f"claim_{chart}")["data"][0]["x"]))

    def test_bundle_is_the_view(self, taken, embedded):
        at = open_page(layer=1, head=7, query=2, key=4, show="scores", seed=9, masked="5")
        data = taken["take_bundle"][1]()
        assert data == taken["take_bundle"][1]()
        bundle = read_bundle(data)
        assert (bundle.layer, bundle.head, bundle.query, bundle.key, bundle.show) == (1, 7, 2, 4, "scores")
        np.testing.assert_array_equal(bundle.pattern.scores, matrix(at))
        assert bundle.settings["seed"] == "9"
        assert bundle.trace.tokens.masked == {5: "door"}
        assert bundle.weights_sha256 == embedded.weights_sha256

    def test_nothing_is_made_before_it_is_asked_for(self, monkeypatch):
        made = []
        monkeypatch.setattr(take, "write_bundle", made.append)
        monkeypatch.setattr(take, "matrix_csv", made.append)
        assert_no_exception(open_page())
        assert made == []

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
        assert bundle.page == "All heads"
        assert "All heads" in files["view.html"].decode()
        at = open_bundle(open_page(), data)
        assert errors(at) == []
        assert any("From a bundle, as recorded" in one for one in captions(at))
        assert read_bundle(taken["take_bundle"][1]()).page == "Attention"

    def test_token_flow(self, bundled):
        bundle, files = bundled("pages/token_flow.py", heads="3.5")
        assert (bundle.page, bundle.settings["heads"]) == ("Token flow", "3.5")
        assert rows_of(files["page.csv"])[0] == ["layer", "head", "query", "key", "number"]
        svg = json.loads(files["figures.json"])["Token flow"]
        assert svg.count("<path ") == len(rows_of(files["page.csv"])) - 1
        assert svg in files["view.html"].decode()

    def test_query_key_map(self, bundled):
        bundle, files = bundled("pages/query_key_map.py", method="pca")
        assert (bundle.page, bundle.settings["method"]) == ("Query-key map", "pca")
        header, *rows = rows_of(files["points.csv"])
        assert header == ["role", "token", "x", "y", "method", "vectors", "settings"]
        assert len(rows) == 22
        assert rows[7][:2] == ["query", "7 it"]
        assert {row[4] for row in rows} == {"pca"}
        points = json.loads(files["figures.json"])["Map of queries and keys"]["data"][-2]
        assert points["name"] == "queries"
        assert numbers(points["x"])[7] == pytest.approx(float(rows[7][2]))

    def test_compare(self, bundled):
        bundle, files = bundled("pages/compare.py", other_head=5)
        assert bundle.page == "Compare"
        assert set(json.loads(files["figures.json"])) == {"Matrix A", "Matrix B", "B minus A"}
        assert len(rows_of(files["page.csv"])) > 1
        assert b'id="more_2"' in files["view.html"]

    @pytest.mark.parametrize(
        ("page", "figures"),
        [
            (
                "Effects",
                {
                    "Heads off one by one",
                    "Weights and effects",
                    "All heads off one by one",
                    "Zeros and means",
                },
            ),
            ("Patching", {"Shares of the difference"}),
            ("Lens", {"Answers after each layer"}),
            ("Inputs", {"Attributions", "Deletion curves"}),
        ],
    )
    def test_experiments(self, bundled, page, figures):
        bundle, files = bundled(f"pages/{page.lower()}.py")
        assert bundle.page == page
        assert set(json.loads(files["figures.json"])) == figures
        assert len(rows_of(files["page.csv"])) > 11


class TestOpening:
    @pytest.fixture
    def opened(self, door_bundle):
        at = open_bundle(open_page(text="Something else."), door_bundle)
        assert_no_exception(at)
        return at

    def test_shows_the_bundle(self, opened, door_trace):
        assert finding(opened).startswith("Layer 2, head 7: “opened” gives")
        assert chips(opened) == list(door_trace.tokens.labels)
        assert picked(opened) == [8]
        np.testing.assert_array_equal(matrix(opened), door_trace.weights(2, 7))
        assert shown(opened)["seed"] == "11"
        assert any(
            "From a bundle, as recorded: all-MiniLM-L6-v2, revision 0.1.0" in one for one in captions(opened)
        )
        assert opened.text_area(key="field_text").value == "I was watching the door when it opened."

    def test_numbers_are_the_files_and_not_the_models(self, embedded, door_bundle):
        """A bundle of other numbers than the model's: queries twice as long."""
        bundle = read_bundle(door_bundle)
        layers = tuple(replace(one, query=2 * one.query) for one in bundle.trace.layers["encoder"])
        other = replace(bundle, trace=replace(bundle.trace, layers={"encoder": layers}))
        at = open_bundle(open_page(), write_bundle(other))
        np.testing.assert_array_equal(matrix(at), other.trace.weights(2, 7))
        assert np.abs(matrix(at) - bundle.trace.weights(2, 7)).max() > 0.1
        at.number_input(key="field_head").set_value(3).run()
        np.testing.assert_array_equal(matrix(at), other.trace.weights(2, 3))

    def test_verdict_is_the_recorded_one(self, door_bundle):
        bundle = read_bundle(door_bundle)
        assert "12 of 12 checks passed" in captions(open_bundle(open_page(), door_bundle))
        tables = {"encoder": np.full((6, 12), 0.125, dtype=np.float32)}
        checks = tuple(
            replace(one, differences=tables) if one.name == "attention weights" else one
            for one in bundle.report.checks
        )
        failed = replace(bundle, report=replace(bundle.report, checks=checks))
        at = open_bundle(open_page(), write_bundle(failed))
        assert verdict(at) == RECORDED
        assert ":red[11 of 12 checks passed]" in captions(at)
        at.switch_page("pages/verification.py").run()
        assert f"**{RECORDED}: :red[11 of 12 checks passed]**" in [one.value for one in at.markdown]

    def test_says_that_the_run_was_changed(self, embedded, door_bundle):
        off = ScaledOutput(factor=0.0, layer=2, head=7)
        uniform = ReplacedWeights(weights=np.full((11, 11), 1 / 11, dtype=np.float32), layer=2, head=7)
        trace = embedded.trace(PLACE["text"], interventions=[uniform, off])
        at = open_bundle(open_page(), write_bundle(replace(read_bundle(door_bundle), trace=trace)))
        assert_no_exception(at)
        np.testing.assert_array_equal(matrix(at), uniform.weights)
        how = "layer 2, head 7: weights replaced; layer 2, head 7: output × 0"
        assert any(
            f"The run was changed: {how}. The attention weights that were not replaced follow" in one
            for one in captions(at)
        )
        checked = f"12 of 12 checks of the unchanged run passed; the run was changed: {how}"
        assert checked in captions(at)
        assert any("it cannot be compared with the model's own" in one for one in captions(at))
        assert not [one for one in at.button if one.label == "Run again and compare"]
        at.switch_page("pages/verification.py").run()
        assert_no_exception(at)
        assert f"**{RECORDED}: {checked}**" in [unescaped(one.value) for one in at.markdown]

    def test_verification_page_says_what_is_not_in_it(self, opened):
        at = opened.switch_page("pages/verification.py").run()
        assert_no_exception(at)
        assert any("The bundle does not hold the model" in one for one in captions(at))
        [table] = [one.value for one in at.dataframe]
        assert list(table.columns) == ["key", "score s", "exp(s − m)", "ours"]
        assert not [one for one in at.button if one.key == "verify_presets"]

    def test_holds_on_every_page_and_for_another_head(self, opened, door_trace):
        opened.number_input(key="field_layer").set_value(4).run()
        np.testing.assert_array_equal(matrix(opened), door_trace.weights(4, 7))
        opened.switch_page("pages/verification.py").run()
        opened.switch_page("attention.py").run()
        assert any("From a bundle, as recorded" in one for one in captions(opened))

    @pytest.mark.parametrize("way", ["sentence", "example", "button"])
    def test_is_left(self, way, opened):
        if way == "sentence":
            type_text(opened, "A new sentence.")
            assert chips(opened) == ["[CLS]", "a", "new", "sentence", ".", "[SEP]"]
        elif way == "example":
            choice = opened.selectbox(key="preset_choice")
            choice.set_value(next(one for one in choice.options if "bank" in one)).run()
            assert "bank" in chips(opened)
        else:
            opened.button(key="leave_bundle").click().run()
        assert_no_exception(opened)
        assert not any("From a bundle, as recorded" in one for one in captions(opened))
        assert "bundle" not in shown(opened)
        said = ["The bundle is closed: the model on this machine computes what is shown."]
        assert notices(opened) == ([] if way == "button" else said)

    def test_a_larger_file_than_the_operator_allows_is_refused(self, door_bundle, monkeypatch):
        monkeypatch.setattr(bundles, "UPLOAD_MB", 1)
        at = open_bundle(open_page(), door_bundle)
        assert [unescaped(one.value) for one in at.error] == [
            f"This file is {len(door_bundle) / 1e6:.0f} MB; a bundle is at most 1 MB here. Select another file."
        ]
        assert not any("From a bundle" in one for one in captions(at))

    def test_another_session_does_not_see_it(self, opened, door_bundle):
        digest = sha256(door_bundle).hexdigest()
        assert shown(opened)["bundle"] == digest
        other = open_page(bundle=digest, text="Another text.")
        assert_no_exception(other)
        assert chips(other) == ["[CLS]", "another", "text", ".", "[SEP]"]
        assert notices(other) == [
            "The link leads to a bundle that is not open here; the model computes its sentence instead."
        ]
        assert "bundle" not in shown(other)

    def test_the_same_bundle_in_two_sessions(self, opened, door_bundle, door_trace):
        other = open_bundle(open_page(), door_bundle)
        np.testing.assert_array_equal(matrix(other), door_trace.weights(2, 7))
        assert_no_exception(other)

    def test_its_model_need_not_be_here(self, tiny_model):
        model = tiny_model("t5")
        trace = model.trace("the door", "it opened")
        axis = attnviz.records.Axis.of(trace.target_tokens)
        data = write_bundle(
            attnviz.Bundle(
                trace=trace,
                report=attnviz.verify(model, trace),
                kind="cross",
                layer=1,
                head=1,
                queries=axis,
                keys=attnviz.records.Axis.of(trace.tokens),
                query=1,
                key=0,
            )
        )
        at = open_bundle(open_page(), data)
        assert_no_exception(at)
        assert errors(at) == []
        np.testing.assert_array_equal(matrix(at), trace.weights(1, 1, "cross"))
        assert any("From a bundle, as recorded: t5, revision local folder" in one for one in captions(at))
        assert component(at, "token_strip")["mask"] is None

    def test_the_same_file_comes_out_again(self, taken, opened, door_bundle):
        bundle = read_bundle(door_bundle)
        opened.run()
        again = read_bundle(taken["take_bundle"][1]())
        assert again.report.max_abs_error == bundle.report.max_abs_error
        assert again.weights_sha256 == bundle.weights_sha256
        np.testing.assert_array_equal(again.trace.last_hidden_state, bundle.trace.last_hidden_state)


RECORDED = "Recorded when the bundle was made"


def verdict(at):
    """What the link to the Verification page says, beside the finding or at the sidebar's end."""
    labels = [one.proto.label for one in at.get("page_link") if one.proto.page.endswith("verification")]
    [found] = [label for label in labels if label != "Verification"]
    return found


def all_words(at):
    """Everything on a page that is text, Markdown as it is written."""
    words = [one.value for name in ("markdown", "caption", "error", "info") for one in at.get(name)]
    words += [one.proto.label for name in ("page_link", "button") for one in at.get(name)]
    words += [one.proto.icon for one in at.get("page_link")]
    words += [str(one.value.to_dict()) for one in at.table]
    return "\n".join(words)


def doctored(door_bundle):
    """A file with random queries and values, and weights that follow from them, which says that all is well."""
    bundle = read_bundle(door_bundle)
    random = np.random.default_rng(0)
    layers = tuple(
        replace(
            one,
            query=random.normal(size=one.query.shape).astype(np.float32),
            value=random.normal(size=one.value.shape).astype(np.float32),
        )
        for one in bundle.trace.layers["encoder"]
    )
    return write_bundle(replace(bundle, trace=replace(bundle.trace, layers={"encoder": layers})))


class TestComparing:
    """What a bundle says of itself is recorded; what is said here was compared here."""

    @pytest.mark.parametrize("page", ["attention.py", "pages/verification.py", "pages/find_a_head.py"])
    def test_nothing_is_promised_before(self, page, door_bundle):
        at = open_bundle(open_page(), doctored(door_bundle))
        if page != "attention.py":
            at.switch_page(page).run()
        assert_no_exception(at)
        words = all_words(at)
        assert RECORDED in words
        assert "12 of 12 checks passed" in words
        assert "The attention weights follow from the queries, keys, mask and scale in this file." in words
        for promise in ("checked", "matches", "match the model", "the model's own,", "green", "check_circle"):
            assert promise not in words.lower()

    @pytest.mark.parametrize("key", ["compare_bundle", "compare_bundle_verdict"])
    def test_says_what_a_computed_trace_says_once_it_passed(self, key, door_bundle):
        at = open_bundle(open_page(), door_bundle)
        at.button(key=key).click().run()
        assert_no_exception(at)
        assert verdict(at).startswith(":green[Checked:] 12 comparisons, weights within ")
        assert not [one for one in at.button if one.key.startswith("compare_bundle")]
        at.switch_page("pages/verification.py").run()
        assert_no_exception(at)
        assert "Recorded" not in all_words(at)
        at.switch_page("pages/find_a_head.py").run()
        assert verdict(at).startswith(":green[Checked:]")

    def test_of_other_numbers_goes_red(self, door_bundle):
        at = open_bundle(open_page(), doctored(door_bundle))
        at.button(key="compare_bundle").click().run()
        assert_no_exception(at)
        assert verdict(at).startswith(":red[Does not match the model:] queries differ by ")
        at.switch_page("pages/verification.py").run()
        assert ":red[:material/cancel: failed]" in all_words(at)

    def test_of_another_text_goes_red(self, door_bundle):
        bundle = read_bundle(door_bundle)
        tokens = replace(bundle.trace.tokens, text="Short.")
        axis = attnviz.records.Axis.of(tokens)
        other = replace(bundle, trace=replace(bundle.trace, tokens=tokens), queries=axis, keys=axis)
        at = open_bundle(open_page(), write_bundle(other))
        at.button(key="compare_bundle").click().run()
        assert_no_exception(at)
        [said] = errors(at)
        assert "tokens, 11 in the bundle and 4 for its text here" in said
        assert "Checked" not in all_words(at)

    def test_another_bundle_has_to_be_compared_itself(self, door_bundle):
        at = open_bundle(open_page(), door_bundle)
        at.button(key="compare_bundle").click().run()
        open_bundle(at, doctored(door_bundle))
        assert verdict(at) == RECORDED
        assert at.button(key="compare_bundle").label == "Run again and compare"

    def test_is_made_once(self, door_bundle, monkeypatch):
        made = []
        compare = cache.compare_bundle
        monkeypatch.setattr(cache, "compare_bundle", lambda *of: made.append(of) or compare(*of))
        NUMBERS.clear()
        for _ in range(2):
            at = open_bundle(open_page(), door_bundle)
            assert verdict(at) == RECORDED
            at.button(key="compare_bundle").click().run()
            at.number_input(key="field_head").set_value(3).run()
            assert verdict(at).startswith(":green[Checked:]")
        assert len(made) == 1

    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"name": "bert-base-uncased"}, "These weights are not on this machine"),
            ({"name": "../../etc"}, "These weights are not on this machine"),
            ({"weights_sha256": {}}, "The bundle does not say which weights it was made with"),
        ],
    )
    def test_is_not_offered_without_the_weights(self, changes, reason, door_bundle):
        bundle = read_bundle(door_bundle)
        if "name" in changes:
            provenance = replace(bundle.trace.provenance, model=changes["name"])
            changes = {"trace": replace(bundle.trace, provenance=provenance)}
        at = open_bundle(open_page(), write_bundle(replace(bundle, **changes)))
        assert_no_exception(at)
        assert not [one for one in at.button if one.key.startswith("compare_bundle")]
        assert [one.startswith(reason) for one in captions(at)].count(
            True
        ) == 2  # the banner, and at the verdict
        assert verdict(at) == RECORDED

    def test_with_other_weights_says_so_and_stays_recorded(self, door_bundle):
        other = replace(read_bundle(door_bundle), weights_sha256={"model.safetensors": "0" * 64})
        at = open_bundle(open_page(), write_bundle(other))
        at.button(key="compare_bundle").click().run()
        assert_no_exception(at)
        assert verdict(at) == RECORDED
        [said] = [one for one in captions(at) if "SHA-256" in one]
        assert said.startswith("The model here has other weights (SHA-256 differs)")
        assert "Checked" not in all_words(at)

    def test_what_the_file_says_is_shown_literally(self, door_bundle):
        bundle = read_bundle(door_bundle)
        checks = tuple(
            replace(one, reason=":green[Checked] [link](http://x)") for one in bundle.report.checks
        )
        at = open_bundle(
            open_page(), write_bundle(replace(bundle, report=replace(bundle.report, checks=checks)))
        )
        at.switch_page("pages/verification.py").run()
        assert ":green[" not in all_words(at)
        assert "](http" not in all_words(at)


class TestRefusals:
    @pytest.mark.parametrize("data", [b"no zip", b""])
    def test_a_file_that_is_none_is_explained_and_the_view_stays(self, data):
        at = open_page()
        before = matrix(at)
        open_bundle(at, data)
        assert_no_exception(at)
        [message] = errors(at)
        assert message.startswith("This file is not a bundle of attnviz, or it is damaged")
        np.testing.assert_array_equal(matrix(at), before)
        at.number_input(key="field_head").set_value(3).run()
        np.testing.assert_array_equal(matrix(at).shape, before.shape)

    def test_a_good_file_after_a_bad_one(self, door_bundle):
        at = open_bundle(open_page(), b"no zip")
        open_bundle(at, door_bundle)
        assert errors(at) == []
        assert finding(at).startswith("Layer 2, head 7")

    def test_settings_are_taken_like_a_link(self, door_bundle):
        bundle = read_bundle(door_bundle)
        settings = {"seed": "-5", "metric": "<b>no</b>", "bundle": "x", "model": "y", "unit": "words"}
        at = open_bundle(open_page(), write_bundle(replace(bundle, settings=settings)))
        assert_no_exception(at)
        said = notices(at)
        assert any("metric “<b>no</b>”" in one for one in said)
        assert any("seed -5" in one for one in said)
        assert shown(at)["unit"] == "words"
