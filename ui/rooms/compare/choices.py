"""The other side of a comparison."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from ui.choice.fields import Number, Positions, Text

FEWEST_ZOOMED = 12
"""Entries a side of the smallest part of a comparison that is zoomed to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartnerB:
    """B of a comparison, in what it differs from what is selected; and the part of both that is zoomed to."""

    PREFIX: ClassVar = "other_"

    model: Annotated[
        str,
        Text(
            title="Model of B",
            help="Compares the selected model with this one; tokens are matched by their text.",
        ),
    ] = ""
    """Empty for the same."""
    text: Annotated[
        str,
        Text(title="Sentence B", help="Compares the selected sentence with this one; empty for the same."),
    ] = ""
    """Empty for the same, second sentence included."""
    second: Annotated[
        str,
        Text(
            title="Second sentence of B (optional)",
            help="Read together with sentence B as a pair.",
        ),
    ] = ""
    """Empty for none where B has a sentence of its own."""
    masked: Annotated[
        tuple[int, ...] | None,
        Positions(title="Masked in B", help="In B these tokens are replaced by the mask token."),
    ] = None
    """Positions of B's tokens that the mask token replaces; None for the same where B reads the same."""
    layer: Annotated[
        int | None, Number(title="Layer of B", help="Compares the selected layer with this one.")
    ] = None
    head: Annotated[
        int | None, Number(title="Head of B", help="Compares the selected head with this one.")
    ] = None
    zoom: Annotated[
        int | None,
        Number(
            FEWEST_ZOOMED, help="Shows this many queries and keys around the selected pair; all if empty."
        ),
    ] = None
