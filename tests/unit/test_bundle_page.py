"""The page of HTML in a bundle: what it says, shows and never does."""

import html.parser
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from plotly import graph_objects as go

from attnviz.bundle import comparison
from attnviz.bundle import writing as bundles
from attnviz.bundle.bundle import Bundle
from attnviz.bundle.page import OTHER_ENTRIES, entries_chosen
from attnviz.bundle.writing import PAGE
from attnviz.errors import BundleError
from attnviz.records import Axis, Check
from attnviz.viewer.below import worst_place
from tests import odd_bundles
from tests.bundles import EMBEDDED_SHA256, failed, files_of
from tests.property.test_bundle_facts import tokens_of

pytestmark = pytest.mark.slow


class Words(html.parser.HTMLParser):
    """The words of a page, and the addresses in it."""

    def __init__(self, page):
        super().__init__()
        self.words, self.addresses, self.scripts, self.rows = "", [], [], []
        self._in = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self._in.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href")]
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        while self._in and self._in.pop() != tag:
            pass

    def handle_data(self, data):
        if self._in and self._in[-1] == "script":
            self.scripts.append(data)
        elif "style" not in self._in:
            self.words += data
            if self._in and self._in[-1] in ("td", "th"):
                self.rows[-1][-1] += data


class TestPage:
    def test_says_where_the_numbers_come_from(self, packed):
        page = Words(files_of(packed)[PAGE].decode())
        for words in (
            "Layer 3, head 1: “it” to “door” 0.475",
            "all-MiniLM-L6-v2, revision 0.1.0",
            EMBEDDED_SHA256,
        ):
            assert words in page.words

    def test_says_that_rows_are_divided_where_they_are_and_not_where_keys_are_only_hidden(self, door):
        shown = door.pattern.queries.without_special()
        for renormalise in (False, True):
            bundle = replace(door, queries=shown, keys=shown, renormalised=renormalise)
            page = Words(bundles.bundle_files(bundle)[PAGE].decode())
            assert ("rows divided by their sum over the shown keys" in page.words) == renormalise

    def test_says_what_was_recorded_and_that_it_cannot_check_it(self, door):
        tables = {"encoder": np.zeros((6, 12), dtype=np.float32)}
        tables["encoder"][4, 9] = 8.9e-7
        weights = replace(
            door.report.check("attention weights"),
            differences=tables,
            tolerances={"encoder": np.full((6, 12), 2.5e-5, dtype=np.float32)},
        )
        checks = tuple(
            weights if check.name == "attention weights" else check for check in door.report.checks
        )
        report = replace(door.report, checks=checks, not_compared={"score bias": "It <has> none."})
        page = Words(bundles.bundle_files(replace(door, report=report))[PAGE].decode())
        assert (
            "attnviz 0.1.0 compared the trace in this bundle with the model's attention: 13 of 13 checks passed. This "
            "page cannot check that again." in page.words
        )
        rows = {row[0]: row[1:] for row in page.rows}
        assert len(rows) == 1 + 13 + 1  # the names of the columns, the checks, and what was left out
        assert rows["attention weights"] == [
            "passed",
            "8.9\u00a0×\u00a010⁻⁷",
            "2.5\u00a0×\u00a010⁻⁵",
            "L4 H9",
            "weight",
        ]
        assert rows["tokens"] == ["passed", "0", "0", "", "tokens"]
        assert rows["score bias"] == ["not compared", "", "", "", "It <has> none."]

    def test_of_other_numbers_than_the_models_does_not_say_that_they_match(self, door):
        """Queries and values are changed, and the verdict is left as it was."""
        layers = tuple(
            replace(layer, query=2 * layer.query, value=-layer.value)
            for layer in door.trace.layers["encoder"]
        )
        doctored = replace(door, trace=replace(door.trace, layers={"encoder": layers}))
        words = Words(bundles.bundle_files(doctored)[PAGE].decode()).words
        for promise in ("checked", "matches", "the model's own"):
            assert promise not in words.lower()

    def test_names_no_address(self, packed):
        page = files_of(packed)[PAGE].decode()
        assert Words(page).addresses == []
        assert "default-src 'none'" in page

    def test_has_plotly_once_and_only_for_figures_of_it(self, door):
        for figures, n in (({}, 0), ({"a": "<svg/>"}, 0), ({"a": go.Figure(), "b": go.Figure()}, 1)):
            page = bundles.bundle_files(door, bundles.PageContent(figures=figures))[PAGE].decode()
            assert len(re.findall(r"\* plotly\.js v", page)) == n

    def test_shows_tokens_and_texts_literally(self, door):
        bad = "</script><script>alert(1)</script><img src=x onerror=alert(2)>$x$"
        tokens = replace(door.trace.tokens, text=bad, labels=(bad,) * 11)
        trace = replace(door.trace, tokens=tokens)
        changed = replace(door, trace=trace, queries=Axis.of(tokens), keys=Axis.of(tokens))
        page = Words(bundles.bundle_files(changed)[PAGE].decode())
        assert page.addresses == []
        held, _ = page.scripts  # what the page holds, and the viewer
        assert "script" in held and "<" not in held
        assert json.loads(held)["document"]["queries"]["labels"] == [bad] * 11
        assert page.words.count(bad) >= 3  # title, query and text

    def test_of_a_failed_verification_says_so(self, door):
        words = Words(bundles.bundle_files(replace(door, report=failed(door.report)))[PAGE].decode())
        assert "12 of 13 checks passed" in words.words
        [row] = [row for row in words.rows if "FAILED" in row]
        assert row == [
            "attention weights",
            "FAILED",
            "not a number",
            "2.5\u00a0×\u00a010⁻⁵",
            "L2 H5",
            "weight",
        ]


