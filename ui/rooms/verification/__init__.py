"""Are these numbers the model's own? Every comparison for the sentence at hand."""

from ui.part import Part

PART = Part(
    name="Verification",
    address="verification",
    question="Are these numbers the model's own?",
    sheets=(),
)
