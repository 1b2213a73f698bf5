"""What heads are called: a label for each number that is large.

One concept: the thresholds of labels, each with its source.
"""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool, Float

NEAR = 0.5
"""A head attends to the token before, the next or itself when more than this share of its weight lies there;
the >50% of Clark et al. 2019 (arXiv:1906.04341), section 3.1."""
DELIMITER = 0.6
"""The same for [CLS], [SEP] and punctuation; a threshold of the code that drew figure 6 of Clark et al. 2019, which their
text does not state: General_Analysis.ipynb of github.com/clarkkev/attention-analysis, commit 4e3f959."""
BROAD = 0.8
"""A head attends broadly when its entropy is more than this share of the largest there could be, ln n.

The same code takes 3.8 nats, on texts of at most 128 tokens: there it is .78 of ln n, while under 45 tokens ln n itself
is less. Of the embedded model's 72 heads .8 keeps 8 to 20 on texts of 6 to 202 tokens, and the same eight of layer 0 or
so on each."""

LABELS: Mapping[str, str] = {
    "previous": "previous",
    "next": "next",
    "self": "self",
    "cls": "[CLS]",
    "sep": "[SEP]",
    "punctuation": "punctuation",
    "entropy": "broad",
}
"""What a head is called whose number of this name is large."""


def labels(
    found: Mapping[str, Float[np.ndarray, "layer head"]],
    *,
    near: float = NEAR,
    delimiter: float = DELIMITER,
    broad: float = BROAD,
) -> dict[str, Bool[np.ndarray, "layer head"]]:
    """For each label of `LABELS` which heads bear it; a head may bear several, or none.

    Args:
        found: what `statistics` found; a label whose number is not there is left out.
        near: least weight, exclusive, for previous, next and self.
        delimiter: the same for [CLS], [SEP] and punctuation.
        broad: least entropy as a share of the largest there could be.

    Source: the kinds of heads in figure 6 of Clark et al. 2019 (arXiv:1906.04341), without "self", which is not among
    them. The code of that figure (see `DELIMITER`) calls a head broad from an entropy of 3.8 nats on, which a text of
    fewer than 45 tokens cannot reach (e^3.8 = 44.7); so it is measured by its share of ln n here.
    """
    limits = dict.fromkeys(("previous", "next", "self"), near)
    limits |= dict.fromkeys(("cls", "sep", "punctuation"), delimiter) | {"entropy": broad}
    return {label: found[name] > limits[name] for name, label in LABELS.items() if name in found}
