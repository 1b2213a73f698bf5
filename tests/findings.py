"""How a check of many files or names fails: once, with a line for each finding."""

from collections.abc import Iterable

import pytest


def assert_none(findings: Iterable[str]) -> None:
    """Fails with all findings, one on a line; a comparison with an empty list would show the first one alone."""
    if lines := list(findings):
        pytest.fail("\n".join(lines), pytrace=False)
