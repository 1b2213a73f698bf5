"""The settings for the lines of the token flow."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Literal, Self

from attnviz.records import AllHeads, Head
from ui.choice.fields import Heads, Number, Word
from ui.choice.selection import choices

Threshold = Literal["share", "weight"]
"""How the lines of the flow are selected."""


@choices
@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSettings:
    """The lines from queries to keys: their heads, and their threshold."""

    heads: Annotated[
        tuple[Head | AllHeads, ...],
        Heads(
            title="Beside the selected head",
            help="Draws the lines of these heads too, each in its own colour.",
        ),
    ] = ()
    """Heads, or all heads of a layer together, besides the selected one."""
    threshold: Annotated[
        Threshold,
        Word(
            names={"share": "Share of each row", "weight": "Weight"},
            title="Threshold",
            help="Leaves out weak lines by how much of their row the stronger ones hold, or by their weight alone.",
        ),
    ] = "share"
    share: Annotated[
        int,
        Number(
            10,
            100,
            step=5,
            title="Share of each row",
            help="Draws the strongest lines of each query until they hold this share of its row.",
        ),
    ] = 70
    """In percent."""
    weakest: Annotated[
        float,
        Number(
            0,
            100,
            title="Weakest line, in percent",
            help="Draws lines of this weight and above; of norm-based weights, in percent of the largest.",
        ),
    ] = 5.0
    """In percent; of the largest weight if rows do not sum to 1."""
    at_once: Annotated[
        int | None,
        Number(
            0,
            2000,
            step=50,
            title="Lines at once",
            help="Draws this many of the strongest lines, beside those of the selected query and key, until you hover over a token or tap it.",
        ),
    ] = None
    """None for all lines of a short text, and no lines of a long one."""

    def fitted(self, is_there: Callable[[Head | AllHeads], bool], model: str) -> tuple[Self, str]:
        """These choices with the heads that a model has, and what was left out."""
        heads = tuple(filter(is_there, self.heads))
        asked = ", ".join(map(str, self.heads))
        remark = f"Heads {asked} were asked for; those that {model} has are shown."
        return replace(self, heads=heads), remark if heads != self.heads else ""
