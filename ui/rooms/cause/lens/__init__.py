"""What would the model predict if it stopped after each layer? The logit lens, and what each head adds to the answer."""

from ui.part import Part

PART = Part(
    name="Lens",
    address="lens",
    question="What would the model predict if it stopped after each layer?",
    predicts="tokens",
    sheets=(),
)
