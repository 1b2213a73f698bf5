"""Which cases gate a merge."""

from pathlib import Path

from tests.findings import assert_none
from tests.tiers import EVERY_THIRD

ROOT = Path(__file__).parents[2]


def test_every_name_is_that_of_a_test():
    """One that is renamed would gate with all its cases, and nobody would notice."""
    assert_none(
        name
        for name in EVERY_THIRD
        for file, *_, function in [name.split("::")]
        if not (ROOT / file).is_file() or f"def {function}(" not in (ROOT / file).read_text(encoding="utf-8")
    )
