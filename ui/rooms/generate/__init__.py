"""How does a decoder write? The tokens that follow the sentence, one after another, each with what its heads read."""

from ui.part import Part

PART = Part(
    name="Generate",
    address="generation",
    question="What does a decoder read while it writes?",
    predicts="writes",
    terms=("Decoder", "Sampling temperature", "Token", "Layer", "Head", "Weight"),
    sheets=(),
)
