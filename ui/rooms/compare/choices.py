"""The other side of a comparison."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from ui.choice.exchanged import other_sentence
from ui.choice.fields import Number, Positions, Text
from ui.choice.selection import choices

FEWEST_ZOOMED = 12
"""Entries per side of the smallest part that can be zoomed to."""


@choices
@dataclass(frozen=True, slots=True, kw_only=True)
class PartnerB:
    """What differs in B of a comparison from the selection, and the zoomed part of both."""

    PREFIX: ClassVar = "other_"

    model: Annotated[
        str,
        Text(
            title="Model of B",
            help="Compares the selected model with this one; tokens are matched by their text.",
        ),
    ] = ""
    """Empty for A's model."""
    text: Annotated[
        str,
        Text(title="Sentence B", help="Compares the selected sentence with this one; empty for the same."),
    ] = ""
    """Empty for A's, second sentence included."""
    second: Annotated[
        str,
        Text(
            title="Second sentence of B (optional)",
            help="Read together with sentence B as a pair.",
        ),
    ] = ""
    """Empty for none if B has its own sentence."""
    masked: Annotated[
        tuple[int, ...] | None,
        Positions(title="Masked in B", help="In B these tokens are replaced by the mask token."),
    ] = None
    """Positions of B's tokens replaced by the mask token; None for A's if B reads the same text."""
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

    def renewed(self, before: str, after: str) -> dict[str, str]:
        """Sentence B for another sentence, where it was made from the previous one."""
        return {"other_text": other_sentence(after)} if self.text == other_sentence(before) else {}
