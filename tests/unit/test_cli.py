import re
import subprocess
import sys
from dataclasses import replace

import huggingface_hub.constants
import pytest
from huggingface_hub.utils import disable_progress_bars, enable_progress_bars

import attnviz
import attnviz.verification
from attnviz.cli import main
from tests.hub import LoopbackHub, save_tiny_bert

TEXT = "I was watching the door when it opened."


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
    assert cells(rest[0]) == ["compared", "largest difference", "tolerance", "passed"]
    rungs = [cells(line) for line in rest[1:4]]
    assert [rung[0] for rung in rungs] == ["attention weights", "head output", "last hidden state"]
    for _, difference, tolerance, passed in rungs:
        assert float(difference) <= float(tolerance)
        assert passed == "yes"
    assert cells(rest[5]) == ["attention", "layer", "largest weight difference", "in head"]
    layers = [cells(line) for line in rest[6:12]]
    assert [layer[:2] for layer in layers] == [["encoder", str(layer)] for layer in range(6)]
    assert max(float(layer[2]) for layer in layers) == float(rungs[0][1])
    assert all(0 <= int(layer[3]) < 12 for layer in layers)
    assert rest[12:] == ["", "passed"]


def test_the_head_and_difference_of_a_layer_are_the_largest(folder, capsys, monkeypatch):
    def verify(model, trace):
        report = real(model, trace)
        errors = {"encoder": report.weight_error.copy()}
        errors["encoder"][2] = (0.25, 0.5)
        return replace(report, weight_errors=errors)

    real = attnviz.verification.verify
    monkeypatch.setattr(attnviz.verification, "verify", verify)
    main(["verify", TEXT, "--model", str(folder)])
    assert ["encoder", "2", "5.0e-01", "1"] in [cells(line) for line in capsys.readouterr().out.splitlines()]


def test_a_verification_that_fails_exits_with_1(folder, capsys, monkeypatch):
    monkeypatch.setattr(attnviz.verification, "OUTPUT_TOLERANCE", -1.0)
    assert main(["verify", TEXT, "--model", str(folder)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [cells(line)[3] for line in lines[3:6]] == ["yes", "NO", "yes"]
    assert lines[-1] == "FAILED"


def test_a_second_sentence_is_read_too(folder, capsys):
    assert main(["verify", "the door", "--second", "it opened", "--model", str(folder)]) == 0
    assert "7 tokens" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["verify", " "], "The text is empty."),
        (["verify", "a\udcffb"], "U+DCFF"),
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
        monkeypatch.setattr("attnviz.download.REPORT_INTERVAL", 0.0)
        enable_progress_bars()
        assert main(["download", "tiny/bert"]) == 0
        disable_progress_bars()
        out, err = capsys.readouterr()
        assert "tiny/bert: 100%" in err
        assert "B/s" in err
        assert "Fetching" not in err
        assert "Reconstruct" not in err
    assert main(["download", "tiny/bert"]) == 0  # on this disk, so the Hub is not asked
    assert capsys.readouterr() == (out, "")
    assert attnviz.load_model("tiny/bert").name == "tiny/bert"


def test_ctrl_c_is_quiet(capsys, monkeypatch):
    def interrupt(name):
        raise KeyboardInterrupt

    monkeypatch.setattr("attnviz.models.load_model", interrupt)
    assert main(["verify", TEXT]) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["verify", "--help"]])
def test_help_and_version_exit_with_0(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 0
    assert (
        attnviz.__version__ if arguments == ["--version"] else "usage: attnviz"
    ) in capsys.readouterr().out


def test_no_command_exits_with_2(capsys):
    with pytest.raises(SystemExit) as caught:
        main([])
    assert caught.value.code == 2
    assert "usage: attnviz" in capsys.readouterr().err


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
