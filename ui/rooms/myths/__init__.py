"""What is often said of attention, and what this model says to it for this sentence."""

from ui.part import Part

PART = Part(
    name="Myths",
    address="claims",
    question="Which common claims about attention hold for this sentence?",
    sheets=(),
)
