"""Which tokens in other texts are most like the selected one? Those with the nearest vectors, and what the head attends to there."""

from ui.part import Part

PART = Part(
    name="Find tokens",
    address="find_tokens",
    question="Which tokens in other texts are most like the selected one?",
    sheets=(),
)
