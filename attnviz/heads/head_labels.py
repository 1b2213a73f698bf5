"""The known patterns that heads match: a label for each statistic above its threshold."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from attnviz.arguments import typed

NEAR = 0.5
"""A head attends to the previous token, the next token or the token itself if more than this share of its weight is there:
the >50% of Clark et al. 2019 (arXiv:1906.04341), section 3.1."""
DELIMITER = 0.6
"""The same for [CLS], [SEP] and punctuation; from the code that drew figure 6 of Clark et al. 2019, not stated in their
text: General_Analysis.ipynb of github.com/clarkkev/attention-analysis, commit 4e3f959."""
BROAD = 0.8
"""A head attends broadly when its entropy is more than this share of the maximum, ln n.

The same code uses 3.8 nats, on texts of at most 128 tokens: that is 0.78 of ln 128, and more than ln n for n under 45.
With 0.8, 8 to 20 of the bundled model's 72 heads are broad on texts of 6 to 202 tokens, among them about the same eight
of layer 0 each time."""

LABELS: Mapping[str, str] = {
    "previous": "previous",
    "next": "next",
    "self": "self",
    "cls": "[CLS]",
    "sep": "[SEP]",
    "punctuation": "punctuation",
    "entropy": "broad",
}
"""By name of a statistic, the label of a head for which it is above the threshold."""


@typed
def labels(
    numbers: Mapping[str, Float[np.ndarray, "layer head"]],
    *,
    near: float = NEAR,
    delimiter: float = DELIMITER,
    broad: float = BROAD,
) -> dict[str, Bool[np.ndarray, "layer head"]]:
    """For each label of `LABELS`, which heads match its pattern; a head may match several patterns, or none.

    False where the statistic is NaN, for a head without that number or a place without a head.

    Args:
        numbers: result of `statistics`; a label whose statistic is missing is left out.
        near: weight that previous, next and self must exceed.
        delimiter: the same for [CLS], [SEP] and punctuation.
        broad: entropy that must be exceeded, as a share of the maximum.

    Source: the kinds of heads in figure 6 of Clark et al. 2019 (arXiv:1906.04341), which has no "self". The code of that
    figure (see `DELIMITER`) calls a head broad from an entropy of 3.8 nats on, which a text of fewer than 45 tokens cannot
    reach (e^3.8 = 44.7); here entropy is therefore measured as a share of ln n.
    """
    limits = dict.fromkeys(("previous", "next", "self"), near)
    limits |= dict.fromkeys(("cls", "sep", "punctuation"), delimiter) | {"entropy": broad}
    return {label: numbers[name] > limits[name] for name, label in LABELS.items() if name in numbers}


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """How many heads match a known pattern, and how many match each."""

    n_matched: int
    """Heads that match one pattern or more."""
    counts: tuple[tuple[str, int], ...]
    """Label and number of heads of each pattern that any head matches, most heads first; ties in the order of `LABELS`."""


def matched(borne: Mapping[str, Bool[np.ndarray, "layer head"]]) -> Matched:
    """Counts of what `labels` found."""
    counts = [(label, int(bears.sum())) for label, bears in borne.items()]
    return Matched(
        n_matched=int(np.any(list(borne.values()), axis=0).sum()),
        counts=tuple(sorted(((label, n) for label, n in counts if n), key=lambda match: -match[1])),
    )
