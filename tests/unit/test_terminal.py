"""A command and its shell: signals that stop it, encodings without a character, outputs that are closed or full."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from attnviz.cli import main
from tests.hub import LoopbackHub, save_tiny_bert

ROOT = Path(__file__).parents[2]
STOPPED = "attnviz: Stopped. Run the same command again to go on from there.\n"
HERE = "here\n"
"""What a process prints when it is where it is to be stopped."""
COMMAND = f"""
import hashlib, signal, sys, threading, time
from attnviz import cli

def run(arguments):
    print({HERE.strip()!r}, file=sys.stderr, flush=True)
    STAGE

cli._COMMANDS["download"] = run
sys.argv[1:] = ["download", "tiny"]
sys.exit(cli.main())
"""
STAGES = {
    "Python": "while True: pass",
    "a native call that no handler interrupts": "hashlib.pbkdf2_hmac('sha256', b'', b'', 2**31 - 1)",
    "waiting for a thread": "threading.Event().wait()",
    "code that catches whatever is raised": """
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass""",
    "a library that has a handler of its own": """
    def fail(*_):
        raise RuntimeError("cancelled")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, fail)
    sys.setswitchinterval(5)  # seconds in which no other thread gets a turn
    while True:
        pass""",
}


def stopped(program, *signals, ignored=False, arguments=(), **environment):
    """Exit code and stderr of a process that is sent signals when it has printed that it is there."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN) if ignored else None,
    )
    before = list(iter(process.stderr.readline, HERE))  # until the line has come
    for number in signals:
        process.send_signal(number)
    _, after = process.communicate(timeout=60)
    return process.returncode, "".join(before), after


ONCE, TWICE, TERMINATED = [signal.SIGINT], [signal.SIGINT, signal.SIGINT], [signal.SIGTERM]


@pytest.mark.parametrize(
    ("stage", "signals"),
    [
        ("Python", TWICE),
        ("a native call that no handler interrupts", ONCE),
        ("waiting for a thread", TERMINATED),
        ("code that catches whatever is raised", ONCE),
        ("a library that has a handler of its own", ONCE),
        ("a library that has a handler of its own", TERMINATED),
    ],
)
def test_a_signal_ends_whatever_runs_with_a_sentence(stage, signals):
    program = COMMAND.replace("STAGE", STAGES[stage])
    assert stopped(program, *signals) == (128 + signals[0], "", f"\n{STOPPED}")


def test_ctrl_c_counts_where_a_shell_had_it_ignored():
    program = COMMAND.replace("STAGE", STAGES["Python"])
    assert stopped(program, signal.SIGINT, ignored=True) == (130, "", f"\n{STOPPED}")


def test_a_command_that_is_done_is_not_stopped_while_its_process_ends():
    program = f"""
import atexit, sys
from attnviz.cli import main

def end():
    print({HERE.strip()!r}, file=sys.stderr, flush=True)
    sys.stdin.read()  # until the signals have come

atexit.register(end)
sys.exit(main())
"""
    assert stopped(program, signal.SIGINT, signal.SIGTERM, arguments=["models"]) == (0, "", "")


def test_signals_are_handed_back_to_who_calls_main():
    """As a notebook does, whose own Ctrl+C must go on to work."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert main(["models"]) == 0
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    assert signal.set_wakeup_fd(-1) == -1


FIRST_BATCH = f"""
import sys
from attnviz.corpus import pipeline
from attnviz.cli import main

def measure(self, *given):
    print({HERE.strip()!r}, file=sys.stderr, flush=True)
    return real(self, *given)

real = pipeline.Measuring.measure
pipeline.Measuring.measure = measure
sys.exit(main())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.nightly)])
def test_the_first_batch_of_a_profile_can_be_stopped(number, checkpoint, tmp_path):
    """Daft computes all texts in one call of the main thread, while a thread of its own runs Python."""
    (tmp_path / "texts.txt").write_text("the cat sat on the mat\n" * 1000)
    arguments = ["corpus", "profile", str(tmp_path / "texts.txt"), "--model", str(checkpoint("bert"))]
    out = tmp_path / "out"
    ended = stopped(FIRST_BATCH, number, number, arguments=[*arguments, "--out", str(out)])
    assert ended == (128 + number, "", STOPPED)
    assert list(out.iterdir()) == []


AT = f"""
import importlib, sys
from attnviz.cli import main

module, name = sys.argv.pop(1).split(":")
module = importlib.import_module(module)
real = getattr(module, name)

def announced(*given, **named):
    print({HERE.strip()!r}, file=sys.stderr, flush=True)
    return real(*given, **named)

setattr(module, name, announced)
sys.exit(main())
"""
"""Prints that it is there when a function is called, and goes on."""


