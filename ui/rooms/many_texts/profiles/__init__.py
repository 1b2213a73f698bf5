"""What does each head do over many texts? All heads by their numbers, and one of them with examples."""

from ui.part import Part

PART = Part(
    name="Profiles",
    address="profiles",
    question="What does each head do over many texts?",
    sheets=(),
)
