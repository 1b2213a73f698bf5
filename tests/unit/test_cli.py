import csv
import errno
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import huggingface_hub.constants
import numpy as np
import pytest
from huggingface_hub.utils import disable_progress_bars, enable_progress_bars

import attnviz
import attnviz.model.verification
from attnviz.bundle.writing import FORMAT
from attnviz.cli import _check_own_bundle, _strongest_link, _table, _write_files, main
from attnviz.effects.ablation import ablate, ablate_layers
from attnviz.effects.mean_outputs import mean_outputs
from attnviz.effects.outcome import Similarity, measured
from attnviz.errors import BundleError
from attnviz.maps.collection import bundled
from tests import hand_made
from tests.hub import LoopbackHub, save_tiny_bert

pytestmark = pytest.mark.slow


class PanicException(BaseException):
    """As pyo3's PanicException, which is no Exception."""


TEXT = "I was watching the door when it opened."
BUNDLE = json.dumps({"format": FORMAT, "version": 1}).encode()
"""What tells that a file is of attnviz."""


@pytest.fixture(autouse=True)
def hub_cache(tmp_path, monkeypatch):
    """A cache of this test's own, empty."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_TELEMETRY", True)


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "tiny"
    path.mkdir()
    return save_tiny_bert(path)


def cells(line):
    return re.split(r"  +", line)


def test_verify_prints_the_ladder_and_each_layer(capsys):
    assert main(["verify", TEXT, "--model", "all-MiniLM-L6-v2"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    first, _, *rest = out.splitlines()
    assert first == "all-MiniLM-L6-v2 (0.1.0), float32, 11 tokens"
    assert cells(rest[0]) == ["compared", "largest difference", "tolerance", "in", "passed"]
    checks = [cells(line) for line in rest[1:14]]
    assert [check[0] for check in checks][8:] == [
        *("attention weights", "norm-based weights", "head outputs", "output after W_O", "last hidden state")
    ]
    for _, difference, tolerance, _, passed in checks:
        assert float(difference) <= float(tolerance)
        assert passed == "yes"
    assert cells(rest[15]) == ["attention", "layer", "largest weight difference", "in head"]
    layers = [cells(line) for line in rest[16:22]]
    assert [layer[:2] for layer in layers] == [["encoder", str(layer)] for layer in range(6)]
    assert max(float(layer[2]) for layer in layers) >= float(checks[8][1])
    assert all(0 <= int(layer[3]) < 12 for layer in layers)
    assert rest[22] == ""
    assert re.match(r"weights of the file: (\d+) of \1 used: ", rest[23])
    assert rest[24:] == ["passed"]


def with_weights(report, layer, row):
    """The report with other differences of the weights in one layer."""
    wrong = report.weight_error.copy()
    wrong[layer] = row
    checks = (
        replace(check, differences={"encoder": wrong}) if check.name == "attention weights" else check
        for check in report.checks
    )
    return replace(report, checks=tuple(checks))


def test_the_head_and_difference_of_a_layer_are_the_largest(folder, capsys, monkeypatch):
    def verify(model, trace):
        report = real(model, trace)
        return with_weights(report, 2, (0.25, 0.5))

    real = attnviz.model.verification.verify
    monkeypatch.setattr(attnviz.model.verification, "verify", verify)
    main(["verify", TEXT, "--model", str(folder)])
    assert ["encoder", "2", "5.0e-01", "1"] in [cells(line) for line in capsys.readouterr().out.splitlines()]


def test_a_verification_that_fails_exits_with_1(folder, capsys, monkeypatch):
    real = attnviz.model.verification.verify
    monkeypatch.setattr(
        attnviz.model.verification, "verify", lambda *given: with_weights(real(*given), 1, (0.0, 0.3))
    )
    assert main(["verify", TEXT, "--model", str(folder)]) == 1
    lines = capsys.readouterr().out.splitlines()
    failed = [cells(line)[0] for line in lines if cells(line)[-1] == "NO"]
    assert failed == ["attention weights"]
    assert lines[-1] == "FAILED"


def test_a_second_sentence_is_read_too(folder, capsys):
    assert main(["verify", "the door", "--second", "it opened", "--model", str(folder)]) == 0
    assert "7 tokens" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["verify", " "], "The text is empty."),
        (["verify", "a\udcffb"], "byte 0xFF"),
        (["verify", "door " * 600], "at most 512 can be read"),
        (["verify", "a", "--model", "no such model"], "There is no model called 'no such model'"),
        (["verify", "a", "--model", "bert-base-uncased"], "attnviz download google-bert/bert-base-uncased"),
        (["download", "no such model"], "There is no model called 'no such model'"),
    ],
)
def test_an_error_is_one_line_and_exits_with_2(arguments, words, capsys):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("attnviz: ")
    assert err.count("\n") == 1
    assert words in err


def test_models_are_listed_with_where_they_are(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", f"{folder},{tmp_path / 'gone'},tiny/bert")
    assert main(["models"]) == 0
    lines = {cells(line)[0]: line for line in capsys.readouterr().out.splitlines()}
    assert re.search(r"all-MiniLM-L6-v2 +default +on disk +6 layers", lines["all-MiniLM-L6-v2"])
    assert re.search(r"bert-base-uncased +not on disk, 441 MB to download", lines["bert-base-uncased"])
    assert re.search(r"tiny +on disk", lines["tiny"])
    assert re.search(r"gone +folder without config\.json", lines["gone"])
    assert re.search(r"tiny/bert +not on disk$", lines["tiny/bert"])


def test_download_shows_bytes_and_prints_the_folder(folder, capsys, monkeypatch):
    with LoopbackHub({"tiny/bert": folder}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
        monkeypatch.setenv("TQDM_POSITION", "-1")  # huggingface_hub would show its own bar too
        monkeypatch.setattr("attnviz.model.download.REPORT_INTERVAL", 0.0)
        enable_progress_bars()
        assert main(["download", "tiny/bert"]) == 0
        disable_progress_bars()
        out, err = capsys.readouterr()
        assert "tiny/bert: 100%" in err
        assert "B/s" in err
        assert re.search(r"\d[kM]/[\d.]+[kM] ", err)  # of bytes, which are more than thousands
        assert "Fetching" not in err
        assert "Reconstruct" not in err
    assert main(["download", "tiny/bert"]) == 0  # on this disk, so the Hub is not asked
    assert capsys.readouterr() == (out, "")
    assert attnviz.load_model("tiny/bert").name == "tiny/bert"


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["verify", "--help"]])
def test_help_and_version_exit_with_0(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 0
    assert (
        attnviz.__version__ if arguments == ["--version"] else "usage: attnviz"
    ) in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["corpus"]], ids=str)
def test_no_command_exits_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: attnviz" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        (["export", TEXT], {"--layer": "0", "--head": "0", "--out": "a"}),
        (["effects", TEXT], {"--outcome": "state:1", "--out": "a.csv"}),
        (["corpus", "profile", "a.txt"], {"--out": "a"}),
        (["corpus", "index", "a.txt"], {"--out": "a", "--layer": "0"}),
    ],
    ids=lambda value: " ".join(value),
)
def test_what_a_command_needs_is_named_where_it_is_missing(command, needed, capsys):
    for missing in needed:
        given = [word for name, value in needed.items() if name != missing for word in (name, value)]
        with pytest.raises(SystemExit) as caught:
            main([*command, *given])
        assert caught.value.code == 2
        assert capsys.readouterr().err.endswith(f"the following arguments are required: {missing}\n")


@pytest.mark.nightly
def test_as_a_process(folder):
    code = "import sys; from attnviz.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "verify", TEXT, "--model", str(folder)], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.startswith("tiny (local folder), float32, 11 tokens\n")
    assert done.stdout.endswith("\npassed\n")


def test_help_loads_neither_torch_nor_transformers():
    code = (
        "import sys; from attnviz.cli import _parser; _parser().format_help(); "
        "print([m for m in ('torch', 'transformers', 'huggingface_hub', 'streamlit') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


class TestExport:
    FILES = ("matrix.csv", "numbers.npz", "provenance.json", "view.html")

    def export(self, out, *more):
        return main(["export", TEXT, "--layer", "3", "--head", "1", "--out", str(out), *more])

    def test_writes_the_files_into_a_folder(self, tmp_path, capsys):
        out = tmp_path / "new" / "folder"
        assert self.export(out) == 0
        assert capsys.readouterr() == (f"13 of 13 checks passed\n{out}\n", "")
        assert tuple(sorted(path.name for path in out.iterdir())) == self.FILES
        rows = list(csv.reader((out / "matrix.csv").read_text(encoding="utf-8-sig").splitlines()))
        assert rows[8][0] == "7 it"
        assert rows[0][6] == "5 door"
        assert float(rows[8][6]) == pytest.approx(0.475, abs=5e-4)  # the first screen's example
        document = json.loads((out / "provenance.json").read_text(encoding="utf-8"))
        assert (document["view"]["layer"], document["view"]["head"]) == (3, 1)

    def test_writes_a_zip_that_can_be_opened(self, tmp_path, capsys):
        out = tmp_path / "door.zip"
        assert self.export(out, "--second", "It opened.") == 0
        bundle = attnviz.read_bundle(out.read_bytes())
        assert bundle.trace.tokens.text_pair == "It opened."
        assert bundle.report.passed
        assert self.export(out) == 0  # what attnviz wrote is written over
        assert attnviz.read_bundle(out.read_bytes()).trace.tokens.text_pair is None

    def test_picks_the_strongest_link_of_the_text(self, folder, tmp_path, capsys):
        model = attnviz.load_model(str(folder))
        assert (
            main(
                [
                    "export",
                    "a b c",
                    "--model",
                    str(folder),
                    "--layer",
                    "1",
                    "--head",
                    "0",
                    "--out",
                    str(tmp_path / "b.zip"),
                ]
            )
            == 0
        )
        bundle = attnviz.read_bundle((tmp_path / "b.zip").read_bytes())
        weights = model.trace("a b c").weights(1, 0)
        links = {(i, j): weights[i, j] for i in (1, 2, 3) for j in (1, 2, 3) if i != j}
        assert (bundle.query, bundle.key) == max(links, key=links.get)

    def test_the_strongest_link_of_two_texts_is_of_tokens_that_are_not_special(self, tiny_model):
        """Each side has special tokens of its own; the diagonal of cross-attention is like any other cell."""
        for text, target in (("the cat sat when it opened", "it"), ("it", "the cat sat when it opened")):
            trace = tiny_model("bart").trace(text, target)
            for head in trace.heads("cross"):
                pattern = trace.pattern(*head, "cross")
                queries, keys = (
                    np.flatnonzero(~side.is_special) for side in (trace.target_tokens, trace.tokens)
                )
                links = {(i, j): pattern.weights[i, j] for i in queries.tolist() for j in keys.tolist()}
                assert _strongest_link(pattern) == max(links, key=links.get)

    def test_a_text_of_one_word_has_its_own_link_alone(self):
        weights = np.array([[0.5, 0.25, 0.25], [0.5, 0.125, 0.375], [0.75, 0.125, 0.125]])
        pattern = hand_made.trace(weights[None, None], ["[CLS]", "door", "[SEP]"]).pattern(0, 0)
        assert _strongest_link(pattern) == (1, 1)

    @pytest.mark.parametrize(
        "there", [{}, {"notes.txt": b"mine"}, {"provenance.json": BUNDLE, "view.html": b"old"}]
    )
    def test_files_go_into_a_folder_without_others_of_their_names(self, tmp_path, there):
        files = {"provenance.json": BUNDLE, "view.html": b"new"}
        out = tmp_path / "a" / "b"
        if there:
            out.mkdir(parents=True)
        for name, content in there.items():
            (out / name).write_bytes(content)
        _check_own_bundle(out)
        _write_files(out, {out / name: content for name, content in files.items()})
        assert {path.name: path.read_bytes() for path in out.iterdir()} == there | files

    @pytest.mark.parametrize(
        "there",
        [
            {"view.html": b"mine"},
            {"provenance.json": b"{}"},
            {"provenance.json": b"{}", "view.html": b"mine"},
        ],
    )
    def test_files_of_another_program_stay(self, tmp_path, there):
        for name, content in there.items():
            (tmp_path / name).write_bytes(content)
        with pytest.raises(BundleError, match=f"has a {min(there)} that attnviz did not write"):
            _check_own_bundle(tmp_path)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == there

    @pytest.mark.nightly
    def test_writes_over_its_own_files_only(self, tmp_path, capsys):
        out = tmp_path / "folder"
        assert self.export(out) == 0
        (out / "notes.txt").write_text("mine")
        assert self.export(out) == 0
        assert (out / "notes.txt").read_text() == "mine"
        for name, content in (("provenance.json", b"{}"), ("view.html", b"mine")):
            other = tmp_path / name
            other.mkdir()
            (other / name).write_bytes(content)
            capsys.readouterr()
            assert self.export(other) == 2
            out_text, err = capsys.readouterr()
            assert (out_text, err.count("\n")) == ("", 1)
            assert f"has a {name} that attnviz did not write. Give another folder." in err
            assert (other / name).read_bytes() == content
            assert len(list(other.iterdir())) == 1

    def test_does_not_write_over_another_zip(self, tmp_path, capsys):
        out = tmp_path / "mine.zip"
        out.write_bytes(b"mine")
        assert self.export(out) == 2
        assert "already exists and is not a bundle. Give another file name." in capsys.readouterr().err
        assert out.read_bytes() == b"mine"

    def test_where_nothing_can_be_written_is_an_error(self, tmp_path, capsys):
        (tmp_path / "file").write_text("mine")
        assert self.export(tmp_path / "file" / "folder") == 2
        assert self.export(tmp_path / "file" / "a.zip") == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 2)
        assert "cannot be written: Not a directory. Give another path." in err

    @pytest.mark.parametrize(("layer", "head"), [("6", "0"), ("0", "12"), ("-1", "0")])
    def test_of_a_head_that_is_not_there_is_an_error(self, layer, head, tmp_path, capsys):
        out = tmp_path / "folder"
        assert main(["export", TEXT, "--layer", layer, "--head", head, "--out", str(out)]) == 2
        assert "Select one of those." in capsys.readouterr().err
        assert not out.exists()

    def test_of_numbers_that_are_not_the_models_exits_with_1(self, tmp_path, capsys, monkeypatch):
        real = attnviz.model.verification.verify
        monkeypatch.setattr(
            attnviz.model.verification,
            "verify",
            lambda *given: with_weights(real(*given), 1, np.full(12, 0.3)),
        )
        out = tmp_path / "a.zip"
        assert self.export(out) == 1
        assert capsys.readouterr() == (
            f"12 of 13 checks passed; failed: attention weights\n{out}\n",
            "attnviz: the numbers do not match the model's\n",
        )
        assert not attnviz.read_bundle(out.read_bytes()).report.passed


NUMBERS = {
    "n_text": 1234,
    "n_token": 56789,
    "n_failed": 0,
    "n_verified": 12,
    "n_passed": 12,
    "worst_error": 1.26e-7,
    "worst_difference": 3.4e-6,
    "provenance": SimpleNamespace(model="tiny", revision="1a2b", dtype="float32"),
}
PROFILE = NUMBERS | {"table": range(72)}
INDEX = NUMBERS | {"vectors": ("hidden", "key"), "layer": 2, "recalls": {}}


class TestCorpus:
    """What is printed of a profile or an index with these numbers; the run itself is in test_corpus_run."""

    @staticmethod
    def printed(what, found, changed, monkeypatch, capsys):
        monkeypatch.setattr(f"attnviz.corpus.{found}", lambda *_, **__: SimpleNamespace(**changed))
        more = ["--layer", "2"] if what == "index" else []
        code = main(["corpus", what, "texts.txt", "--out", "out", *more])
        return code, capsys.readouterr().out.splitlines()

    @pytest.mark.parametrize(
        ("changed", "code", "lines"),
        [
            (
                {},
                0,
                [
                    "out: 72 heads of tiny over 1,234 texts (56,789 tokens)",
                    "12 of 12 verified texts passed: weights to 1.3e-07, statistics to 3.4e-06",
                ],
            ),
            (
                {"n_failed": 1, "n_text": 1, "n_token": 1, "table": range(1)},
                0,
                [
                    "out: 1 head of tiny over 1 text (1 token)",
                    "12 of 12 verified texts passed: weights to 1.3e-07, statistics to 3.4e-06",
                    "1 text failed; out/failed.parquet says why",
                ],
            ),
            (
                {"n_passed": 11, "n_failed": 1200},
                1,
                [
                    "out: 72 heads of tiny over 1,234 texts (56,789 tokens)",
                    "11 of 12 verified texts passed: weights to 1.3e-07, statistics to 3.4e-06",
                    "1,200 texts failed; out/failed.parquet says why",
                ],
            ),
        ],
    )
    def test_of_a_profile(self, changed, code, lines, monkeypatch, capsys):
        found = "pipeline.profile_corpus"
        assert self.printed("profile", found, PROFILE | changed, monkeypatch, capsys) == (code, lines)

    @pytest.mark.parametrize(
        ("changed", "code", "lines"),
        [
            (
                {"recalls": {"hidden": 0.9871, "key": 1.0}},
                0,
                [
                    "out: 56,789 tokens of 1,234 texts by hidden, key in layer 2 of tiny",
                    "hidden: searched along a graph, which finds 98.7% of the ten nearest",
                    "key: searched along a graph, which finds 100.0% of the ten nearest",
                    "12 of 12 verified texts passed: weights to 1.3e-07, vectors to 3.4e-06",
                ],
            ),
            (
                {"n_passed": 0, "n_failed": 2},
                1,
                [
                    "out: 56,789 tokens of 1,234 texts by hidden, key in layer 2 of tiny",
                    "0 of 12 verified texts passed: weights to 1.3e-07, vectors to 3.4e-06",
                    "2 texts failed; out/failed.parquet says why",
                ],
            ),
        ],
    )
    def test_of_an_index(self, changed, code, lines, monkeypatch, capsys):
        found = "indexing.index_corpus"
        assert self.printed("index", found, INDEX | changed, monkeypatch, capsys) == (code, lines)

    def test_a_graph_says_how_far_it_is(self, monkeypatch, capsys):
        def build(*_, building, progress, **__):
            progress(SimpleNamespace(n_done=7, n_all=1000, n_failed=2, per_second=3.25, seconds_left=305.6))
            building(0.256)
            return SimpleNamespace(**INDEX)

        monkeypatch.setattr("attnviz.corpus.indexing.index_corpus", build)
        main(["corpus", "index", "texts.txt", "--out", "out", "--layer", "2"])
        assert capsys.readouterr().err.splitlines() == [
            "7 of 1,000 texts, 2 failed, 3.2 a second, 0:05:06 left",
            "Building the graph: 26%",
        ]


def test_columns_are_as_wide_as_their_widest_entry():
    assert _table(("a", "bcd", "e"), [("long", "x", ""), ("s", "y", "z")]) == (
        "a     bcd  e\nlong  x\ns     y    z"
    )


class TestEffects:
    @pytest.fixture
    def folder(self, checkpoint):
        return str(checkpoint("bert"))

    @pytest.mark.parametrize("ablation", ["zero", "mean"])
    def test_every_head_has_a_line(self, folder, tmp_path, capsys, ablation):
        out = tmp_path / "effects.csv" if ablation == "mean" else tmp_path / "new" / "folder" / "effects.csv"
        arguments = ["effects", "the cat sat", "--model", folder, "--out", str(out), "--ablation", ablation]
        assert main([*arguments, "--outcome", "similarity:a door opened"]) == 0
        lines = out.read_text(encoding="utf-8-sig").splitlines()
        assert lines[0] == "layer,head,outcome,effect"
        assert [line.split(",")[:2] for line in lines[1:]] == [
            [str(layer), head] for layer in range(3) for head in ("0", "1", "all")
        ]
        model = attnviz.load_model(folder)
        trace = model.trace("the cat sat")
        outcome = measured(model, trace, Similarity(text="a door opened"))
        means = mean_outputs(model, bundled().splitlines()) if ablation == "mean" else None
        effects = ablate(model, trace, outcome, means=means)
        assert float(lines[1].split(",")[2]) == pytest.approx(effects.heads[0, 0], abs=1e-6)
        layers = ablate_layers(model, trace, outcome, means=means)
        told = [float(line.split(",")[2]) for line in lines if ",all," in line]
        assert told == pytest.approx(layers.layers.tolist(), abs=1e-6)
        output = capsys.readouterr().out
        first, _, *rows, verdict, last = output.splitlines()
        assert re.fullmatch(r"(\d+) of \1 checks passed", verdict)
        assert (
            first == f"similarity with “a door opened”: {effects.base:.6g} ({outcome.unit})"
            and last == str(out)
        )
        assert [cells(row) for row in rows] == [
            [head.words, f"{effects.effects[head]:+.3g}"] for head in effects.ranked()[:5]
        ]

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"--outcome": "what:1"}, "an outcome is written as"),
            ({"--outcome": "state:99"}, "Token 99"),
            ({"--out": "effects.txt"}, "not the name of a CSV file"),
            ({"--kind": "cross"}, "'cross' was asked for"),
        ],
    )
    def test_what_cannot_be_measured_is_said_in_one_line(self, folder, tmp_path, capsys, changed, message):
        given = {"--model": folder, "--outcome": "state:1", "--out": str(tmp_path / "effects.csv")} | changed
        assert (
            main(["effects", "the cat sat", *(argument for pair in given.items() for argument in pair)]) == 2
        )
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1


TOLD = (
    "1,200 of 34,000 texts, 1,045.1 a second, 1:02:06 left",
    "9 of 10 texts, 1,100 failed, 0.2 a second, 0:00:04 left",
)
"""What is told of how far a run is, for the numbers of the test below."""


@pytest.mark.parametrize(
    ("command", "place", "more", "asked", "told"),
    [
        (
            "profile",
            "pipeline.profile_corpus",
            ["--ray", "ray://host:10001"],
            {"ray": "ray://host:10001"},
            TOLD,
        ),
        (
            "index",
            "indexing.index_corpus",
            ["--layer", "4", "--vectors", "query,hidden"],
            {"layer": 4, "vectors": ["query", "hidden"]},
            (*TOLD, "Building the graph: 26%"),
        ),
    ],
    ids=["profile", "index"],
)
def test_a_run_over_texts_is_asked_for_and_followed(command, place, more, asked, told, monkeypatch, capsys):
    """All that a command line says reaches the run, and how far it is goes to the standard error."""
    given = {}

    def run(texts, model, out, *, progress, building=None, **named):
        given.update(named, texts=texts, model=model, out=out)
        progress(
            SimpleNamespace(n_done=1200, n_all=34_000, n_failed=0, per_second=1045.06, seconds_left=3725.6)
        )
        progress(SimpleNamespace(n_done=9, n_all=10, n_failed=1100, per_second=0.25, seconds_left=4.0))
        if building is not None:
            building(0.257)
        return SimpleNamespace(**(PROFILE if command == "profile" else INDEX))

    monkeypatch.setattr(f"attnviz.corpus.{place}", run)
    words = [
        "a.txt",
        "b.csv",
        "--model",
        "tiny",
        "--column",
        "words",
        "--label",
        "spacy",
        "--out",
        "new/folder",
    ]
    capsys.readouterr()
    assert main(["corpus", command, *words, *more]) == 0
    assert given == asked | {
        "texts": ["a.txt", "b.csv"],
        "model": "tiny",
        "out": Path("new/folder"),
        "column": "words",
        "label": "spacy",
    }
    assert tuple(capsys.readouterr().err.splitlines()) == told


class TestArguments:
    """What is missing, empty or of another sort is told before a model is loaded, and never taken for something else."""

    VALID: ClassVar = {
        "verify": ["verify", "a"],
        "export": ["export", "a", "--layer", "0", "--head", "0", "--out", "OUT.zip"],
        "effects": ["effects", "a", "--outcome", "state:1", "--out", "OUT.csv"],
        "profile": ["corpus", "profile", "FOLDER/a.txt", "--out", "OUT"],
        "index": ["corpus", "index", "FOLDER/a.txt", "--layer", "0", "--out", "OUT"],
        "download": ["download", "tiny"],
    }

    @pytest.fixture
    def told(self, tmp_path, monkeypatch, capsys):
        """Exit code and stderr of a command to which arguments are added, or which replace those of the same name."""
        (tmp_path / "a.txt").write_text("the cat")
        for place in ("loading.load_model", "download.download_model"):
            monkeypatch.setattr(f"attnviz.model.{place}", lambda *_: pytest.fail("was loaded"))
        monkeypatch.setattr("attnviz.corpus.pipeline._loaded", lambda *_: pytest.fail("was loaded"))

        def run(command, *more):
            words = [*self.VALID[command], *more]
            words = [
                word.replace("OUT", f"{tmp_path}/out").replace("FOLDER", str(tmp_path)) for word in words
            ]
            try:
                code = main(words)
            except SystemExit as end:
                code = end.code
            out, err = capsys.readouterr()
            assert out == ""
            assert not list(tmp_path.glob("out*"))
            return code, err.splitlines()[-1]

        return run

    @pytest.mark.parametrize("value", ["", "  ", "-"])
    @pytest.mark.parametrize(
        ("command", "option"),
        [
            *((command, "--model") for command in VALID if command != "download"),
            *((command, "--out") for command in ("export", "effects", "profile", "index")),
            *((command, option) for command in ("profile", "index") for option in ("--column", "--label")),
            ("profile", "--ray"),
            ("index", "--vectors"),
            ("index", "--layer"),
            ("export", "--head"),
            ("effects", "--outcome"),
            ("effects", "--kind"),
            ("effects", "--ablation"),
        ],
    )
    def test_an_option_without_a_value(self, command, option, value, told):
        code, line = told(command, f"{option}={value}")
        assert code == 2
        assert f"error: argument {option}: " in line

    @pytest.mark.parametrize("value", ["", " ", "-"])
    @pytest.mark.parametrize(
        ("command", "name"), [("profile", "TEXTS"), ("index", "TEXTS"), ("download", "model")]
    )
    def test_a_name_that_is_empty(self, command, name, value, told, monkeypatch):
        at = 1 if command == "download" else 2
        monkeypatch.setitem(
            self.VALID, command, [*self.VALID[command][:at], value, *self.VALID[command][at + 1 :]]
        )
        code, line = told(command)
        assert code == 2
        assert f"error: argument {name}: {'- stands for' if value == '-' else 'it is empty'}" in line

    @pytest.mark.parametrize(
        ("command", "more", "words"),
        [
            ("verify", ["--mod", "tiny"], "unrecognized arguments: --mod tiny"),
            ("index", ["--vector", "key"], "unrecognized arguments: --vector key"),
            ("export", ["--layer", "NaN"], "argument --layer: 'NaN' is not a whole number"),
            ("export", ["--head", "1.0"], "argument --head: '1.0' is not a whole number"),
            (
                "index",
                ["--layer", "9" * 5000],
                "argument --layer: '99999999999999999999…' is not a whole number",
            ),
            ("index", ["--vectors", "key,"], "argument --vectors: it is empty"),
            pytest.param(
                "index",
                ["--vectors", "values"],
                "Tokens were to be indexed by values",
                marks=pytest.mark.stand_ins,
            ),
            ("effects", ["--out", "OUT.csv.gz"], "is not the name of a CSV file"),
            ("effects", ["--outcome", "turn:1"], "The outcome “turn:1” was asked for"),
            ("export", ["--out", "FOLDER/a.txt"], "a.txt is not a folder. Give another path."),
            ("profile", ["--out", "FOLDER/a.txt"], "a.txt is not a folder. Give another path."),
            ("index", ["--out", "FOLDER/a.txt/new"], "a.txt/new cannot be written: Not a directory."),
            ("export", ["--out", "/proc/new.zip"], "/proc/new.zip cannot be written: "),
            ("effects", ["--out", "/proc/new/new.csv"], "/proc/new/new.csv cannot be written: "),
            ("export", ["--out", f"/tmp/{'x' * 300}"], "cannot be written: File name too long"),
            ("profile", ["--label", "no_such_pipeline"], "The spaCy pipeline no_such_pipeline"),
        ],
    )
    def test_a_value_of_another_sort(self, command, more, words, told):
        code, line = told(command, *more)
        assert code == 2
        assert words in line

    @pytest.mark.parametrize(
        ("command", "name"), [("export", "folder.zip"), ("effects", "folder.csv"), ("effects", "Folder.CSV")]
    )
    def test_a_folder_where_a_file_is_to_be_written(self, command, name, told, tmp_path):
        (tmp_path / name).mkdir()
        code, line = told(command, "--out", str(tmp_path / name))
        assert (code, line) == (2, f"attnviz: {tmp_path / name} is not a file. Give another path.")

    @pytest.mark.parametrize(
        ("command", "name", "what"),
        [
            ("export", "a.zip", "a bundle"),
            ("export", "A.ZIP", "a bundle"),
            ("effects", "a.csv", "a table of effects"),
        ],
    )
    def test_a_file_that_attnviz_did_not_write_stays(self, command, name, what, told, tmp_path):
        (tmp_path / name).write_text("mine")
        code, line = told(command, "--out", str(tmp_path / name))
        assert (code, line) == (
            2,
            f"attnviz: {tmp_path / name} already exists and is not {what}. Give another file name.",
        )
        assert (tmp_path / name).read_text() == "mine"

    @pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
    def test_a_file_is_no_model(self, folder, name, capsys):
        assert main(["verify", "a", "--model", str(folder / name)]) == 2
        assert "Name the folder that holds config.json" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["write_bytes", "replace"])
def test_a_file_that_cannot_be_completed_is_not_there(tmp_path, monkeypatch, name):
    """The disk is full while a file is written, or when it is to be put in its place: the one before stays."""
    (tmp_path / "a.csv").write_text("before")

    def fail(path, content, real=Path.write_bytes):
        if name == "write_bytes":
            real(path, content[:1])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if name == "write_bytes":
        monkeypatch.setattr(Path, "write_bytes", fail)
    else:
        monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(
        BundleError, match=r"a\.csv cannot be written: No space left on device\. Give another path"
    ):
        _write_files(tmp_path / "a.csv", {tmp_path / "a.csv": b"after"})
    assert {path.name: path.read_text() for path in tmp_path.iterdir() if path.is_file()} == {
        "a.csv": "before"
    }


class TestStandardInput:
    @pytest.fixture
    def read(self, monkeypatch, capsys):
        """The texts that a model is given when a command reads some bytes, or what is told."""

        def run(piped, *words):
            given = []
            model = SimpleNamespace(trace=lambda *texts: (given.extend(texts), pytest.fail("Read."))[1])
            monkeypatch.setattr("attnviz.model.loading.load_model", lambda _: model)
            stream = piped if piped is None else io.TextIOWrapper(io.BytesIO(piped), encoding="ascii")
            monkeypatch.setattr("sys.stdin", stream)
            try:
                code = main(["verify", *words])
            except pytest.fail.Exception:
                return given
            return code, capsys.readouterr().err

        return run

    @pytest.mark.parametrize(
        ("piped", "text"),
        [
            (b"the cat\n", "the cat"),
            (b"the cat\r\n", "the cat"),
            (b"the\ncat\n\n", "the\ncat\n"),
            ("\ufeffdie Tür".encode(), "die Tür"),
            (b"", ""),
        ],
    )
    def test_a_text_is_read_from_it(self, read, piped, text):
        assert read(piped, "-") == [text, None]
        assert read(piped, "a", "--second", "-") == ["a", text]

    def test_a_hyphen_in_a_text_is_a_text(self, read):
        assert read(b"piped", "- a") == ["- a", None]
        assert read(b"piped", "--", "--model") == ["--model", None]

    @pytest.mark.parametrize(
        ("piped", "words", "error"),
        [
            (
                b"a",
                ["-", "--second", "-"],
                "Standard input (-) can be one of both texts. Write the other one.",
            ),
            (b"caf\xe9", ["-"], "The text has the byte 0xE9, which is not UTF-8. Write it in UTF-8."),
            (
                "the cat".encode("utf-16"),
                ["-"],
                "The text has the byte 0xFF, which is not UTF-8. Write it in UTF-8.",
            ),
        ],
    )
    def test_what_cannot_be_read(self, read, piped, words, error):
        assert read(piped, *words) == (2, f"attnviz: {error}\n")

    def test_closed(self, read):
        assert read(None, "-") == ["", None]


class TestUnexpected:
    """An error that attnviz did not expect is one sentence; its traceback is printed where it is asked for."""

    @pytest.fixture(
        params=[
            ValueError("odd\nsecond line"),
            PermissionError(13, "Permission denied", "x"),
            PanicException("in Rust"),
        ],
        ids=lambda error: type(error).__name__,
    )
    def failing(self, request, monkeypatch):
        def fail(*_):
            raise request.param

        monkeypatch.setattr("attnviz.model.loading.load_model", fail)
        return type(request.param).__name__

    def test_is_one_sentence(self, failing, capsys):
        assert main(["verify", "a"]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"attnviz: An error that attnviz did not expect: {failing}: ")
        assert err.endswith(" Set ATTNVIZ_TRACEBACK=1 to see where, and report it.\n")
        assert err.count("\n") == 1

    def test_is_printed_with_its_traceback(self, failing, capsys, monkeypatch):
        monkeypatch.setenv("ATTNVIZ_TRACEBACK", "1")
        assert main(["verify", "a"]) == 2
        err = capsys.readouterr().err
        assert err.startswith("Traceback (most recent call last):\n")
        assert "in fail\n" in err

    def test_too_little_memory_is_told_as_that(self, capsys, monkeypatch):
        def fail(*_):
            raise MemoryError

        monkeypatch.setattr("attnviz.model.loading.load_model", fail)
        assert main(["verify", "a"]) == 2
        assert "does not fit into the memory of this machine" in capsys.readouterr().err
