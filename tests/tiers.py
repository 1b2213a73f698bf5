"""What gates a merge and what is tried every night; CONTRIBUTING.md says what runs when."""

from typing import Any

import pytest


def first_gates(*cases: Any) -> list[Any]:
    """Parameters of a test, a tuple for each case of several; the first alone gates a merge, the others are tried every night."""
    first, *others = (case if isinstance(case, tuple) else (case,) for case in cases)
    return [pytest.param(*first), *(pytest.param(*case, marks=pytest.mark.nightly) for case in others)]
