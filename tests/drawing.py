"""How tests of what is said and drawn draw their examples."""

import pytest
from hypothesis import Phase, settings

MARKS = [
    pytest.mark.slow,
    # Where types are checked, beartype draws which items of a tuple it looks at, while records are made here too.
    pytest.mark.filterwarnings("ignore:Do not use the `random` module"),
]


def draw_few(n_example: int = 30) -> None:
    """The tests that are defined from here on draw so many examples, the same ones every time, and make none simpler."""
    settings.register_profile(
        "few",
        deadline=None,
        derandomize=True,
        max_examples=n_example,
        phases=(Phase.explicit, Phase.generate),
    )
    settings.load_profile("few")
