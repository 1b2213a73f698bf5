"""What an operator may set: read at the start, refused in one sentence, listed in docs/limits.md."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from attnviz.bundle.bounds import LARGEST_BUNDLE
from ui import limits
from ui.limits import LIMITS

ROOT = Path(__file__).parents[2]


def test_the_page_of_limits_has_them_all_as_they_are():
    text = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(ATTNVIZ_\w+)` \| ([\w.]+) \| (.+) \|$", text, re.MULTILINE)
    assert rows == [(limit.variable, limit.usual, limit.what) for limit in LIMITS]


@pytest.mark.parametrize(
    ("variable", "written", "expected"),
    [
        ("ATTNVIZ_RUNS", "two", "it takes a whole number from 1"),
        ("ATTNVIZ_RUNS", "0", "it takes a whole number from 1"),
        ("ATTNVIZ_TOKENS", "7", "it takes a whole number from 8"),
        ("ATTNVIZ_CACHE_MB", "-5", "it takes a whole number from 1"),
        ("ATTNVIZ_DOWNLOADS", "maybe", "it takes local, yes, no"),
        ("ATTNVIZ_WARM", "", "it takes yes, no"),
        ("ATTNVIZ_UPLOAD_MB", "161", "it takes a whole number from 1 to 160"),
        ("ATTNVIZ_THREADS", "-1", "it takes a whole number from 1"),
        ("ATTNVIZ_THREADS", "9" * 5000, "it takes a whole number from 1"),
        ("ATTNVIZ_PEOPLE", "٣", "it takes a whole number from 1"),
    ],
)
def test_what_is_not_understood_ends_the_start_with_one_sentence(variable, written, expected):
    done = subprocess.run(
        [sys.executable, "-c", "import ui.limits"],
        cwd=ROOT,
        env=os.environ | {variable: written},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr == f"{variable} is “{written}”; {expected}. Change it and start attnviz again.\n"


def run(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_what_is_set_is_taken():
    numbers = [limit.variable for limit in LIMITS if limit.usual.isdigit()]
    given = {variable: str(11 + place) for place, variable in enumerate(numbers)}
    names = [variable.removeprefix("ATTNVIZ_") for variable in numbers]
    code = f"from ui import limits; print(*(getattr(limits, name) for name in {names}), limits.DOWNLOADS, limits.WARM)"
    output = run(code, **given, ATTNVIZ_DOWNLOADS="no", ATTNVIZ_WARM="no")
    assert output.split() == [*given.values(), "no", "no"]


@pytest.mark.nightly
def test_uploads_and_threads_reach_the_gate_and_the_libraries():
    code = """if True:
        import app  # as `streamlit run` imports it, before numpy and torch
        import numpy, torch
        from threadpoolctl import threadpool_info
        from ui.runtime.gate import MOST_BYTES

        n_threads = {library["num_threads"] for library in threadpool_info()} | {torch.get_num_threads()}
        from ui.runtime.worker_settings import _THREADS  # which sets them for a process

        print(MOST_BYTES, n_threads, _THREADS["OMP_NUM_THREADS"])
    """
    assert (
        run(code, ATTNVIZ_UPLOAD_MB="20", ATTNVIZ_THREADS="1", OMP_NUM_THREADS="2")
        == f"{20 * 2**20} {{1}} 1\n"
    )


def test_the_largest_upload_is_the_largest_bundle():
    assert LARGEST_BUNDLE == limits.UPLOAD_MB * 10**6
