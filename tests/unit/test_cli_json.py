"""`--json`: each command's answer as one document whose numbers are the library's, and errors in the same form."""

import io
import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import attnviz
import attnviz.model.verification
from attnviz.cli import main
from attnviz.corpus.profile import read_profile
from attnviz.corpus.token_index import read_index
from attnviz.effects.outcome import TokenState, measured
from attnviz.model.interventions import ScaledOutput
from tests.hub import LoopbackHub, save_tiny_bert

pytestmark = pytest.mark.slow

TEXT = "the cat sat"


@pytest.fixture
def folder(checkpoint):
    return str(checkpoint("bert"))


@pytest.fixture
def answer(capsys):
    """The exit code of a command, its document, and what is on stderr; nothing else is on stdout."""

    def run(*words):
        capsys.readouterr()
        try:
            code = main([*words])
        except SystemExit as end:
            code = end.code
        out, err = capsys.readouterr()
        assert out.count("\n") == 1 and out.isascii()
        return code, json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON")), err

    return run


@pytest.fixture
def wrong(monkeypatch):
    """Has a weight of layer 1 differ from the model's."""

    def differ(difference):
        def verify(model, trace):
            report = real(model, trace)
            errors = report.weight_error.copy()
            errors[1, 1] = difference
            return replace(
                report,
                checks=tuple(
                    replace(check, differences={trace.kinds[0]: errors})
                    if check.name == "attention weights"
                    else check
                    for check in report.checks
                ),
            )

        real = attnviz.model.verification.verify
        monkeypatch.setattr(attnviz.model.verification, "verify", verify)

    return differ


def assert_about(document, command, model, trace):
    """The document is of this command, model and trace, and has the verdict on it."""
    assert (document["command"], document["attnviz"]) == (command, attnviz.__version__)
    source = trace.provenance
    assert document["model"] == {"name": source.model, "revision": source.revision, "dtype": source.dtype}
    report = attnviz.verify(model, trace)
    assert document["verdict"]["passed"] is True
    assert document["verdict"]["not_compared"] == dict(report.not_compared)
    checks = document["verdict"]["checks"]
    assert [check["name"] for check in checks] == [check.name for check in report.checks]
    for told, check in zip(checks, report.checks, strict=True):
        largest = max(float(np.nanmax(table)) for table in check.differences.values())
        assert told["largest_difference"] <= largest  # that of the worst place by its tolerance
        assert told["largest_difference"] in np.concatenate([t.ravel() for t in check.differences.values()])
        assert told["tolerance"] in np.concatenate([t.ravel() for t in check.tolerances.values()])
        assert told["largest_difference"] <= told["tolerance"]
        assert (told["unit"], told["passed"]) == (check.unit, True)


@pytest.mark.parametrize("family", ["bert", "bart"])  # bart has three kinds of attention
def test_verify(family, checkpoint, answer):
    second = ["--second", "it"] if family == "bart" else []
    code, document, err = answer("verify", TEXT, *second, "--model", str(checkpoint(family)), "--json")
    assert (code, err) == (0, "")
    model = attnviz.load_model(str(checkpoint(family)))
    trace = model.trace(TEXT, *second[1:])
    assert_about(document, "verify", model, trace)
    report = attnviz.verify(model, trace)
    assert document["n_token"] == len(trace.tokens)
    assert document["weights_of_the_file"] == report.check("weights of the file").reason
    differences = report.check("attention weights").differences
    assert [(layer["kind"], layer["layer"]) for layer in document["layers"]] == [
        (kind, layer) for kind in trace.kinds for layer in range(trace.n_layers(kind))
    ]
    for layer in document["layers"]:
        row = differences[layer["kind"]][layer["layer"]].tolist()
        assert (layer["largest_difference"], layer["head"]) == (max(row), row.index(max(row)))


@pytest.mark.parametrize("family", ["gpt2", "bart"])
def test_export(family, checkpoint, answer, tmp_path, monkeypatch):
    """Of a decoder the scores that a query may not see are null; of bart the first kind is that of its encoder."""
    monkeypatch.chdir(tmp_path)
    second = ["--second", "it"] if family == "bart" else []
    command = ["export", TEXT, *second, "--model", str(checkpoint(family)), "--layer", "1", "--head", "1"]
    code, document, err = answer(*command, "--json")
    assert (code, err, document["out"]) == (0, "", None)
    assert not list(tmp_path.iterdir())
    model = attnviz.load_model(str(checkpoint(family)))
    trace = model.trace(TEXT, *second[1:])
    assert_about(document, "export", model, trace)
    assert (document["kind"], document["layer"], document["head"]) == (trace.kinds[0], 1, 1)
    np.testing.assert_array_equal(np.array(document["weights"], dtype=np.float64), trace.weights(1, 1))
    scores = np.array(document["scores"], dtype=np.float64)  # NaN for null
    seen = np.tri(len(scores), dtype=bool) if family == "gpt2" else np.ones(scores.shape, dtype=bool)
    np.testing.assert_array_equal(np.isnan(scores), ~seen)
    np.testing.assert_array_equal(scores[seen], trace.pattern(1, 1).scores[seen])
    for side in ("queries", "keys"):
        assert document[side] == {"labels": list(trace.tokens.labels), "ids": trace.tokens.ids.tolist()}
    out = tmp_path / "cat.zip"
    code, again, _ = answer(*command, "--json", "--out", str(out))
    assert (code, again) == (0, document | {"out": str(out)})
    np.testing.assert_array_equal(attnviz.read_bundle(out.read_bytes()).trace.weights(1, 1), again["weights"])


