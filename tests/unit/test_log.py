"""One line per event, whatever visitors write."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from tests.log_lines import pairs
from ui.runtime import events, log

ROOT = Path(__file__).parents[2]


@pytest.fixture
def written(monkeypatch):
    """The lines so far."""
    lines = []

    class Handler(logging.Handler):
        def emit(self, record):
            lines.append(log.Line().format(record))

    handler = Handler()
    logger = logging.getLogger("attnviz.events")
    logger.addHandler(handler)
    monkeypatch.setattr(logger, "level", logging.INFO)
    logger.manager._clear_cache()
    yield lines
    logger.removeHandler(handler)


def test_an_event_is_its_values(written):
    log.event("run", page="attention", seconds=0.12345, n=7, is_block=True, visitor=None)
    (line,) = written
    assert line.split(" level=")[1].split(" ", 2)[2] == (
        "event=run page=attention seconds=0.123 n=7 is_block=yes"
    )
    assert pairs(line)["level"] == "info"


@pytest.mark.parametrize(
    "hostile",
    [
        'a b="c" event=stop',
        "one\ntime=2026 event=stop",
        "\r\x1b[2J\x1b]0;title\x07\x9b31m",
        "\u2028\u2029\u202e\u200b\x85\x7f",
        "back\\slash \\n",
        "\ud800",
        "",
        " ",
        "=",
    ],
)
def test_hostile_words_stay_one_value_of_one_line(written, hostile):
    log.event("read", text=hostile, seconds=1.0)
    (line,) = written
    assert line.isprintable()
    assert line.splitlines() == [line]
    assert pairs(line) | {"time": "", "process": ""} == {
        "time": "",
        "level": "info",
        "process": "",
        "event": "read",
        "text": hostile,
        "seconds": "1.000",
    }


def test_what_is_long_is_cut(written):
    log.event("read", text="a" * 5000)
    assert pairs(written[0])["text"] == "a" * log.LONGEST + "…"


@pytest.mark.parametrize(("asked", "stands"), [("no", False), ("yes", True)])
def test_what_visitors_write_stands_there_only_if_it_was_asked_for(written, monkeypatch, asked, stands):
    monkeypatch.setattr(log, "LOG_TEXTS", asked)
    events.read("a model", 11, 0.25, "a secret", "")
    try:
        raise ValueError("of a secret")
    except ValueError as error:
        events.job_ended("place", "failed", 1.5, error)
    assert [pairs(part)["event"] for part in written] == ["read", "job_failed"]
    assert ["secret" in part for part in written] == [stands, stands]
    failed = pairs(written[1])
    assert (failed["error"], failed["level"], failed["seconds"]) == ("ValueError", "warning", "1.500")
    assert failed["at"].startswith("tests/unit/test_log.py:")


def test_progress_is_told_at_tenths_and_not_within_a_second(written, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(events.time, "monotonic", lambda: now[0])
    progress = events.Progress("download_progress", model="a")
    for step in range(1001):
        now[0] += 0.05  # fifty seconds in all
        progress.is_at(step / 1000)
    assert [pairs(part)["percent"] for part in written] == [str(10 * n) for n in range(1, 10)]
    written.clear()
    progress = events.Progress("download_progress", model="a")
    for step in range(1001):
        now[0] += 0.0015
        progress.is_at(step / 1000)
    assert [pairs(part)["percent"] for part in written] == ["60"]  # a second and a half: once


def test_an_error_in_a_page_is_one_line_without_its_words():
    """As Streamlit logs it, from a logger of its own made before and one made after."""
    code = """if True:
        import streamlit.error_util
        from streamlit.logger import get_logger
        from ui.streamlit_fixes.log_lines import format_logs
        from ui.runtime import log
        format_logs(log.begin())
        try:
            raise ValueError("a secret")
        except ValueError as error:
            streamlit.error_util._log_uncaught_app_exception(error)
            get_logger("made.later").error("It failed", exc_info=error)
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [pairs(line) for line in done.stderr.splitlines()]
    assert [(line["event"], line["source"], line["error"]) for line in lines] == [
        ("error", "streamlit.error_util", "ValueError"),
        ("error", "made.later", "ValueError"),
    ]
    assert "secret" not in done.stderr


def test_files_of_the_app_are_named_from_its_folder_in_a_wheel_too(monkeypatch):
    inside = Path("/opt/python/site-packages/attnviz/streamlit-app")
    monkeypatch.setattr(log, "_ROOT", inside)
    assert log._short(str(inside / "ui" / "shell" / "view.py")) == "ui/shell/view.py"
    installed = inside / ".venv" / "lib" / "site-packages" / "streamlit" / "runtime" / "state.py"
    assert log._short(str(installed)) == "streamlit/runtime/state.py"
