"""The log: a line an event, made of `key=value` pairs for `grep` and for programs that read logfmt.

One concept: the line. What visitors write stands in it only where the operator has asked for it, and nothing that they write
can begin a line or reach a terminal. `ui.runtime.events` has the events; this module knows nothing of streamlit, for the
worker processes write to the same log.

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
"""Characters of a value; what is longer is cut."""
FRAMES = 12
"""Lines of a traceback, the innermost."""
_ROOT = Path(__file__).parents[2]
_PLAIN = re.compile(r"[\w./:@%+-]+", re.ASCII)
_log = logging.getLogger("attnviz.events")


def event(name: str, *, level: int = logging.INFO, error: BaseException | None = None, **values: Any) -> None:
    """Writes a line.

    Args:
        error: what went wrong; its words may be a visitor's.
        values: by key, what is known of it; None is left out, and seconds are rounded to milliseconds.
    """
    if _log.isEnabledFor(level):
        exc_info = (type(error), error, error.__traceback__) if error else None
        _log.log(level, name, exc_info=exc_info, extra={"values": values})


def texts(**values: str) -> dict[str, Any]:
    """What visitors have written, for `event`: nothing unless the operator has asked for it."""
    return values if LOG_TEXTS == "yes" else {}


def begin() -> logging.Formatter:
    """From now on events are written to the standard error; what all other lines should be formatted with."""
    line, handler = Line(), logging.StreamHandler(sys.stderr)
    handler.setFormatter(line)
    logging.getLogger().addHandler(handler)
    logging.captureWarnings(True)
    _log.setLevel(logging.INFO)
    return line


class Line(logging.Formatter):
    """A line for an event, and for what libraries log."""

    def format(self, record: logging.LogRecord) -> str:
        """`time=... level=... event=...` and what is known."""
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
    """Where an error was raised, innermost first: `file:line in function < ...`; its note where a worker has said so."""
    if notes := getattr(error, "__notes__", ()):
        return str(notes[0])
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    return " < ".join(
        f"{_short(frame.filename)}:{frame.lineno} in {frame.name}" for frame in reversed(frames)
    )


def _short(file: str) -> str:
    path = Path(file)
    if path.is_relative_to(_ROOT) and "site-packages" not in path.parts:
        return path.relative_to(_ROOT).as_posix()
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
