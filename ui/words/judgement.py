"""Whether a map of queries and keys may be read, by the correlation of its distances with the scores."""

from typing import Literal

import numpy as np

from attnviz.records import Faithfulness

FAIR = -0.7
"""The mean correlation of score and distance from which on a map is fair. Of two keys of a query the nearer then has
the higher score three times out of four: for a correlation r of ranks that share is 1/2 + asin(2 sin(pi r / 6)) / pi,
Kendall 1948, "Rank Correlation Methods", chapters 9 and 10, for normal numbers."""

Judgement = Literal["unknown", "misleads", "rough", "fair"]

READ: dict[Judgement, str] = {
    "unknown": "No query sees keys enough to judge this map.",
    "misleads": "Read the lines of this map, not its distances: those match the scores no better than chance.",
    "rough": "Trust the lines more than the distances: a near key may be a strong one or a weak one.",
    "fair": "Distances can be read: of two keys that a query sees, the nearer is mostly the stronger.",
}
"""What a judgement means for a reader, in one sentence."""
SHORT: dict[Judgement, str] = {
    "unknown": "too few keys to judge it",
    "misleads": "its distances mislead; read its lines",
    "rough": "its distances are rough; read its lines",
    "fair": "its distances can be read",
}
"""The same in a few words, beside a map's title."""


def judge(found: Faithfulness, chance: float) -> Judgement:
    """What a map is good for.

    Args:
        chance: what at most one shuffled map in twenty falls below, `attnviz.maps.faithfulness.chance_correlation`.
    """
    if np.isnan(found.order_correlation) or chance <= -1:
        return "unknown"
    if found.order_correlation >= chance:
        return "misleads"
    return "fair" if found.order_correlation <= FAIR else "rough"
