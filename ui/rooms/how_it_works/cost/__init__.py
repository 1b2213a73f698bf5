"""What does attention cost? Cells, bytes and multiplications for any number of tokens, counted and measured."""

from ui.part import Part

PART = Part(
    name="Cost",
    address="cost",
    question="What does attention cost as a text grows?",
    asks=("sentence",),
    sheets=(),
)
