"""How does attention get from the sentence to its output? Every step, with the model's own numbers."""

from ui.part import Part

PART = Part(
    name="Step by step",
    address="step_by_step",
    question="How does a sentence become a matrix, and the matrix an output?",
    sheets=(),
)
