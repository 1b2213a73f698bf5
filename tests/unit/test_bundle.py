import csv
import hashlib
import html.parser
import io
import json
import os
import pickle
import re
import zipfile
from dataclasses import replace

import numpy as np
import pytest

import attnviz
from attnviz.bundle import bounds
from attnviz.bundle import reading as bundle_reading
from attnviz.bundle import writing as bundles
from attnviz.bundle.reading import read_bundle
from attnviz.bundle.writing import MATRIX, NUMBERS, PAGE, PROVENANCE, PageContent, write_bundle
from attnviz.errors import BundleError
from attnviz.figures import draw_pattern
from attnviz.records import Axis
from attnviz.records.table import matrix_csv
from tests.bundles import bundle_of, files_of, packed_again, with_arrays, with_document

pytestmark = pytest.mark.slow

WEIGHTS_AT = 7  # of the checks of a BERT: after tokens, labels, queries, keys, values, scale and mask
FLOAT32 = 1e-6  # of sums of a few dozen numbers up to 1
OF_NORMS = 5e-5  # of float32 sums of 384 products, of heads that may cancel each other
EMBEDDED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


@pytest.fixture(scope="session")
def door(embedded, door_trace):
    return bundle_of(
        embedded,
        door_trace,
        layer=3,
        head=1,
        query=7,
        key=5,
        settings={"seed": "3", "metric": "cosine"},
    )


@pytest.fixture(scope="session")
def packed(door):
    return write_bundle(door)


def with_npy(packed, name, content):
    """The bundle with other bytes as one of its arrays."""
    files = files_of(packed)
    with zipfile.ZipFile(io.BytesIO(files[NUMBERS])) as numbers:
        parts = {one: numbers.read(one) for one in numbers.namelist()}
    parts[name] = content
    return packed_again(files | {NUMBERS: packed_again(parts, zipfile.ZIP_STORED)})


