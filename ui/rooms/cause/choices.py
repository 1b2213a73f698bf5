"""The outcome that experiments measure, and on which texts."""

from dataclasses import dataclass
from typing import Annotated, Literal

from ui.choice.fields import Text, Word

Prompts = Literal["sentence", "set"]
"""What experiments run on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeSettings:
    """The number of a forward pass that experiments measure, and on which texts."""

    outcome: Annotated[
        str,
        Text(
            title="Outcome",
            help="The number that is measured: answer: with a position, counted from 0 or last, a token, and perhaps another whose "
            "logit is subtracted; rank: with position and token; state: or length: with a position; similarity:another sentence; "
            "or class: with a label.",
        ),
    ] = ""
    """As `attnviz.effects.outcome.outcome_from` reads it; empty for the model's own answer, or without a language head for
    the similarity with a sentence that differs by one word."""
    prompts: Annotated[
        Prompts,
        Word(
            names={"sentence": "Sentence above", "set": "Set of prompts"},
            title="Prompts",
            help="Measures the outcome of the sentence above, or the difference of two answers' logits for every pair of a table of "
            "prompts, whose mean and standard deviation are shown: the same table in Heads off, Lens and Patching.",
        ),
    ] = "sentence"
