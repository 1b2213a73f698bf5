"""What is in a bundle: its files, their numbers, and what is refused before it is written."""

import csv
import hashlib
import io
import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest

import attnviz
from attnviz.bundle import bounds
from attnviz.bundle import writing as bundles
from attnviz.bundle.reading import read_bundle
from attnviz.bundle.writing import NUMBERS, PROVENANCE, PageContent, write_bundle
from attnviz.errors import BundleError
from attnviz.figures import draw_pattern
from attnviz.records import Axis
from tests.bundles import EMBEDDED_SHA256, bundle_of, files_of, packed_again, with_document

pytestmark = pytest.mark.slow


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

    def test_tokens_as_they_were_written_before_pieces_were_are_read(self, packed):
        def older(document):
            tokens = document["tokens"]
            for name in ("pieces", "unknown", "language"):
                del tokens[name]
            tokens["unknown_id"] = tokens["ids"][3]
            tokens["labels"][2] = "a\x10"
            tokens["word"][4] = tokens["word"][3]
            tokens["labels"][4] = "##ing"

        read = read_bundle(with_document(packed, older)).trace.tokens
        assert read.unknown == (3,)
        assert read.language is None
        assert read.labels[2] == "aU+0010"  # not all of which a picture could hold
        assert read.label(3, 5) == f"{read.labels[3]}ing"

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
        assert document["version"] == 5
        assert document["model"]["name"] == "all-MiniLM-L6-v2"
        assert document["model"]["weights_sha256"] == {"model.safetensors": EMBEDDED_SHA256}
        assert set(document["model"]["versions"]) == {"attnviz", "torch", "transformers"}
        assert document["tokens"]["text"] == "I was watching the door when it opened."
        assert (document["view"]["layer"], document["view"]["head"]) == (3, 1)
        assert document["view"]["settings"]["seed"] == "3"
        assert document["verification"]["passed"] is True
        checks = {check["name"]: check for check in document["verification"]["checks"]}
        assert len(checks) == 13
        for part in ("differences", "tolerances"):
            assert np.shape(checks["attention weights"][part]["encoder"]) == (6, 12)
            assert np.shape(checks["output after W_O"][part]["encoder"]) == (6, 1)
            assert np.shape(checks["last hidden state"][part]["encoder"]) == (1, 1)
        assert checks["attention weights"]["unit"] == "weight"
        assert "Higham 2002" in checks["attention weights"]["reason"]

    def test_the_same_view_is_the_same_file(self, door, packed):
        assert write_bundle(door) == packed
        assert {part.date_time for part in zipfile.ZipFile(io.BytesIO(packed)).infolist()} == {
            (1980, 1, 1, 0, 0, 0)
        }

    def test_unpacked_files_can_be_read_by_everybody_and_written_by_their_owner(self, packed):
        """The upper half of the attributes are those of Unix, which made the file."""
        entries = zipfile.ZipFile(io.BytesIO(packed)).infolist()
        assert {(entry.create_system, oct(entry.external_attr >> 16)) for entry in entries} == {(3, "0o644")}

    def test_sha256_is_that_of_the_files(self, tiny_model):
        model = tiny_model("gpt2")
        [(name, digest)] = model.weights_sha256.items()
        assert digest == hashlib.sha256((model.folder / name).read_bytes()).hexdigest()

    def test_sha256_is_of_every_part_and_of_no_index(self, tmp_path):
        named = ("model-2.safetensors", "model-1.safetensors")
        for name in (*named, "model-3.safetensors", "pytorch_model.bin"):
            (tmp_path / name).write_text(name)
        index = {"weight_map": {"first": named[0], "second": named[1], "third": named[0]}}
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
        paths = attnviz.model.catalogue.weights_files(tmp_path)
        assert [path.name for path in paths] == ["model-1.safetensors", "model-2.safetensors"]
        (tmp_path / "model.safetensors").write_text("whole")
        assert attnviz.model.catalogue.weights_files(tmp_path) == (tmp_path / "model.safetensors",)


class TestCsv:
    def test_is_the_matrix_in_full(self, door):
        rows = list(csv.reader(io.StringIO(door.pattern.csv().decode("utf-8-sig"))))
        assert rows[0][:3] == ["query \\ key", "0 [CLS]", "1 i"]
        assert rows[8][0] == "7 it"
        read = np.array([[float(cell) for cell in row[1:]] for row in rows[1:]], dtype=np.float32)
        assert (read == door.pattern.weights).all()

    def test_of_scores_has_empty_cells_where_a_query_may_not_see(self, tiny_model):
        trace = tiny_model("gpt2").trace("a door")
        pattern = trace.pattern(1, 1)
        rows = list(csv.reader(io.StringIO(pattern.csv(scores=True).decode("utf-8-sig"))))
        for query in range(6):
            assert [cell == "" for cell in rows[query + 1][1:]] == [key > query for key in range(6)]
        assert np.float32(rows[5][2]) == pattern.scores[4, 1]

    @pytest.mark.parametrize(
        "label", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", '"=1', 'a",=1', "a\n=1"]
    )
    def test_no_token_becomes_a_formula(self, label, door):
        tokens = replace(door.trace.tokens, labels=("[CLS]", label, *door.trace.tokens.labels[2:]))
        pattern = replace(door.pattern, queries=Axis.of(tokens), keys=Axis.of(tokens))
        rows = list(csv.reader(io.StringIO(pattern.csv().decode("utf-8-sig"), newline="")))
        assert len(rows) == 12
        assert rows[0][2] == rows[2][0] == f"1 {label}"
        for row in rows[1:]:
            assert len(row) == 12
            for cell in row[1:]:
                float(cell)


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
        monkeypatch.setattr(bundles, "LARGEST_BUNDLE", 100_000)
        with pytest.raises(BundleError, match="makes a bundle of "):
            write_bundle(door)

    def test_refuses_numbers_that_are_not_finite(self, door):
        hidden = door.trace.last_hidden_state.copy()
        hidden[3, 5] = np.nan
        with pytest.raises(BundleError, match="last_hidden_state holds numbers that are not finite"):
            write_bundle(replace(door, trace=replace(door.trace, last_hidden_state=hidden)))

    def test_refuses_tolerances_that_are_not_finite(self, door):
        for name in ("last hidden state", "attention weights"):
            wrong = door.report.check(name)
            tolerances = wrong.tolerances["encoder"].copy()
            tolerances.flat[-1] = np.inf
            wrong = replace(wrong, tolerances={"encoder": tolerances})
            checks = tuple(wrong if check.name == name else check for check in door.report.checks)
            with pytest.raises(BundleError, match=f"tolerance of {name} is not finite"):
                write_bundle(replace(door, report=replace(door.report, checks=checks)))

    def test_largest_trace_that_the_app_shows_fits(self):
        """1,024 tokens of bert-base-uncased: queries, keys, values, hidden state, value products, weights."""
        numbers = 12 * 3 * 1024 * 768 + 1024 * 768 + 12 * 12 * 12 * 1024 + 1024 * 1024
        page_and_csv = 15_000_000
        assert numbers * 4 + page_and_csv < bounds.LARGEST_BUNDLE