def npy(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


class TestWhatIsInIt:
    def test_is_four_files(self, packed):
        assert sorted(files_of(packed)) == ["matrix.csv", "numbers.npz", "provenance.json", "view.html"]

    def test_of_a_page_are_its_figures_and_numbers_too(self, door):
        svg = '<svg xmlns="http://www.w3.org/2000/svg"><text>&lt;script&gt;</text></svg>'
        figures = {"Matrix </script> B": draw_pattern(door.pattern), "Token flow": svg}
        content = PageContent(figures=figures, tables={"page.csv": b"a,b", "points.csv": b"x,y"})
        made = write_bundle(replace(door, page="Token flow"), content)
        files = files_of(made)
        assert set(files) == {
            *("matrix.csv", "numbers.npz", "provenance.json", "view.html"),
            *("page.csv", "points.csv", "figures.json"),
        }
        assert (files["page.csv"], files["points.csv"]) == (b"a,b", b"x,y")
        held = json.loads(files["figures.json"])
        assert held["Token flow"] == svg
        assert held["Matrix </script> B"]["data"][0]["type"] == "heatmap"
        page = files["view.html"].decode()
        assert svg in page
        assert '<div id="more_0"></div>' in page
        assert "Matrix </script>" not in page
        read = read_bundle(made)
        assert read.page == "Token flow"
        np.testing.assert_array_equal(read.pattern.weights, door.pattern.weights)

    def test_figures_and_numbers_of_a_page_are_not_believed(self, door):
        """Nonsense in them changes nothing, for they are not read; too much of it is refused."""
        files = files_of(write_bundle(door)) | {"page.csv": b"=1+1", "figures.json": b"{"}
        assert read_bundle(packed_again(files)).query == door.query

    def test_version_2_is_read(self, door, packed):
        def older(document):
            document.update(version=2)
            del document["view"]["page"]

        read = read_bundle(with_document(packed, older))
        assert read.page == ""
        np.testing.assert_array_equal(read.pattern.weights, door.pattern.weights)

    def test_numbers_are_those_of_the_trace(self, packed, door_trace):
        with np.load(io.BytesIO(files_of(packed)[NUMBERS]), allow_pickle=False) as numbers:
            assert numbers["encoder.query"].shape == (6, 12, 11, 32)
            assert (numbers["encoder.query"][4, 2] == door_trace.query(4, 2)).all()
            assert (numbers["encoder.key"][5, 3] == door_trace.key(5, 3)).all()
            assert (numbers["encoder.value"][0, 7] == door_trace.value(0, 7)).all()
            assert (numbers["last_hidden_state"] == door_trace.last_hidden_state).all()
            assert numbers["weights"][7, 5] == pytest.approx(0.475, abs=5e-4)
            # softmax(q k / sqrt(32)) written out: all of the weights follow from what is in the file
            scores = numbers["encoder.query"][3, 1] @ numbers["encoder.key"][3, 1].T / np.sqrt(32)
            exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
            softmax = exponentials / exponentials.sum(axis=1, keepdims=True)
            np.testing.assert_allclose(numbers["weights"], softmax, atol=1e-6)  # float32

    def test_provenance_says_where_it_comes_from(self, packed):
        document = json.loads(files_of(packed)[PROVENANCE])
        assert document["version"] == 3
        assert document["model"]["name"] == "all-MiniLM-L6-v2"
        assert document["model"]["weights_sha256"] == {"model.safetensors": EMBEDDED_SHA256}
        assert set(document["model"]["versions"]) == {"attnviz", "torch", "transformers"}
        assert document["tokens"]["text"] == "I was watching the door when it opened."
        assert (document["view"]["layer"], document["view"]["head"]) == (3, 1)
        assert document["view"]["settings"]["seed"] == "3"
        assert document["verification"]["passed"] is True
        checks = {one["name"]: one for one in document["verification"]["checks"]}
        assert len(checks) == 12
        for part in ("differences", "tolerances"):
            assert np.shape(checks["attention weights"][part]["encoder"]) == (6, 12)
            assert np.shape(checks["output after W_O"][part]["encoder"]) == (6, 1)
            assert np.shape(checks["last hidden state"][part]["encoder"]) == (1, 1)
        assert checks["attention weights"]["unit"] == "weight"
        assert "Higham 2002" in checks["attention weights"]["reason"]

    def test_the_same_view_is_the_same_file(self, door, packed):
        assert write_bundle(door) == packed
        assert {one.date_time for one in zipfile.ZipFile(io.BytesIO(packed)).infolist()} == {
            (1980, 1, 1, 0, 0, 0)
        }

    def test_sha256_is_that_of_the_files(self, tiny_model):
        model = tiny_model("gpt2")
        [(name, digest)] = model.weights_sha256.items()
        assert digest == hashlib.sha256((model.folder / name).read_bytes()).hexdigest()

    def test_sha256_is_of_every_part_and_of_no_index(self, tmp_path):
        for name in (
            "model-2.safetensors",
            "model-1.safetensors",
            "model.safetensors.index.json",
            "pytorch_model.bin",
        ):
            (tmp_path / name).write_text(name)
        found = attnviz.model.catalogue.weights_files(tmp_path)
        assert [path.name for path in found] == ["model-1.safetensors", "model-2.safetensors"]


class TestCsv:
    def test_is_the_matrix_in_full(self, door):
        rows = list(csv.reader(io.StringIO(matrix_csv(door.pattern).decode("utf-8-sig"))))
        assert rows[0][:3] == ["query \\ key", "0 [CLS]", "1 i"]
        assert rows[8][0] == "7 it"
        read = np.array([[float(cell) for cell in row[1:]] for row in rows[1:]], dtype=np.float32)
        assert (read == door.pattern.weights).all()

    def test_of_scores_has_empty_cells_where_a_query_may_not_see(self, tiny_model):
        trace = tiny_model("gpt2").trace("a door")
        pattern = trace.pattern(1, 1)
        rows = list(csv.reader(io.StringIO(matrix_csv(pattern, scores=True).decode("utf-8-sig"))))
        for query in range(6):
            assert [cell == "" for cell in rows[query + 1][1:]] == [key > query for key in range(6)]
        assert np.float32(rows[5][2]) == pattern.scores[4, 1]

    @pytest.mark.parametrize(
        "label", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", '"=1', 'a",=1', "a\n=1"]
    )
    def test_no_token_becomes_a_formula(self, label, door):
        tokens = replace(door.trace.tokens, labels=("[CLS]", label, *door.trace.tokens.labels[2:]))
        pattern = replace(door.pattern, queries=Axis.of(tokens), keys=Axis.of(tokens))
        rows = list(csv.reader(io.StringIO(matrix_csv(pattern).decode("utf-8-sig"), newline="")))
        assert len(rows) == 12
        assert rows[0][2] == rows[2][0] == f"1 {label}"
        for row in rows[1:]:
            assert len(row) == 12
            for cell in row[1:]:
                float(cell)


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
        for words in ("“it” to “door” 0.475", "all-MiniLM-L6-v2, revision 0.1.0", EMBEDDED_SHA256):
            assert words in page.words

    def test_says_what_was_recorded_and_that_it_cannot_check_it(self, door):
        tables = {"encoder": np.zeros((6, 12), dtype=np.float32)}
        tables["encoder"][4, 9] = 8.9e-7
        weights = replace(
            door.report.check("attention weights"),
            differences=tables,
            tolerances={"encoder": np.full((6, 12), 2.5e-5, dtype=np.float32)},
        )
        checks = tuple(weights if one.name == "attention weights" else one for one in door.report.checks)
        report = replace(door.report, checks=checks, not_compared={"score bias": "It <has> none."})
        page = Words(bundles.bundle_files(replace(door, report=report))[PAGE].decode())
        assert (
            "attnviz 0.1.0 compared these numbers with the model's when it computed them: 12 of 12 checks passed. This "
            "page cannot check that again." in page.words
        )
        rows = {row[0]: row[1:] for row in page.rows}
        assert len(rows) == 1 + 12 + 1  # the names of the columns, the checks, and what was left out
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
            replace(one, query=2 * one.query, value=-one.value) for one in door.trace.layers["encoder"]
        )
        doctored = replace(door, trace=replace(door.trace, layers={"encoder": layers}))
        words = Words(bundles.bundle_files(doctored)[PAGE].decode()).words
        for promise in ("checked", "matches", "the model's own"):
            assert promise not in words.lower()

    def test_names_no_address(self, packed):
        page = files_of(packed)[PAGE].decode()
        assert Words(page).addresses == []
        assert "default-src 'none'" in page

    def test_has_plotly_once(self, packed):
        page = files_of(packed)[PAGE].decode()
        assert len(re.findall(r"\* plotly\.js v", page)) == 1

    def test_shows_tokens_and_texts_literally(self, door):
        bad = "</script><script>alert(1)</script><img src=x onerror=alert(2)>$x$"
        tokens = replace(door.trace.tokens, text=bad, labels=(bad,) * 11)
        trace = replace(door.trace, tokens=tokens)
        changed = replace(door, trace=trace, queries=Axis.of(tokens), keys=Axis.of(tokens))
        page = Words(bundles.bundle_files(changed)[PAGE].decode())
        assert page.addresses == []
        assert len(page.scripts) == 2  # plotly.js and the figures
        assert page.words.count(bad) >= 3  # title, query and text

    def test_of_a_failed_verification_says_so(self, door):
        words = Words(bundles.bundle_files(replace(door, report=failed(door.report)))[PAGE].decode())
        assert "11 of 12 checks passed" in words.words
        [row] = [row for row in words.rows if "FAILED" in row]
        assert row == [
            "attention weights",
            "FAILED",
            "not a number",
            "2.5\u00a0×\u00a010⁻⁵",
            "L2 H5",
            "weight",
        ]


