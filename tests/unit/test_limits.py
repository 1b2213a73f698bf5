"""What an operator may set: read at the start, refused in one sentence, listed in README."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ui.limits import LIMITS

ROOT = Path(__file__).parents[2]


def test_readme_has_them_all_as_they_are():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(ATTNVIZ_\w+)` \| ([\w.]+) \| (.+) \|$", text, re.MULTILINE)
    assert rows == [(one.variable, one.usual, one.what) for one in LIMITS]


@pytest.mark.parametrize(
    ("variable", "written", "said"),
    [
        ("ATTNVIZ_RUNS", "two", "it takes a whole number from 1"),
        ("ATTNVIZ_RUNS", "0", "it takes a whole number from 1"),
        ("ATTNVIZ_TOKENS", "7", "it takes a whole number from 8"),
        ("ATTNVIZ_CACHE_MB", "-5", "it takes a whole number from 1"),
        ("ATTNVIZ_DOWNLOADS", "maybe", "it takes local, yes, no"),
        ("ATTNVIZ_WARM", "", "it takes yes, no"),
    ],
)
def test_what_is_not_understood_ends_the_start_with_one_sentence(variable, written, said):
    done = subprocess.run(
        [sys.executable, "-c", "import ui.limits"],
        cwd=ROOT,
        env=os.environ | {variable: written},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr == f"{variable} is “{written}”; {said}. Change it and start attnviz again.\n"


def test_what_is_set_is_taken():
    code = "from ui import limits; print(limits.RUNS, limits.DOWNLOADS)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"ATTNVIZ_RUNS": "5", "ATTNVIZ_DOWNLOADS": "no"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "5 no\n"
