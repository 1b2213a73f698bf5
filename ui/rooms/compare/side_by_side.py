"""What differs? Two heads, layers, sentences or models on common axes: A is what is selected, B the other."""

from ui.part import Part

PART = Part(
    name="Side by side",
    address="compare",
    question="What changes with another sentence, head, layer or model?",
    asks=("sentence", "head", "rows"),
    sheets=(),
)