def test_export_of_some_rows(folder, answer, capsys, monkeypatch, tmp_path):
    command = ["export", TEXT, "--model", folder, "--layer", "1", "--head", "1", "--json"]
    _, document, _ = answer(*command, "--rows", "1:3")
    weights = attnviz.load_model(folder).trace(TEXT).weights(1, 1)
    np.testing.assert_allclose(document["weights"], weights[1:3], atol=1e-6)
    assert document["rows"] == [1, 2]
    monkeypatch.setattr("attnviz.bundle.bounds.MOST_TOKENS", 2)
    assert main(command) == main([*command, "--rows", "0:1", "--out", str(tmp_path / "a.zip")]) == 2
    err = capsys.readouterr()
    told = err.out + err.err
    assert "at most 4 are written. Select rows: --rows 0:" in told
    assert "which holds the whole matrix. Write rows with --json alone." in told
    with pytest.raises(SystemExit):
        main([*command, "--rows", "3"])
    assert "'3' is not a range of rows such as 0:100" in capsys.readouterr().err


def test_effects(folder, answer, tmp_path):
    command = ["effects", TEXT, "--model", folder, "--outcome", "length:2", "--json"]
    code, document, err = answer(*command)
    assert (code, err, document["out"]) == (0, "", None)
    model = attnviz.load_model(folder)
    trace = model.trace(TEXT)
    assert_about(document, "effects", model, trace)
    assert document["outcome"] == {
        "name": "length:2",
        "words": "length of the change of the last hidden state of “cat” (token 2)",
        "unit": "length",
    }
    assert (document["base"], document["kind"], document["ablation"]) == (0, "encoder", "zero")
    assert [(row["layer"], row["head"]) for row in document["heads"]] == list(trace.heads())
    assert [row["layer"] for row in document["layers"]] == [0, 1, 2]
    outcome = measured(model, trace, TokenState(position=2, by="length"))
    for row in (*document["heads"], *document["layers"]):
        off = ScaledOutput(layer=row["layer"], head=row.get("head"), factor=0.0)
        states = model.trace(TEXT, interventions=[off]).last_hidden_state
        moved = float(np.linalg.norm(states[2] - trace.last_hidden_state[2]))
        assert row["outcome"] == pytest.approx(moved, abs=1e-5) and moved > 1e-3
        assert row["effect"] == np.float32(row["outcome"] - outcome.value)
    out = tmp_path / "x.csv"
    code, again, _ = answer(*command, "--out", str(out))
    assert (code, again) == (0, document | {"out": str(out)})
    rows = [line.split(",") for line in out.read_text().splitlines()[1:]]
    assert [float(row[2]) for row in rows if row[1] != "all"] == pytest.approx(
        [row["outcome"] for row in document["heads"]], rel=1e-6
    )


@pytest.mark.parametrize(("difference", "told"), [(0.5, 0.5), (float("nan"), None)], ids=str)
@pytest.mark.parametrize(
    "command",
    [
        ["verify"],
        ["export", "--layer", "0", "--head", "0"],
        ["effects", "--outcome", "state:1"],
    ],
    ids=lambda words: words[0],
)
def test_numbers_that_are_not_the_models(command, difference, told, folder, answer, wrong):
    wrong(difference)
    code, document, err = answer(*command, TEXT, "--model", folder, "--json")
    assert code == 1
    assert document["verdict"]["passed"] is False
    failed = [check for check in document["verdict"]["checks"] if not check["passed"]]
    assert [(check["name"], check["largest_difference"]) for check in failed] == [("attention weights", told)]
    if command == ["verify"]:
        assert document["layers"][1] == {
            "kind": "encoder",
            "layer": 1,
            "largest_difference": told,
            "head": 1,
        }
    else:
        assert err == "attnviz: the numbers do not match the model's\n"


