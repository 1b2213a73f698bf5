"""Which methods order the tokens better than chance, in words."""

from types import SimpleNamespace
from typing import Any

import pytest

from ui.sections.inputs.deletion import verdict


def deletion(limit: float) -> Any:
    """Two methods, whose comprehensiveness is 0.3 and 0.5, beside random orders of which 95% are below the limit."""
    methods = {"gradient_times_input": 0.3, "token_replaced": 0.5}
    curves = [SimpleNamespace(method=name, comprehensiveness=number) for name, number in methods.items()]
    return SimpleNamespace(curves=curves, chance=SimpleNamespace(comprehensiveness=(0.1, limit)))


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (
            0.4,
            "By comprehensiveness, “Token replaced” orders the tokens of this sentence best; 1 of 2 methods do better than 95% "
            "of random orders",
        ),
        (0.6, "By comprehensiveness, no method does better than 95% of random orders for this sentence"),
    ],
)
def test_the_verdict(limit, words):
    assert verdict(deletion(limit)) == words