def bundle_of(trace, kind="encoder", **changes):
    """Layer 1, head 2 of a trace of random numbers, query 3 and key 1."""
    return Bundle(
        **{
            "trace": trace,
            "report": odd_bundles.report(trace),
            "kind": kind,
            "layer": 1,
            "head": 2,
            "queries": Axis.of(trace.query_tokens(kind)),
            "keys": Axis.of(trace.key_tokens(kind)),
            "query": 3,
            "key": 1,
        }
        | changes
    )


def test_rows_are_the_queries_and_columns_the_keys_and_the_csv_has_what_is_shown():
    trace = odd_bundles.trace(2, 3, 6)
    axis = Axis.of(trace.tokens)
    queries, keys = axis.where(np.arange(6) < 4), axis.where(np.arange(6) > 0)
    for show, cells in (("weights", trace.weights(1, 2)), ("scores", trace.scores(1, 2))):
        bundle = bundle_of(trace, queries=queries, keys=keys, show=show)
        np.testing.assert_array_equal(bundle.pattern.weights, trace.weights(1, 2)[:4, 1:])
        lines = bundles.bundle_files(bundle)["matrix.csv"].decode("utf-8-sig").splitlines()
        assert lines[0] == "query \\ key," + ",".join(f"{at} {trace.tokens.labels[at]}" for at in range(1, 6))
        written = np.array([[float(cell) for cell in line.split(",")[1:]] for line in lines[1:]])
        np.testing.assert_allclose(written, cells[:4, 1:], rtol=1e-6)


def test_a_bundle_has_as_many_bytes_as_can_be_read(monkeypatch):
    bundle = bundle_of(odd_bundles.trace(2, 3, 6))
    packed = bundles.write_bundle(bundle)
    monkeypatch.setattr(bundles, "LARGEST_BUNDLE", len(packed))
    assert bundles.write_bundle(bundle) == packed
    monkeypatch.setattr(bundles, "LARGEST_BUNDLE", len(packed) - 1)
    with pytest.raises(BundleError, match="can be opened again"):
        bundles.write_bundle(bundle)


