"""The settings of generation."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from ui.choice.fields import Branch, Branches, Number
from ui.choice.selection import choices

MOST_WRITTEN = 50
"""Most tokens that a page generates."""


MOST_BRANCHES = 6
"""Most branches of a text, besides the model's own continuation."""


@choices
@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationSettings:
    """What a decoder generates after the sentence, and the step that is shown."""

    PREFIX: ClassVar = "write_"

    tokens: Annotated[
        int,
        Number(1, MOST_WRITTEN, title="Tokens", help="Writes at most this many tokens after the sentence."),
    ] = 20
    temperature: Annotated[
        float,
        Number(
            0,
            2,
            step=0.1,
            title="Temperature",
            help="Draws each token with the random seed; a higher temperature makes the probabilities more even, 0 writes the "
            "most likely token.",
        ),
    ] = 0.0
    step: Annotated[
        int, Number(1, MOST_WRITTEN, title="Step", help="Shows what was read when this token was written.")
    ] = 1
    branches: Annotated[
        tuple[Branch, ...],
        Branches(
            most=MOST_BRANCHES, help="Writes further texts, with these tokens in place of the model's own."
        ),
    ] = ()
    branch: Annotated[
        int, Number(0, MOST_BRANCHES, help="Shows this branch; 0 is the text as the model writes it.")
    ] = 0
    beside: Annotated[
        int | None,
        Number(
            0,
            MOST_BRANCHES,
            title="Compare with",
            help="Compares the attention of the selected head with that in another text.",
        ),
    ] = None
    """Number of the branch to compare with; None for none."""
