"""What the scale does to a row, in words."""

from types import SimpleNamespace

import numpy as np
import pytest

from ui.sections.history.steps import scale_said


@pytest.mark.parametrize(
    ("scaled", "dot", "said"),
    [
        (
            [0.197, 0.8],
            [0.03, 0.97],
            "Without the scale the attention concentrates on fewer keys: its largest weight goes from 80.0% to 97.0%.",
        ),
        (
            [0.03, 0.97],
            [0.2, 0.8],
            "Without the scale the attention spreads over more keys: its largest weight goes from 97.0% to 80.0%.",
        ),
        (
            [0.2, 0.8],
            [0.201, 0.799],
            "Without the scale this row hardly changes: its largest weight goes from 80.0% to 79.9%.",
        ),
    ],
)
def test_the_largest_weight_with_and_without(scaled, dot, said):
    steps = {"scaled": scaled, "dot": dot}
    assert (
        scale_said({name: SimpleNamespace(weights=np.array(row)) for name, row in steps.items()})  # type: ignore[misc]
        == said
    )