def test_effects_of_wrong_numbers_are_told_in_words_too(folder, tmp_path, capsys, wrong):
    wrong(0.5)
    out = tmp_path / "x.csv"
    assert main(["effects", TEXT, "--model", folder, "--outcome", "state:1", "--out", str(out)]) == 1
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "12 of 13 checks passed; failed: attention weights",
        str(out),
    ]


def test_models(folder, tmp_path, answer, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("ATTNVIZ_MODELS", f"{folder},{tmp_path / 'gone'},tiny/bert")
    code, document, err = answer("models", "--json")
    assert (code, err, document["command"]) == (0, "", "models")
    models = {model.pop("name"): model for model in document["models"]}
    assert [name for name, model in models.items() if model["default"]] == ["all-MiniLM-L6-v2"]
    assert models["bert"] == {
        "default": False,
        "path": folder,
        "revision": "local folder",
        "on_disk": True,
        "download_bytes": None,
        "description": "a folder on this machine",
    }
    assert (models["gone"]["path"], models["gone"]["on_disk"]) == (str(tmp_path / "gone"), False)
    assert models["tiny/bert"] == {
        "default": False,
        "path": None,
        "revision": None,
        "on_disk": False,
        "download_bytes": None,
        "description": "",
    }
    assert models["bert-base-uncased"]["download_bytes"] == 441_147_956


def test_download(tmp_path, answer, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_TELEMETRY", True)
    (tmp_path / "tiny").mkdir()
    with LoopbackHub({"tiny/bert": save_tiny_bert(tmp_path / "tiny")}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
        monkeypatch.setattr("attnviz.model.download.REPORT_INTERVAL", 0.0)
        code, document, _ = answer("download", "tiny/bert", "--json")
    assert (code, document["command"]) == (0, "download")
    model = attnviz.load_model("tiny/bert")
    assert document["model"] == {"name": "tiny/bert", "revision": model.trace("a").provenance.revision}
    assert document["folder"].startswith(str(tmp_path / "hub"))
    assert document["folder"].endswith(document["model"]["revision"])


@pytest.mark.as_served  # functions are handed to Daft
class TestCorpus:
    TEXTS = b"the cat sat\nit opened .\n\xff\nthe door opened the mat .\n"

    def answered(self, what, folder, tmp_path, answer, *more):
        (tmp_path / "texts.txt").write_bytes(self.TEXTS)
        out = str(tmp_path / "out")
        texts = str(tmp_path / "texts.txt")
        code, document, err = answer("corpus", what, texts, "--model", folder, "--out", out, "--json", *more)
        assert (code, document["command"], document["out"]) == (0, f"corpus {what}", out)
        assert "4 of 4 texts, 1 failed" in err
        assert document["model"] == {"name": "bert", "revision": "local folder", "dtype": "float32"}
        assert document["failed"] == str(tmp_path / "out" / "failed.parquet")
        assert (document["n_text"], document["n_failed"]) == (3, 1)
        assert document["verdict"] | {"largest_differences": None} == {
            "passed": True,
            "n_verified": 3,
            "n_passed": 3,
            "largest_differences": None,
        }
        return document, out

    def test_profile(self, folder, tmp_path, answer):
        document, out = self.answered("profile", folder, tmp_path, answer)
        profile = read_profile(out)
        assert (document["n_head"], document["n_token"]) == (6, profile.n_token)
        assert document["verdict"]["largest_differences"] == {
            "weights": profile.worst_error,
            "statistics": profile.worst_difference,
        }
        assert 0 < profile.worst_error < 1e-5

    def test_index(self, folder, tmp_path, answer, monkeypatch):
        monkeypatch.setattr("attnviz.corpus.indexing.MOST_SCANNED", 100)  # bytes; so it makes graphs
        document, out = self.answered(
            "index", folder, tmp_path, answer, "--layer", "1", "--vectors", "hidden,key"
        )
        index = read_index(out)
        assert (document["layer"], document["vectors"]) == (1, ["hidden", "key"])
        assert document["n_token"] == index.n_token
        assert document["recalls"] == dict(index.recalls) and set(index.recalls) == {"hidden", "key"}
        assert document["verdict"]["largest_differences"] == {
            "weights": index.worst_error,
            "vectors": index.worst_difference,
        }


class TestErrors:
    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            (["verify", " "], "The text is empty. Type a sentence."),
            (["download", "no such model"], "There is no model called 'no such model'"),
            (["corpus", "profile", "no such file", "--out", "OUT"], "no such file"),
            (["corpus", "index", "a.txt", "--out", "OUT"], "arguments are required: --layer"),
            (["export", "a", "--head", "1.0"], "argument --head: '1.0' is not a whole number"),
            (["effects", "a"], "arguments are required: --outcome"),
            (["verify", "a", "--out", "b"], "unrecognized arguments: --out b"),
            ([], "the following arguments are required: command"),
        ],
        ids=" ".join,
    )
    def test_are_a_document(self, words, sentence, answer, tmp_path):
        words = [word.replace("OUT", str(tmp_path / "out")) for word in words]
        code, document, err = answer(*words, "--json")
        assert (code, set(document)) == (2, {"error"})
        assert sentence in document["error"]
        assert err.endswith(f": {document['error']}\n")

    def test_that_are_not_expected(self, answer, monkeypatch):
        monkeypatch.setattr("attnviz.model.loading.load_model", lambda _: {}["odd"])
        code, document, err = answer("verify", "a", "--json")
        assert (code, set(document)) == (2, {"error"})
        assert document["error"].startswith("An error that attnviz did not expect: KeyError")
        assert err == f"attnviz: {document['error']}\n"

    def test_a_text_of_this_name_is_a_text(self, capsys):
        assert main(["verify", "--model", "no such model", "--", "--json"]) == 2
        out, err = capsys.readouterr()
        assert out == "" and "There is no model" in err

    def test_without_it_a_file_is_needed(self, capsys):
        for command in (
            ["export", "a", "--layer", "0", "--head", "0"],
            ["effects", "a", "--outcome", "state:1"],
        ):
            with pytest.raises(SystemExit):
                main(command)
            assert capsys.readouterr().err.endswith("the following arguments are required: --out\n")


def test_other_characters_in_a_terminal_of_ascii(checkpoint, monkeypatch, tmp_path):
    """Labels have a ␣, and a path has characters of one byte and of four."""
    model, out = str(checkpoint("gpt2")), str(tmp_path / "köpfe 😺.zip")
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        command = ["export", TEXT, "--model", model, "--layer", "0", "--head", "0"]
        assert main([*command, "--json", "--out", out]) == 0
    document = json.loads(stream.buffer.getvalue())
    assert document["out"] == out
    assert document["keys"]["labels"] == list(attnviz.load_model(model).trace(TEXT).tokens.labels)


def test_help_says_it(capsys):
    for words in (
        *(["verify"], ["export"], ["effects"], ["models"], ["download"]),
        *(["corpus", "profile"], ["corpus", "index"], []),
    ):
        with pytest.raises(SystemExit):
            main([*words, "--help"])
        assert "--json" in capsys.readouterr().out


COMMANDS = (
    ["verify"],
    ["export", "--layer", "0", "--head", "0", "--json"],
    ["effects", "--outcome", "state:1", "--json"],
)
"""Those that read a text, without it."""


class TestPiped:
    @pytest.fixture
    def given(self, monkeypatch):
        """The texts that a model gets from a command whose standard input is a pipe with "the cat", or a terminal."""

        def run(*words, is_terminal=False):
            given = []
            model = SimpleNamespace(trace=lambda *texts: (given.extend(texts), pytest.fail("Read."))[1])
            monkeypatch.setattr("attnviz.model.loading.load_model", lambda _: model)
            stream = io.TextIOWrapper(io.BytesIO(b"the cat\n"), encoding="ascii")
            monkeypatch.setattr(stream, "isatty", lambda: is_terminal, raising=False)
            monkeypatch.setattr("sys.stdin", stream)
            with pytest.raises(pytest.fail.Exception):
                main([*words])
            return given

        return run

    @pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
    def test_a_text_that_is_missing_is_read(self, command, given):
        assert given(*command) == ["the cat", None]
        assert given(*command, "-") == ["the cat", None]
        assert given(*command, "--second", "it") == ["the cat", "it"]

    @pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
    def test_a_text_that_is_given_is_taken(self, command, given):
        """Also after options, and where something is piped."""
        for is_terminal in (False, True):
            assert given(*command, "a door", is_terminal=is_terminal) == ["a door", None]
            assert given(command[0], "a door", *command[1:], is_terminal=is_terminal) == ["a door", None]

    @pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
    @pytest.mark.parametrize("closed", [False, True])
    def test_a_terminal_is_not_read(self, command, closed, monkeypatch, capsys):
        stream = None if closed else SimpleNamespace(isatty=lambda: True)
        monkeypatch.setattr("sys.stdin", stream)
        with pytest.raises(SystemExit) as caught:
            main(command)
        assert caught.value.code == 2
        assert capsys.readouterr().err.endswith(
            f"{command[0]}: error: the following arguments are required: text\n"
        )

    def test_both_texts(self, capsys, monkeypatch):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a"), encoding="ascii"))
        assert main(["verify", "--second", "-"]) == 2
        assert "can be one of both texts" in capsys.readouterr().err
