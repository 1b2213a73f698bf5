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
    return [pairs(line) for line in log.read_text().splitlines() if not _BANNER.fullmatch(line)]


def pairs(line: str) -> dict[str, str]:
    """The values of a line by key."""
    found = _PAIR.findall(line)
    assert sum(len(match.group()) for match in _PAIR.finditer(line)) == len(line), line
    return {key: json.loads(value) if value.startswith('"') else value for key, value in found}


def events(log: Path, name: str, **known: str) -> list[dict[str, str]]:
    """Lines of an event, with these values."""
    return [line for line in lines(log) if line.get("event") == name and known.items() <= line.items()]


def errors(log: Path) -> list[dict[str, str]]:
    """Lines of errors that nobody has foreseen."""
    return [line for line in lines(log) if line.get("level") == "error" and "error" in line]
