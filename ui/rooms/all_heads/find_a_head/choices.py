"""The settings of "Find a head"."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from ui.choice.fields import Switch
from ui.choice.selection import choices


@choices
@dataclass(frozen=True, slots=True, kw_only=True)
class PairList:
    """Which of a head's strongest pairs are listed."""

    PREFIX: ClassVar = "pairs_"

    special: Annotated[
        bool,
        Switch(title="Special tokens", help="Also lists pairs with special tokens such as [CLS] and [SEP]."),
    ] = False
    itself: Annotated[
        bool, Switch(title="Self-attention", help="Also lists what a token gives to itself.")
    ] = False
