"""What gates a merge and what is tried every night; CONTRIBUTING.md says what runs when."""

from typing import Any

import pytest


def first_gates(*cases: Any) -> list[Any]:
    """Parameters of a test, of which the first alone gates a merge; the others are tried every night."""
    return [cases[0], *(pytest.param(case, marks=pytest.mark.nightly) for case in cases[1:])]
