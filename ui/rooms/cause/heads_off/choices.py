"""How heads are switched off."""

from dataclasses import dataclass
from typing import Annotated

from attnviz.effects.ablation import Ablation
from ui.choice.fields import Text, Word
from ui.choice.selection import choices


@choices
@dataclass(frozen=True, slots=True, kw_only=True)
class EffectsSettings:
    """How heads are switched off."""

    ablation: Annotated[
        Ablation,
        Word(
            names={"zero": "Zeros", "mean": "Mean"},
            title="Replace head output with",
            help="Replaces a head's output with zeros, or with its mean output at the same position of the reference sentences.",
        ),
    ] = "zero"
    references: Annotated[
        str,
        Text(
            title="Reference sentences, one per line",
            help="Takes the mean output of each head, position by position, over these sentences; over the bundled ones if empty.",
        ),
    ] = ""
    """Empty for the bundled sentences."""
