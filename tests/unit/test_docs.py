"""What docs/ says of the code is there: every file, and every line that is quoted."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
QUOTE = re.compile(r"^`(?P<line>[^`]+)` in `(?P<file>[^`]+)`$", re.MULTILINE)
FILE = re.compile(r"`((?:attnviz|ui|pages|tests|docs)/[\w/.]*|app\.py)`")


def misquoted(text: str) -> list[str]:
    """Lines that are quoted and do not stand in the file that is named."""
    return [
        one["line"]
        for one in QUOTE.finditer(text)
        if one["line"] not in (ROOT / one["file"]).read_text(encoding="utf-8")
    ]


def missing(text: str) -> list[str]:
    """Files and folders that are named and are not there."""
    return [name for name in FILE.findall(text) if not (ROOT / name).exists()]


def test_every_line_of_code_in_the_maths_is_there():
    text = (ROOT / "docs" / "maths.md").read_text(encoding="utf-8")
    assert len(QUOTE.findall(text)) >= 9  # those of steps 1 to 7
    assert misquoted(text) == []


@pytest.mark.parametrize("name", ["docs/architecture.md", "docs/maths.md", "CONTRIBUTING.md"])
def test_every_file_that_is_named_is_there(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert FILE.findall(text)
    assert missing(text) == []


def test_a_journey_passes_ten_files_at_most():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    journeys = re.findall(r"^1\. .*?(?=^\D)", text, flags=re.MULTILINE | re.DOTALL)
    lengths = [len(re.findall(r"^\d+\. `", one, flags=re.MULTILINE)) for one in journeys]
    assert len(lengths) == 2 and 5 < max(lengths) <= 10


def test_checks_can_fail():
    assert misquoted("`no such line` in `attnviz/errors.py`") == ["no such line"]
    assert missing("`attnviz/nothing.py` and `attnviz/errors.py`") == ["attnviz/nothing.py"]
