"""The settings of the mask."""

from dataclasses import dataclass
from typing import Annotated, Literal

from attnviz.effects.masks import MaskName
from ui.choice.fields import Cell, Cells, Number, Positions, Word
from ui.choice.selection import choices

AppliedIn = Literal["this head", "this layer", "all layers"]
"""Where a mask is applied inside the forward pass."""


@choices
@dataclass(frozen=True, slots=True, kw_only=True)
class MaskSettings:
    """The attention mask that is compared with the model's own, and streaming attention under it."""

    mask: Annotated[
        MaskName,
        Word(
            names={
                "none": "None",
                "causal": "Causal",
                "window": "Sliding window",
                "sentences": "One sentence",
            },
            title="Attention mask",
            help="Sets which keys a query may see in the right matrix.",
        ),
    ] = "causal"
    applied_in: Annotated[
        AppliedIn,
        Word(
            title="Applied in",
            help="Applies the attention mask in this part of the model's forward pass, to show what it does to the output.",
        ),
    ] = "all layers"
    reach: Annotated[
        int,
        Number(
            0,
            512,
            title="Tokens to each side",
            help="Sets how far a token sees in a sliding window.",
        ),
    ] = 2
    hidden_keys: Annotated[
        tuple[int, ...],
        Positions(
            title="Masked keys", help="Masks these columns of the matrix, whatever the attention mask."
        ),
    ] = ()
    painted: Annotated[
        tuple[Cell, ...],
        Cells(help="Allows these cells where the attention mask forbids them, and the reverse."),
    ] = ()
    tile: Annotated[int, Number(1, 512, title="Keys in a tile", help="How many keys are read at a time.")] = 4
    tiles: Annotated[
        int,
        Number(
            1,
            10**6,
            title="Tiles read",
            help="Steps through the tiles; after the last, the result is the direct one.",
        ),
    ] = 1
    """Tiles that streaming attention has read."""
