"""What came before scaled dot products? Five ways to mix values for a query, on the reader's own sentence."""

from ui.part import Part

PART = Part(
    name="History",
    address="history",
    question="What came before scaled dot-product attention?",
    sheets=(),
)