ALWAYS = [
    ("Model", "odd, revision none, float32"),
    ("Libraries", "attnviz 0"),
    ("Cells", "weights"),
    (
        "Recorded",
        "attnviz 0 compared the trace in this bundle with the model's attention: 15 of 15 checks passed. This page cannot check "
        "that again.",
    ),
]


class TestFacts:
    def test_of_a_plain_view(self):
        trace = odd_bundles.trace(2, 3, 6)
        assert len(odd_bundles.report(trace).checks) == 15
        assert bundles._facts(bundle_of(trace)) == [("Text", "[CLS] t1 t2 t3 t4 [SEP]"), *ALWAYS]

    def test_of_a_view_with_everything(self):
        pair = {"text_pair": "t4", "segment": np.array([0, 0, 0, 0, 1, 1]), "masked": {2: "cat", 4: "it"}}
        settings = {"seed": "3", "text": "a", "second": "b", "model": "m", "iterations": "250"}
        bundle = bundle_of(
            odd_bundles.trace(2, 3, 6, of_tokens=pair, softcap=30.0),
            settings=settings,
            page="Inputs",
            weights_sha256={"one": "0" * 64, "other": "1" * 64},
            show="norms",
            renormalised=True,
        )
        assert bundles._facts(bundle) == [
            ("Text", "[CLS] t1 t2 t3 t4 [SEP]"),
            ("Second text", "t4"),
            ("Masked", "2 cat, 4 it"),
            ("Page", "Inputs"),
            ("Scores", "30 tanh(s / 30) of a scaled score s"),
            ("Settings", "iterations 250, seed 3"),
            ALWAYS[0],
            ("Weights", "one, SHA-256 " + "0" * 64),
            ("Weights", "other, SHA-256 " + "1" * 64),
            ALWAYS[1],
            ("Cells", "norms, rows divided by their sum over the shown keys"),
            ALWAYS[3],
        ]

    def test_of_an_encoder_decoder_model_the_second_text_is_the_decoder_s(self):
        target = odd_bundles.tokens(5, text="it ran")
        trace = odd_bundles.trace(2, 3, 6, kinds=("encoder", "decoder", "cross"), target=target)
        for kind in trace.kinds:
            assert bundles._facts(bundle_of(trace, kind))[1] == ("Second text", "it ran")


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({}, "Layer 1, head 2: “t3” to “t1” {:.3g}"),
        ({"show": "rollout"}, "Layer 1, all heads: “t3” to “t1” {:.3g}"),
        ({"queries": 2}, "Layer 1, head 2"),
        ({"keys": 3}, "Layer 1, head 2"),
        ({"queries": 4, "keys": 2}, "Layer 1, head 2: “t3” to “t1” {:.3g}"),
    ],
)
def test_the_title_names_the_selected_cell_where_it_is_shown(changes, title, monkeypatch):
    """Of a part of the rows or columns, from the first or the last."""
    trace = odd_bundles.trace(2, 3, 6)
    axis = Axis.of(trace.tokens)
    shown = {
        name: axis.where(np.arange(6) < n if name == "queries" else np.arange(6) >= n - 1)
        for name, n in changes.items()
        if name != "show"
    }
    bundle = bundle_of(trace, **changes | shown)
    asked = {}
    monkeypatch.setattr(bundles, "draw_page", lambda of, **given: asked.update(given, of=of) or "")
    content = bundles.PageContent(figures={"Flow": "<svg/>"})
    bundles._page(bundle, bundle.pattern, content)
    weights = trace.rollout(1) if "show" in changes else trace.weights(1, 2)
    assert asked["title"] == title.format(float(weights[3, 1]))
    assert asked["more"] == {"Flow": "<svg/>"}
    assert asked["of"] is bundle and asked["facts"] == bundles._facts(bundle)


def held_in(page):
    return json.loads(next(text for text in Words(page).scripts if text.startswith('{"document"')))