@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("command", "place"),
    [
        ("verify", "attnviz.model.loading:load_model"),
        ("verify", "attnviz.model.loading:load_network"),
        ("verify", "attnviz.model.verification:verify"),
        ("effects", "attnviz.effects.mean_outputs:mean_outputs"),
        ("effects", "attnviz.effects.ablation:ablate_layers"),
        ("export", "attnviz.bundle.writing:bundle_files"),
        ("profile", "attnviz.corpus.running:count_texts"),
        ("profile", "attnviz.corpus.running:write"),
        ("profile", "attnviz.corpus.pipeline:write_profile"),
        ("index", "attnviz.corpus.indexing:contexts"),
        ("index", "attnviz.corpus.indexing:check_room"),
    ],
)
def test_every_command_can_be_stopped_anywhere(command, place, number, checkpoint, tmp_path):
    (tmp_path / "texts.txt").write_text("the cat sat on the mat\n" * 200)
    out, texts = tmp_path / "out", str(tmp_path / "texts.txt")
    arguments = {
        "verify": ["verify", "the cat"],
        "effects": [
            "effects",
            "the cat",
            "--outcome",
            "state:1",
            "--ablation",
            "mean",
            "--out",
            f"{out}.csv",
        ],
        "export": ["export", "the cat", "--layer", "0", "--head", "0", "--out", str(out)],
        "profile": ["corpus", "profile", texts, "--out", str(out)],
        "index": ["corpus", "index", texts, "--layer", "0", "--out", str(out)],
    }[command]
    program = AT
    if place.endswith("check_room"):  # called when a graph is built
        program = AT.replace(
            "import importlib", "import attnviz.corpus.indexing as i; i.MOST_SCANNED = 100\nimport importlib"
        )
    code, before, after = stopped(
        program, number, arguments=[place, *arguments, "--model", str(checkpoint("bert"))]
    )
    assert code == 128 + number
    assert (before + after).count("attnviz: ") == 1
    assert after.splitlines()[-1].startswith("attnviz: Stopped.")
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.nightly
def test_a_download_that_is_stopped_goes_on(tmp_path):
    (tmp_path / "tiny").mkdir()
    with LoopbackHub({"tiny/bert": save_tiny_bert(tmp_path / "tiny")}) as hub:
        environment = {
            "HF_ENDPOINT": hub.url,
            "HF_HUB_CACHE": str(tmp_path / "hub"),
            "NO_PROXY": "127.0.0.1,localhost",
        }
        arguments = ["attnviz.model.download:_stream", "download", "tiny/bert"]
        code, _, after = stopped(AT, signal.SIGINT, arguments=arguments, **environment)
        assert code == 130
        assert after.endswith(f"\n{STOPPED}")
        done = run("download", "tiny/bert", env=os.environ | environment, capture_output=True)
        assert done.returncode == 0, done.stderr
        assert (Path(done.stdout.strip()) / "model.safetensors").exists()


def printed(monkeypatch, encoding, *arguments):
    """Exit code of a command, and the bytes on stdout and stderr, of a terminal with an encoding."""
    streams = {name: io.TextIOWrapper(io.BytesIO(), encoding=encoding) for name in ("stdout", "stderr")}
    with monkeypatch.context() as patch:
        for name, stream in streams.items():
            patch.setattr(sys, name, stream)
        code = main([str(argument) for argument in arguments])
    return code, *(stream.buffer.getvalue().decode(encoding) for stream in streams.values())


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("ascii", r"m\xf6del \u2423 \u2212 \U0001f63a"),
        ("latin-1", r"mödel \u2423 \u2212 \U0001f63a"),
        ("cp1252", r"mödel \u2423 \u2212 \U0001f63a"),
        ("gb18030", "mödel ␣ − 😺"),
        ("utf-8", "mödel ␣ − 😺"),
    ],
)
class TestEncodings:
    """What an encoding lacks is printed as its code, in results as in errors."""

    NAME = "mödel ␣ − 😺"

    def test_in_a_result(self, encoding, shown, tmp_path, monkeypatch):
        (tmp_path / self.NAME).mkdir()
        monkeypatch.setenv("ATTNVIZ_MODELS", str(tmp_path / self.NAME))
        code, out, err = printed(monkeypatch, encoding, "models")
        assert (code, err) == (0, "")
        assert f"\n{shown}  " in out

    def test_in_an_error(self, encoding, shown, monkeypatch):
        code, out, err = printed(monkeypatch, encoding, "verify", "a", "--model", f"./{self.NAME}")
        assert (code, out) == (2, "")
        assert f"model called './{shown}'" in err and err.count("\n") == 1

    def test_in_what_argparse_says(self, encoding, shown, monkeypatch):
        with pytest.raises(SystemExit):
            printed(monkeypatch, encoding, "verify", "a", f"--{self.NAME}")


def test_tokens_are_printed_in_ascii(checkpoint, tmp_path, monkeypatch):
    """The label of a token that begins with a space has a ␣, after the file is written as before."""
    out = tmp_path / "effects.csv"
    code, printed_out, err = printed(
        monkeypatch,
        "ascii",
        "effects",
        "the cat",
        "--model",
        checkpoint("gpt2"),
        "--outcome",
        "state:3",
        "--out",
        out,
    )
    assert (code, err) == (0, "")
    assert r"\u2423" in printed_out and printed_out.endswith(f"{out}\n")


PROGRAM = "import sys; from attnviz.cli import main; sys.exit(main())"


def run(*arguments, **streams):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], cwd=ROOT, text=True, timeout=60, **streams
    )


@pytest.mark.parametrize(
    "arguments", [["models"], pytest.param(["--help"], marks=pytest.mark.nightly)], ids=str
)
def test_a_closed_pipe_is_no_error(arguments):
    read, write = os.pipe()
    os.close(read)
    done = run(*arguments, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_full_disk_is_one_sentence():
    with open("/dev/full", "w") as full:
        done = run("models", stdout=full, stderr=subprocess.PIPE)
        assert done.returncode == 2
        assert done.stderr == "attnviz: The result could not be printed: No space left on device.\n"
        done = run("corpus", "profile", "a.txt", "--out", "/proc/new", stdout=subprocess.PIPE, stderr=full)
        assert (done.returncode, done.stdout) == (2, "")
