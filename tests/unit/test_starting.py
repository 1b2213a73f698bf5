"""`attnviz app` in a checkout; in a wheel, tests/server/test_wheel.py."""

import os
import sys
from pathlib import Path

import pytest

from attnviz.cli import main
from attnviz.starting import COMMAND

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(os.name != "posix", reason="a process is replaced by another on POSIX alone")
@pytest.mark.parametrize(
    ("given", "address", "port"),
    [([], "localhost", "8501"), (["--port", "8600", "--address", "0.0.0.0"], "0.0.0.0", "8600")],
)
def test_a_checkout_serves_its_own_app(given, address, port, monkeypatch):
    class ReplacedError(BaseException):
        pass

    def execv(python: str, command: list[str]) -> None:
        raise ReplacedError(python, command)

    monkeypatch.setattr(os, "execv", execv)
    with pytest.raises(ReplacedError) as replaced:
        main(["app", *given])
    python, command = replaced.value.args
    assert python == sys.executable == command[0]
    assert command[1:6] == ["-P", "-m", "streamlit", "run", str(ROOT / "app.py")]
    options = dict(zip(command[6::2], command[7::2], strict=True))
    assert options == {
        "--server.headless": "true",
        "--server.address": address,
        "--browser.serverAddress": address,
        "--server.port": port,
    }
    assert COMMAND == "make run"


@pytest.mark.parametrize(
    ("port", "sentence"),
    [
        ("door", "'door' is not a whole number such as 0 or 3"),
        ("0", "0 is no port; give one from 1 to 65535"),
        ("65536", "65536 is no port; give one from 1 to 65535"),
    ],
)
def test_a_port_is_a_number_that_a_port_can_be(port, sentence, capsys):
    with pytest.raises(SystemExit):
        main(["app", "--port", port])
    assert sentence in capsys.readouterr().err
