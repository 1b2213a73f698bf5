"""Which methods order the tokens better than chance, in words."""

from types import SimpleNamespace
from typing import Any

import pytest

from attnviz.effects.attribution_methods import METHODS
from ui.rooms.cause.inputs.removed_tokens import conclusion, correction

NAMES = ("token_replaced", "keys_masked", "integrated_gradients", "norms", "rollout", "flow")


def deletion(areas, better, n_as_good=0) -> Any:
    """The comprehensiveness of some methods beside 199 random orders."""
    return SimpleNamespace(
        curves=[
            SimpleNamespace(
                method=method, title=METHODS[method].title, comprehensiveness=area, n_as_good=n_as_good
            )
            for method, area in zip(NAMES, areas, strict=False)
        ],
        better=NAMES[:better],
        chance=SimpleNamespace(n_orders=199),
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            ([0.5, 0.25, 0.125], 2),
            "By comprehensiveness, “Token replaced” orders the tokens of this sentence best; 2 of 3 methods are better than chance",
        ),
        (
            ([0.5, 0.5, 0.125, 0.125], 1),
            "By comprehensiveness, “Token replaced” and “Keys masked” order the tokens of this sentence best; 1 of 4 methods is better "
            "than chance",
        ),
        (
            ([0.5, 0.25], 0, 12),
            "By comprehensiveness, no method is better than chance for this sentence: 12 of 199 random orders are as good as “Token "
            "replaced”",
        ),
        (([float("nan")] * 2, 0), "The methods cannot be compared: the outcomes are not numbers"),
    ],
    ids=str,
)
def test_the_verdict(given, words):
    assert conclusion(deletion(*given)) == words


def test_what_better_than_chance_means():
    assert correction(199, 6) == (
        "Better than chance: so few of the 199 random orders are as good that, if all 6 methods ordered the tokens at random, any of "
        "them would be called better with a probability of at most 5% (Holm 1979, Scand. J. Statist. 6:65)."
    )
