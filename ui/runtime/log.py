"""The log: one line per event, `key=value` pairs for `grep` and for programs that read logfmt.

The line holds visitors' texts only if the operator has asked for them, and nothing that visitors write can begin a
line or send control codes to a terminal. `ui.runtime.events` has the events; this module does not import streamlit,
since worker processes write to the same log.

Source of the form: logfmt, https://brandur.org/logfmt.
"""

import json
import logging
import re
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from ui.limits import LOG_TEXTS

LONGEST = 1000
"""Characters of a value; longer ones are cut."""
FRAMES = 12
"""Traceback frames that are logged, innermost first."""
_ROOT = Path(__file__).parents[2]
_PLAIN = re.compile(r"[\w./:@%+-]+", re.ASCII)
_log = logging.getLogger("attnviz.events")


def event(name: str, *, level: int = logging.INFO, error: BaseException | None = None, **values: Any) -> None:
    """Writes a line.

    Args:
        error: what went wrong; its message may quote a visitor's text.
        values: the event's values by key; None is left out, and seconds are rounded to milliseconds.
    """
    if _log.isEnabledFor(level):
        exc_info = (type(error), error, error.__traceback__) if error else None
        _log.log(level, name, exc_info=exc_info, extra={"values": values})


def texts(**values: str) -> dict[str, Any]:
    """Visitors' texts, for `event`: nothing unless the operator has asked for them."""
    return values if LOG_TEXTS == "yes" else {}


def begin() -> logging.Formatter:
    """Starts writing events to standard error; returns the formatter for all other log lines."""
    line, handler = Line(), logging.StreamHandler(sys.stderr)
    handler.setFormatter(line)
    logging.getLogger().addHandler(handler)
    logging.captureWarnings(True)
    _log.setLevel(logging.INFO)
    return line


class Line(logging.Formatter):
    """Formats events, and what libraries log, as one line."""

    def format(self, record: logging.LogRecord) -> str:
        """`time=... level=... event=...` and the event's values."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        values: dict[str, Any] = {
            "time": f"{at}.{record.msecs:03.0f}Z",
            "level": record.levelname.lower(),
            "process": record.process,
        }
        if record.name == _log.name:
            values |= {"event": record.getMessage(), **vars(record)["values"]}
        else:
            name = "error" if record.levelno >= logging.ERROR else "message"
            values |= {"event": name, "source": record.name, "said": record.getMessage()}
        if record.exc_info and (error := record.exc_info[1]):
            values |= {"error": type(error).__name__, "at": where(error), **texts(because=str(error))}
        return " ".join(f"{key}={_written(value)}" for key, value in values.items() if value is not None)


def where(error: BaseException) -> str:
    """Where an error was raised, innermost first: `file:line in function < ...`; a worker's errors carry this as a note."""
    if notes := getattr(error, "__notes__", ()):
        return str(notes[0])
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    return " < ".join(
        f"{_short(frame.filename)}:{frame.lineno} in {frame.name}" for frame in reversed(frames)
    )


def _short(file: str) -> str:
    path = Path(file)
    if path.is_relative_to(_ROOT) and "site-packages" not in (own := path.relative_to(_ROOT)).parts:
        return own.as_posix()
    return "/".join(path.parts[-3:])


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}"
    text = str(value)
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}…"
    if _PLAIN.fullmatch(text):
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(
        character if character.isprintable() else f"\\u{ord(character):04x}" for character in quoted
    )