TOLERANCE = 2.5e-5  # what rounding explains at scores of 20 or so


def failed(report):
    """The report with a weight of layer 2, head 5 that is not a number."""
    differences = report.weight_error.copy()
    differences[2, 5] = np.nan
    weights = replace(
        report.check("attention weights"),
        differences={"encoder": differences},
        tolerances={"encoder": np.full_like(differences, TOLERANCE)},
    )
    return replace(
        report, checks=tuple(weights if one.name == "attention weights" else one for one in report.checks)
    )


class TestRoundTrip:
    @pytest.mark.parametrize(
        ("family", "kind"),
        [
            ("bert", "encoder"),
            ("albert", "encoder"),
            ("modernbert", "encoder"),  # two masks
            ("llama", "decoder"),  # shared keys and values, a mask
            ("t5", "cross"),  # a bias, and two texts
            ("t5", "decoder"),
            ("bart", "cross"),
        ],
    )
    def test_is_exact(self, family, kind, tiny_model):
        model = tiny_model(family)
        trace = model.trace("the door opened", "it was playing" if family != "llama" else None)
        written = bundle_of(model, trace, kind=kind)
        data = write_bundle(written)
        read = read_bundle(data)
        assert write_bundle(read) == data
        assert (read.pattern.weights == written.pattern.weights).all()
        for one in trace.kinds:
            for layer in range(trace.n_layers(one)):
                for part in ("query", "key", "value"):
                    ours, theirs = (getattr(of.attention(layer, one), part) for of in (read.trace, trace))
                    assert (ours == theirs).all()
                # of all heads at once, arrays of another layout in memory are summed up in another order
                np.testing.assert_allclose(
                    read.trace.layer_weights(layer, one), trace.layer_weights(layer, one), atol=FLOAT32
                )
                outputs = trace.outputs(layer, one)
                np.testing.assert_allclose(
                    read.trace.outputs(layer, one), outputs, atol=FLOAT32 * np.abs(outputs).max()
                )
            assert read.trace.measures(one) == trace.measures(one)
        assert read.report.passed is written.report.passed is True
        assert dict(read.report.not_compared) == dict(written.report.not_compared)
        assert [one.name for one in read.report.checks] == [one.name for one in written.report.checks]
        for ours, theirs in zip(read.report.checks, written.report.checks, strict=True):
            assert (ours.unit, ours.reason, ours.passed) == (theirs.unit, theirs.reason, theirs.passed)
            for part in ("differences", "tolerances"):
                assert _lists(getattr(ours, part)) == _lists(getattr(theirs, part))
        assert read.trace.tokens.labels == trace.tokens.labels
        assert dict(read.trace.provenance.versions) == dict(trace.provenance.versions)

    def test_norm_based_weights_and_rollout_need_no_model(self, door, packed):
        read = read_bundle(packed).trace
        for head in range(12):
            ours = door.trace.pattern(3, head, measure="norms").weights
            assert (read.pattern(3, head, measure="norms").weights == ours).all()
        together = door.trace.pattern(3, None, measure="norms").weights
        np.testing.assert_allclose(read.pattern(3, None, measure="norms").weights, together, rtol=OF_NORMS)
        np.testing.assert_allclose(read.rollout(5), door.trace.rollout(5), atol=FLOAT32)

    def test_keeps_the_arrangement(self, embedded):
        trace = embedded.trace("Unbelievable doors", "playing outdoors", masked=[2])
        words = Axis.of(trace.tokens, "words")
        shown = {"queries": words.of_segment(1), "keys": words.without_special(), "renormalised": True}
        written = bundle_of(embedded, trace, **shown, show="norms", colour="logarithmic", theme="dark")
        read = read_bundle(write_bundle(written))
        assert read.pattern.queries.labels == written.pattern.queries.labels
        assert (read.pattern.weights == written.pattern.weights).all()
        assert read.trace.tokens.masked == trace.tokens.masked
        assert (read.show, read.colour, read.theme) == ("norms", "logarithmic", "dark")

    def test_keeps_what_was_not_compared(self, door):
        report = replace(
            door.report, checks=door.report.checks[:8], not_compared={"norm-based weights": "No W_O."}
        )
        assert dict(read_bundle(write_bundle(replace(door, report=report))).report.not_compared) == {
            "norm-based weights": "No W_O."
        }

    def test_keeps_a_failed_verdict(self, door):
        read = read_bundle(write_bundle(replace(door, report=failed(door.report)))).report
        assert not read.passed
        assert [one.name for one in read.failed] == ["attention weights"]
        assert read.check("attention weights").worst == ("encoder", 2, 5)
        assert np.isnan(read.weight_error[2, 5])

    def test_weights_of_another_machine_are_read(self, door, packed):
        """Scores of some 400, and weights of the same queries and keys that were summed up in float64."""
        layers = [replace(one, query=10 * one.query) for one in door.trace.layers["encoder"]]
        trace = replace(door.trace, layers={"encoder": tuple(layers)})
        scores = layers[3].query[1].astype(np.float64) @ layers[3].key[1].T / np.sqrt(32)
        exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights = (exponentials / exponentials.sum(axis=1, keepdims=True)).astype(np.float32)

        def put(arrays):
            arrays["weights"] = weights

        changed = with_arrays(write_bundle(replace(door, trace=trace)), put)
        np.testing.assert_array_equal(read_bundle(changed).pattern.weights, trace.weights(3, 1))


