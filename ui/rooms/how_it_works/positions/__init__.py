"""How does the model know the order of the words? Its position vectors, the paper's, and the words shuffled."""

from ui.part import Part

PART = Part(
    name="Positions",
    address="positions",
    question="How does the model know the order of the words?",
    asks=("sentence",),
    sheets=(),
)
