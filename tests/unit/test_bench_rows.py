"""The rows of `make bench`: a budget holds up to its number."""

import pytest

from benchmarks.measurement import Measurement


@pytest.mark.parametrize(("value", "holds"), [(1.4, True), (1.5, True), (1.6, False), (float("nan"), False)])
def test_a_budget_holds_up_to_its_number(value: float, holds: bool) -> None:
    assert Measurement(what="a change / the ready-made page's", value=value, budget=1.5).within is holds