def _lists(tables):
    return {kind: table.tolist() for kind, table in tables.items()}


class TestWriting:
    def test_refuses_more_tokens_than_can_be_read(self, tiny_model, monkeypatch):
        monkeypatch.setattr(bounds, "MOST_TOKENS", 5)
        model = tiny_model("bert")
        with pytest.raises(BundleError, match="6 tokens long; a bundle holds at most 5"):
            write_bundle(bundle_of(model, model.trace("the door opened .")))

    def test_refuses_more_heads_than_can_be_read(self, tiny_model, monkeypatch):
        monkeypatch.setattr(bounds, "MOST_HEADS", 5)
        model = tiny_model("bert")
        with pytest.raises(BundleError, match="has 6 heads; a bundle holds at most 5"):
            write_bundle(bundle_of(model, model.trace("the door opened")))

    def test_refuses_more_bytes_than_can_be_read(self, door, monkeypatch):
        monkeypatch.setattr(bundles, "LARGEST_BUNDLE", 1_000_000)
        with pytest.raises(BundleError, match="makes a bundle of 2 MB"):
            write_bundle(door)

    def test_refuses_numbers_that_are_not_finite(self, door):
        hidden = door.trace.last_hidden_state.copy()
        hidden[3, 5] = np.nan
        with pytest.raises(BundleError, match="last_hidden_state holds numbers that are not finite"):
            write_bundle(replace(door, trace=replace(door.trace, last_hidden_state=hidden)))

    def test_refuses_tolerances_that_are_not_finite(self, door):
        hidden = replace(
            door.report.check("last hidden state"),
            tolerances={"encoder": np.array([[np.inf]], dtype=np.float32)},
        )
        report = replace(door.report, checks=(*door.report.checks[:-1], hidden))
        with pytest.raises(BundleError, match="tolerance of last hidden state is not finite"):
            write_bundle(replace(door, report=report))

    def test_largest_trace_that_the_app_shows_fits(self):
        """1,024 tokens of bert-base-uncased: queries, keys, values, hidden state, value products, weights."""
        numbers = 12 * 3 * 1024 * 768 + 1024 * 768 + 12 * 12 * 12 * 1024 + 1024 * 1024
        page_and_csv = 15_000_000
        assert numbers * 4 + page_and_csv < bounds.LARGEST_BUNDLE


