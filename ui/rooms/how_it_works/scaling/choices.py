"""The settings of the page "Scaling"."""

from dataclasses import dataclass
from typing import Annotated

from attnviz.lessons.scaling import LARGEST_D_K, SCALES
from ui.choice.fields import Number
from ui.choice.selection import choices


@choices
@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingSettings:
    """The scale for the selected head's dot products, and the random vectors beside them."""

    scale: Annotated[
        float | None,
        Number(
            SCALES[0],
            SCALES[-1],
            title="Scale",
            help="Multiplies the dot products by this: in the bars of the tokens, the lower histograms, the curves and "
            "the table.",
        ),
    ] = None
    """None for the model's own scale."""
    d_k: Annotated[
        int | None,
        Number(
            1,
            LARGEST_D_K,
            title="Dimensions of the random vectors",
            help="Sets how many numbers a random query or key has: in the left histogram and on the dashed curves.",
        ),
    ] = None
    """None for as many as the head has."""
