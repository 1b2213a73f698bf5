"""What stands in a log: its lines as values by key, and what must not be there."""

import json
import re
from pathlib import Path

_PAIR = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|[^" ]+)(?: |$)')
_BANNER = re.compile(
    r"\s*(|You can now view your Streamlit app in your browser\.|URL: \S+|Stopping\.\.\.)\s*"
)


def lines(log: Path) -> list[dict[str, str]]:
    """Every line; AssertionError for one that is not of `key=value` pairs, Streamlit's greeting aside."""
    return [pairs(one) for one in log.read_text().splitlines() if not _BANNER.fullmatch(one)]


def pairs(line: str) -> dict[str, str]:
    """The values of a line by key."""
    found = _PAIR.findall(line)
    assert sum(len(one.group()) for one in _PAIR.finditer(line)) == len(line), line
    return {key: json.loads(value) if value.startswith('"') else value for key, value in found}


def events(log: Path, name: str, **known: str) -> list[dict[str, str]]:
    """Lines of an event, with these values."""
    return [one for one in lines(log) if one.get("event") == name and known.items() <= one.items()]


def errors(log: Path) -> list[dict[str, str]]:
    """Lines of errors that nobody has foreseen."""
    return [one for one in lines(log) if one.get("level") == "error" and "error" in one]
