"""On which texts experiments measure the outcome."""

from dataclasses import dataclass
from typing import Annotated, Literal

from ui.choice.fields import Word
from ui.choice.selection import choices

Prompts = Literal["sentence", "set"]
"""What experiments run on."""


@choices
@dataclass(frozen=True, slots=True, kw_only=True)
class PromptChoices:
    """On which texts experiments measure the outcome."""

    prompts: Annotated[
        Prompts,
        Word(
            names={"sentence": "Sentence above", "set": "Set of prompts"},
            title="Prompts",
            help="Measures the outcome of the sentence above, or the difference of two answers' logits for every pair of a table of "
            "prompts, whose mean and standard deviation are shown: the same table in Heads off, Lens and Patching.",
        ),
    ] = "sentence"