def test_the_page_selects_what_the_bundle_does():
    trace = odd_bundles.trace(2, 3, 6)
    axis = Axis.of(trace.tokens).without_special()
    bundle = bundle_of(trace, queries=axis, keys=axis, renormalised=True, show="scores", colour="logarithmic")
    held = held_in(bundles.bundle_files(bundle)[PAGE].decode())
    wanted = {"layer": 1, "head": 2, "query": 3, "key": 1, "measure": "scores", "colour": "logarithmic"}
    wanted |= {"unit": "tokens", "special": "renormalised", "withoutFirst": False, "sentences": "all"}
    assert held["selection"] == {"fill": "matrix", "clip": True, "pool": "max", "seen": ""} | wanted
    assert held["theme"] == "light"


@pytest.mark.parametrize(
    ("shapes", "worst", "place"),
    [
        ({"encoder": (1, 1)}, (0, 0), ""),
        ({"encoder": (3, 1)}, (2, 0), "L2"),
        ({"encoder": (1, 3)}, (0, 2), "L0 H2"),
        ({"encoder": (2, 3)}, (1, 2), "L1 H2"),
        ({"encoder": (1, 1), "decoder": (1, 1)}, (0, 0), "decoder L0"),
        ({"encoder": (2, 3), "decoder": (4, 5)}, (3, 1), "decoder L3 H1"),
    ],
)
def test_the_worst_place_of_a_check(shapes, worst, place):
    """Of the last kind; a check of a single number has no place."""
    differences = {kind: np.zeros(shape, dtype=np.float32) for kind, shape in shapes.items()}
    differences[[*shapes][-1]][worst] = 1.0
    tolerances = {kind: np.full(shape, 2.0, dtype=np.float32) for kind, shape in shapes.items()}
    check = Check(name="tokens", differences=differences, tolerances=tolerances, unit="tokens", reason="")
    assert worst_place(check) == place


@pytest.mark.parametrize(
    ("make", "chosen"),
    [
        (lambda axis: axis, ("tokens", "shown", False, "all")),
        (lambda axis: axis.without_special(), ("tokens", "hidden", False, "all")),
        (lambda axis: axis.without_first(), ("tokens", "shown", True, "all")),
        (lambda axis: axis.of_segment(1), ("tokens", "shown", False, "B → B")),
        (lambda axis: axis.without_special().of_segment(0), ("tokens", "hidden", False, "A → A")),
        (lambda axis: Axis.of(axis.tokens, "words").without_special(), ("words", "hidden", False, "all")),
        (lambda axis: axis.where(np.arange(6) != 3), None),
    ],
)
def test_rows_and_columns_are_found_again_among_the_options_or_the_page_says_that_it_shows_others(
    make, chosen
):
    pair = {
        "text_pair": "t4",
        "segment": np.array([0, 0, 0, 0, 1, 1]),
        "word": np.array([-1, 0, 0, 1, 2, -1]),
    }
    trace = odd_bundles.trace(2, 3, 6, of_tokens=pair)
    shown = make(Axis.of(trace.tokens))
    bundle = bundle_of(trace, queries=shown, keys=shown)
    found = entries_chosen(bundle)
    names = ("unit", "special", "withoutFirst", "sentences")
    assert found == (None if chosen is None else dict(zip(names, chosen, strict=True)))
    words = Words(bundles._page(bundle, bundle.pattern, bundles.PageContent())).words
    assert (OTHER_ENTRIES[1] in words) == (chosen is None)


def test_a_token_that_is_unknown_in_the_file_alone_is_wrong():
    assert comparison._wrong(tokens_of({"unknown": (1,)}), tokens_of({})) == 1


def test_what_is_masked_is_a_fact_of_a_text_alone_too():
    def names(**of_tokens):
        return [
            name for name, _ in bundles._facts(bundle_of(odd_bundles.trace(2, 3, 6, of_tokens=of_tokens)))
        ]

    assert "Masked" in names(masked={2: "cat"})
    assert "Masked" not in names(text_pair="t4")
