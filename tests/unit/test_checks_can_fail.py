"""The check of the checks: attention that is broken on purpose turns the suite red.

A copy of attnviz and of some of its tests is broken in one place, and both the unit tests and the
parity with the real model have to notice, each by itself.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parents[2]
UNIT, PARITY = "tests/unit/test_attention.py", "tests/parity/test_families.py"
SELECTED = "test_attention or (TestLadder and gpt2)"

# What is broken -> (text in attention.py, what stands there instead, how often it is there)
MUTATIONS = {
    "softmax scale": (
        "torch.matmul(query * scale, key.mT, out=out)",
        "torch.matmul(query, key.mT, out=out)",
        1,
    ),
    "mask dropped": ("scores.masked_fill_(~allowed, -torch.inf)", "pass", 1),
    "weights transposed": (
        "        return torch.softmax(scores, dim=-1, out=out)  # [query, key]\n",
        "        return torch.softmax(scores, dim=-1, out=out).mT\n",
        1,
    ),
}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The parts of the project that these runs need; its parity tests run GPT-2, which has a mask."""
    shutil.copytree(ROOT / "attnviz", tmp_path / "attnviz", ignore=shutil.ignore_patterns("__pycache__"))
    shared = [f"tests/{path.name}" for path in (ROOT / "tests").glob("*.py")]
    for name in ("pyproject.toml", *shared, UNIT, PARITY):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def failures(folder: Path) -> dict[str, int]:
    """Runs a copy's tests; file to the number of its tests that failed."""
    options = ["-q", "--tb=no", "-rfE", "-p", "no:cacheprovider", "-k", SELECTED]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *options, UNIT, PARITY],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode in (0, 1), result.stdout + result.stderr  # others mean that it did not run
    passed = re.search(r"(\d+) passed", result.stdout)
    assert passed and int(passed[1]) > 0, result.stdout
    failed = re.findall(r"^FAILED ([\w/.]+)::", result.stdout, flags=re.MULTILINE)
    assert bool(failed) == (result.returncode == 1), result.stdout  # no error that is not a failed test
    return {name: failed.count(name) for name in (UNIT, PARITY)}


def test_the_copy_as_it_is_passes(copy):
    assert failures(copy) == {UNIT: 0, PARITY: 0}


@pytest.mark.parametrize(("right", "wrong", "count"), MUTATIONS.values(), ids=list(MUTATIONS))
def test_broken_attention_turns_the_suite_red(right, wrong, count, copy):
    path = copy / "attnviz" / "maths" / "attention.py"
    source = path.read_text(encoding="utf-8")
    assert source.count(right) == count, f"attention.py has changed; this test has to follow: {right!r}"
    path.write_text(source.replace(right, wrong), encoding="utf-8")

    failed = failures(copy)

    assert failed[UNIT] > 0
    assert failed[PARITY] > 0