class Touch:
    """Unpickled, it leaves a folder behind."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


class TestHostileFiles:
    @pytest.fixture(autouse=True)
    def as_users_run_it(self, types_unchecked):
        """Shapes and types are refused by the reader, not by the tests' checks."""

    def refused(self, data, words=""):
        with pytest.raises(BundleError) as caught:
            read_bundle(data)
        message = str(caught.value)
        assert words in message
        assert "\n" not in message
        assert len(message) < 300

    @pytest.mark.parametrize("data", [b"", b"PK", b"<html></html>", b"PK\x05\x06" + bytes(18), bytes(1000)])
    def test_that_are_no_bundle(self, data):
        self.refused(data, "not a bundle")

    def test_too_large(self):
        with pytest.raises(BundleError, match="This file is 3 MB; a bundle is at most 2 MB here"):
            read_bundle(bytes(2_500_001), most_bytes=2_500_000)

    def test_of_another_version(self, packed):
        for version in (1, 5):
            self.refused(
                with_document(packed, lambda one, version=version: one.update(version=version)),
                f"version {version} of the format; this attnviz reads versions 2, 3 and 4",
            )

    @pytest.mark.parametrize(
        "name", ["../evil.py", "/etc/passwd", "evil.py", "numbers.npz/../x", "PROVENANCE.JSON"]
    )
    def test_with_other_names(self, name, packed, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        files = files_of(packed)
        self.refused(packed_again(files | {name: b"x"}), "its files are not those of a bundle")
        del files[MATRIX]
        self.refused(packed_again(files | {name: b"x"}), "its files are not those of a bundle")
        assert list(tmp_path.iterdir()) == []

    def test_with_a_file_twice(self, packed):
        archive = io.BytesIO()
        files = files_of(packed)
        with zipfile.ZipFile(archive, "w") as target:
            for name in (*files, PROVENANCE):
                with pytest.warns(UserWarning) if name in target.namelist() else _nothing():
                    target.writestr(name, files[name])
        self.refused(archive.getvalue(), "a file twice")

    def test_without_one_of_the_files(self, packed):
        files = files_of(packed)
        for name in files:
            self.refused(
                packed_again({one: files[one] for one in files if one != name}),
                "its files are not those of a bundle",
            )

    def test_with_more_entries_than_are_worth_reading(self):
        self.refused(
            packed_again({str(number): b"" for number in range(1000)}), "its files are not those of a bundle"
        )

    def test_that_unpack_to_too_much(self, packed):
        files = files_of(packed)
        self.refused(
            packed_again(files | {PROVENANCE: bytes(bundle_reading._LARGEST_ENTRIES[PROVENANCE] + 1)}),
            "too large",
        )
        self.refused(
            packed_again(files | {PAGE: bytes(bundle_reading._LARGEST_ENTRIES[PAGE] + 1)}), "too large"
        )

    def test_whose_directory_says_less_than_is_packed(self, packed):
        """A bomb that lies: 10 MB behind a size of 10 bytes."""
        data = packed_again(files_of(packed) | {PROVENANCE: bytes(10_000_000)})
        directory = data.rindex(b"PK\x01\x02", 0, data.rindex(PROVENANCE.encode()))
        lied = data[: directory + 24] + (10).to_bytes(4, "little") + data[directory + 28 :]
        self.refused(lied)

    @pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    def test_whose_numbers_are_packed(self, method, packed):
        self.refused(packed_again(files_of(packed), method), "uses an unsupported compression method")

    def test_whose_arrays_are_packed(self, packed):
        """np.savez_compressed: 1,000 times smaller for zeros."""
        self.refused(
            with_arrays(packed, lambda one: None, save=np.savez_compressed),
            "uses an unsupported compression method",
        )

    def test_that_are_encrypted(self, packed):
        data = bytearray(packed)
        for mark, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
            at = -1
            while (at := data.find(mark, at + 1)) >= 0:
                data[at + offset] |= 1
        self.refused(bytes(data))

    def test_with_a_pickle_are_not_run(self, packed, tmp_path):
        touched = tmp_path / "touched"
        hostile = npy(np.array([Touch(touched)], dtype=object))
        self.refused(with_npy(packed, "weights.npy", hostile), "is not an array of float32")
        self.refused(
            with_npy(packed, "weights.npy", pickle.dumps(Touch(touched))), "is not an array of float32"
        )
        self.refused(packed_again(files_of(packed) | {NUMBERS: hostile}), "not a complete zip file")
        assert not touched.exists()
        np.load(io.BytesIO(hostile), allow_pickle=True)  # it would have been
        assert touched.exists()

    @pytest.mark.parametrize(
        "array",
        [
            np.zeros((11, 11)),
            np.zeros((11, 11), dtype=">f4"),
            np.zeros((11, 11), dtype=np.int32),
            np.zeros((11, 11), dtype="U9"),
            np.zeros((11, 11), dtype=[("a", "<f4")]),
            np.asfortranarray(np.ones((11, 11), dtype=np.float32)),
            np.zeros(121, dtype=np.float32),
            np.zeros((0, 11), dtype=np.float32),
        ],
    )
    def test_with_other_types(self, array, packed):
        self.refused(with_npy(packed, "weights.npy", npy(array)))

    @pytest.mark.parametrize(
        "shape", ["(99999999, 99999999)", "(10000000000, 1)", "(-1, 11)", "(11, 12)", "(11, 10)"]
    )
    def test_with_sizes_that_they_do_not_have(self, shape, packed):
        array = npy(np.zeros((11, 11), dtype=np.float32))
        assert array.count(b"(11, 11)") == 1
        changed = array.replace(b"(11, 11)", shape.encode())
        changed = (
            changed.replace(b" " * (len(changed) - len(array)) + b"\n", b"\n")
            if len(changed) > len(array)
            else changed
        )
        self.refused(with_npy(packed, "weights.npy", changed))

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e13])
    def test_with_numbers_that_are_none(self, bad, packed):
        def spoil(arrays):
            arrays["encoder.query"][2, 3, 5, 7] = bad

        self.refused(with_arrays(packed, spoil), "not finite")

    @pytest.mark.parametrize(
        "change",
        [
            lambda one: one.pop("encoder.key"),
            lambda one: one.update({"decoder.key": one["encoder.key"]}),
            lambda one: one.update({"encoder.key": one["encoder.key"][:, :, :7]}),
            lambda one: one.update({"encoder.key": one["encoder.key"][..., :7]}),
            lambda one: one.update({"encoder.key": one["encoder.key"][:, :5]}),
            lambda one: one.update({"encoder.key": one["encoder.key"][:5]}),
            lambda one: one.update({"encoder.value": one["encoder.value"][:5]}),
            lambda one: one.update({"encoder.query": one["encoder.query"][:, :, :7]}),
            lambda one: one.update({"encoder.query": one["encoder.query"][0]}),
            lambda one: one.update({"encoder.query": one["encoder.query"] > 0}),
            lambda one: one.update({"encoder.value_products": one["encoder.value_products"][:, :, :7]}),
            lambda one: one.update({"encoder.bias": np.zeros((1, 1, 7, 7), dtype=np.float32)}),
            lambda one: one.update({"last_hidden_state": one["last_hidden_state"][:7]}),
            lambda one: one.update({"weights": one["weights"].T.copy()}),
            lambda one: one.update({"weights": one["weights"][:7, :7]}),
            lambda one: one.update({"weights": np.ones((11, 11), dtype=np.bool_)}),
        ],
    )
    def test_with_arrays_that_do_not_fit_each_other(self, change, packed):
        self.refused(with_arrays(packed, change))

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            (("tokens", "labels"), ["a"]),
            (("tokens", "labels"), [1] * 11),
            (("tokens", "labels"), ["a" * 1001] * 11),
            (("tokens", "labels"), ["\ud800"] * 11),
            (("tokens", "ids"), []),
            (("tokens", "ids"), [2**64] * 11),
            (("tokens", "ids"), [True] * 11),
            (("tokens", "segment"), [7] * 11),
            (("tokens", "is_special"), [0] * 11),
            (("tokens", "word"), [-2] * 11),
            (("tokens", "text"), "a" * 100_001),
            (("tokens", "text"), None),
            (("tokens", "masked"), {"11": "a"}),
            (("tokens", "masked"), {"a": "a"}),
            (("tokens", "masked"), ["a"]),
            (("target_tokens",), {}),
            (("view", "layer"), 6),
            (("view", "layer"), -1),
            (("view", "layer"), "3"),
            (("view", "layer"), 3.0),
            (("view", "head"), 12),
            (("view", "head"), 2),  # the weights are those of head 1
            (("view", "kind"), "cross"),
            (("view", "kind"), ["encoder"]),
            (("view", "queries"), []),
            (("view", "queries"), [[0, 12]]),
            (("view", "queries"), [[3, 3]]),
            (("view", "queries"), [[4, 5], [0, 1]]),
            (("view", "queries"), [[0, 1, 2]]),
            (("view", "queries"), [["a", 1]]),
            (("view", "query"), 11),
            (("view", "key"), None),
            (("view", "show"), "everything"),
            (("view", "colour"), "red"),
            (("view", "theme"), "</style>"),
            (("view", "renormalised"), 1),
            (("view", "settings"), {"seed": 3}),
            (("view", "settings"), {str(number): "" for number in range(65)}),
            (("model", "name"), "a" * 1001),
            (("model", "versions"), None),
            (("model", "weights_sha256"), {"model.safetensors": "aa"}),
            (("attention",), {}),
            (("attention", "encoder", "scale"), [1.0]),
            (("attention", "encoder", "scale"), [0.0, 0.0, 0.0, 0.0, 0.0, -1.0]),
            (("attention", "encoder", "scale"), [1e300] * 6),
            (("attention", "encoder", "scale"), [True] * 6),
            (("attention", "encoder", "allowed"), [0] * 6),
            (("verification", "passed"), False),
            (("verification", "checks"), []),
            (("verification", "checks"), [{}] * 10_000),
            (("verification", "checks", 0), "tokens"),
            (("verification", "checks", 0, "name"), ":green[Checked]"),
            (("verification", "checks", 0, "name"), "labels"),  # twice
            (("verification", "checks", WEIGHTS_AT, "name"), "score bias"),  # none of the weights
            (("verification", "checks", 0, "unit"), "**matches**"),
            (("verification", "checks", 0, "reason"), "a" * 1001),
            (("verification", "checks", 0, "reason"), None),
            (("verification", "checks", 0, "differences"), {}),
            (("verification", "checks", 0, "differences"), {"cross": [[0.0]]}),
            (("verification", "checks", 0, "differences"), {"encoder": [[0.0]], "cross": [[0.0]]}),
            (("verification", "checks", 0, "differences", "encoder"), []),
            (("verification", "checks", 0, "differences", "encoder"), [[]]),
            (("verification", "checks", 0, "differences", "encoder"), 7),
            (("verification", "checks", 0, "differences", "encoder"), [[0.0], [0.0]]),
            (("verification", "checks", 0, "differences", "encoder"), [[0.0, 0.0]]),
            (("verification", "checks", 0, "differences", "encoder"), [[-1.0]]),
            (("verification", "checks", 0, "differences", "encoder"), [[1e39]]),
            (("verification", "checks", 0, "differences", "encoder"), [["0"]]),
            (("verification", "checks", 0, "differences", "encoder"), [[0.0]] * 6),  # tolerances have one row
            (("verification", "checks", 0, "tolerances", "encoder"), [[None]]),
            (("verification", "checks", 0, "tolerances", "encoder"), [[-1.0]]),
            (("verification", "checks", 0, "tolerances", "encoder"), [[1e39]]),
            (("verification", "checks", WEIGHTS_AT, "differences", "encoder"), [[0.0]]),
            (("verification", "checks", WEIGHTS_AT, "tolerances", "encoder"), [[0.0]]),
            (("verification", "not_compared"), []),
            (("verification", "not_compared"), {"tokens": "They were."}),
            (("verification", "not_compared"), {"<b>anything</b>": ""}),
            (("verification", "not_compared"), {"score bias": "a" * 1001}),
            (("verification",), "passed"),
        ],
    )
    def test_with_a_provenance_that_does_not_fit(self, path, value, packed):
        def change(document):
            for name in path[:-1]:
                document = document[name]

            document[path[-1]] = value

        self.refused(with_document(packed, change))

    def test_with_a_failed_check_whose_tolerance_is_no_number(self, packed):
        def change(document):
            document["verification"]["passed"] = False
            document["verification"]["checks"][0]["tolerances"]["encoder"] = [[None]]

        self.refused(with_document(packed, change), "a tolerance in it is not a number")

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"[]",
            b"null",
            b"\xff",
            b"[" * 100_000,
            b'{"format": "attnviz bundle", "version": 2}',
            b'{"format": "attnviz bundle", "version": ' + b"9" * 5000 + b"}",
            b'{"format": "attnviz bundle", "version": 2, "model": NaN}',
        ],
    )
    def test_with_another_json(self, content, packed):
        self.refused(packed_again(files_of(packed) | {PROVENANCE: content}))

    def test_the_page_and_csv_are_not_believed(self, packed):
        changed = files_of(packed) | {PAGE: b"<script>alert(1)</script>", MATRIX: b"=1+1"}
        assert (
            read_bundle(packed_again(changed)).pattern.weights == read_bundle(packed).pattern.weights
        ).all()


class _nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None
