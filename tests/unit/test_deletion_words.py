"""Which methods order the tokens better than chance, in words."""

import pytest

from ui.rooms.cause.inputs.deletion import conclusion, correction
from ui.rooms.cause.inputs.facts import BestOrders


def orders(**changes) -> BestOrders:
    """Two of seven methods are better than 199 random orders."""
    given = {
        "best": ("token_replaced",),
        "better": ("token_replaced", "integrated_gradients"),
        "n_method": 7,
        "n_orders": 199,
        "n_as_good": 0,
    }
    return BestOrders(**given | changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {},
            "By comprehensiveness, “Token replaced” orders the tokens of this sentence best; 2 of 7 methods are better than chance",
        ),
        (
            {"best": ("token_replaced", "keys_masked"), "better": ("keys_masked",)},
            "By comprehensiveness, “Token replaced” and “Keys masked” order the tokens of this sentence best; 1 of 7 methods is better "
            "than chance",
        ),
        (
            {"better": (), "n_as_good": 12},
            "By comprehensiveness, no method is better than chance for this sentence: 12 of 199 random orders are as good as “Token "
            "replaced”",
        ),
        (
            {"best": (), "better": (), "n_as_good": 199},
            "The methods cannot be compared: the outcomes are not numbers",
        ),
    ],
    ids=str,
)
def test_the_verdict(changes, words):
    assert conclusion(orders(**changes)) == words


def test_what_better_than_chance_means():
    assert correction(orders(n_method=6)) == (
        "Better than chance: so few of the 199 random orders are as good that, if all 6 methods ordered the tokens at random, any of "
        "them would be called better with a probability of at most 5% (Holm 1979, Scand. J. Statist. 6:65)."
    )
