"""Which heads are there? Every head's matrix, or a number of each, on one screen, and which heads are alike."""

from ui.part import Part

PART = Part(
    name="Pictures and numbers",
    address="all_heads",
    question="Which heads are there, and which are alike?",
    asks=("sentence", "head", "rows"),
    terms=("Layer", "Head", "Attention matrix", "Entropy", "Norm-based weight"),
    sheets=(),
)
