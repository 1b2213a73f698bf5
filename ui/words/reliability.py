"""What can be read off a map of queries and keys, by its reliability figures and their permutation p values."""

from dataclasses import dataclass
from typing import Literal

from attnviz.maps.chance import LEVEL
from attnviz.records import Chance, Reliability

FAIR = -0.7
"""A map is fair if its mean correlation of score and distance is at most this. Of two keys of a query, the nearer then has
the higher score three times out of four: for a rank correlation r that share is 1/2 + asin(2 sin(pi r / 6)) / pi, Kendall
1948, "Rank Correlation Methods", chapters 9 and 10, for normal numbers. For any numbers without ties it is at least
(1 - r) / 3 = 57%, Daniels 1950, "Rank Correlation and Population Models" (Journal of the Royal Statistical Society B
12:171)."""
WEAK = -0.3
"""Above this mean correlation a map follows the scores only weakly: less than a "medium" correlation of Cohen 1988,
"Statistical Power Analysis for the Behavioral Sciences", section 3.2. With many queries even a weak correlation is
significant."""

Order = Literal["unknown", "chance", "weak", "rough", "fair"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What can be read off a map."""

    order: Order
    """How well the order of all keys is kept: ``unknown``, too few keys for any map to be better than chance; ``chance``, not
    distinguishable from permuted key points; otherwise by the size of the correlation."""
    nearest: bool
    """Whether the nearest key has the largest weight more often than with permuted key points."""
    nearest_mostly: bool
    """Whether the nearest key has the largest weight for more than half of the queries."""

    @property
    def tells_nothing(self) -> bool:
        """Whether neither figure can be told from chance."""
        return self.order == "chance" and not self.nearest

    @property
    def is_of_nearest(self) -> bool:
        """Whether the nearest key says more than the order of all keys."""
        return self.nearest and self.order in ("chance", "weak")

    @property
    def only_nearest(self) -> bool:
        """Whether only the nearest keys can be read, not other distances."""
        return self.is_of_nearest and self.nearest_mostly

    @property
    def but_nearest(self) -> bool:
        """Whether distances can be read as a whole although the nearest key is mostly not the strongest."""
        return self.order == "fair" and not self.nearest_mostly


READ: dict[Order, str] = {
    "unknown": "There are too few keys to judge this map: any map of so few may look right by chance.",
    "chance": "Follow the lines of this map: nearer keys do not have higher scores any more than by chance.",
    "weak": "Follow the lines of this map: its distances follow the scores only weakly.",
    "rough": "Trust the lines more than the distances: nearer keys only tend to have higher scores.",
    "fair": "Distances can be read: of two keys that a query sees, the nearer mostly has the higher score.",
}
"""What the order of all keys means for a reader, in one sentence."""
_SHORT: dict[Order, str] = {
    "unknown": "too few keys to judge it",
    "chance": "this map may be misleading: trust the lines, not the distances",
    "weak": "distances here say little; follow the lines",
    "rough": "distances here are rough; follow the lines",
    "fair": "its distances can be read",
}
_LISTED: dict[Order, str] = {
    "unknown": "too few keys to judge",
    "chance": "order may be due to chance",
    "weak": "weak order",
    "rough": "rough order",
    "fair": "fair order",
}


def reading_of(reliability: Reliability, chance: Chance) -> Reading:
    """What can be read off a map.

    A figure is better than chance if its p value is at most `attnviz.maps.chance.LEVEL`. The correlation must also be
    negative: a map with a positive one does not follow the scores, even if all permuted maps are worse.
    """
    if (1 + chance.n_permutations) * LEVEL < 1:
        return Reading(order="unknown", nearest=False, nearest_mostly=False)
    order: Order
    if chance.correlation_p > LEVEL or reliability.order_correlation >= 0:
        order = "chance"
    elif reliability.order_correlation > WEAK:
        order = "weak"
    else:
        order = "fair" if reliability.order_correlation <= FAIR else "rough"
    return Reading(
        order=order, nearest=chance.nearest_p <= LEVEL, nearest_mostly=reliability.nearest_agreement > 0.5
    )


def read(reading: Reading) -> str:
    """What a map's reliability means for a reader: the order of all keys, and the nearest key if that differs."""
    return " ".join(filter(None, [READ[reading.order], of_nearest(reading)]))


def of_nearest(reading: Reading) -> str:
    """What to expect of the nearest key, compared with chance, in one sentence; empty if the map cannot be judged."""
    if reading.order == "unknown":
        return ""
    if not reading.nearest:
        words = "how often the nearest key has the largest weight cannot be told from chance"
    elif reading.nearest_mostly:
        words = "the nearest key has the largest weight for most queries, more often than by chance"
    else:
        words = "the nearest key has the largest weight for no more than half of the queries, still more often than by chance"
    link = "Still, " if reading.is_of_nearest else "But " if reading.but_nearest else ""
    return f"{link}{words if link else words[0].upper() + words[1:]}."


def short(reading: Reading) -> str:
    """A map's reliability in a few words, beside its title."""
    if reading.only_nearest:
        return "read its lines and nearest keys, not other distances"
    return _SHORT[reading.order] + ", but the nearest key is often not the strongest" * reading.but_nearest


def listed(reading: Reading) -> str:
    """The same for a list of maps."""
    return _LISTED[reading.order] + ", nearest key better than chance" * reading.is_of_nearest
