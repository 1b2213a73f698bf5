"""Which head links these tokens? The weight of one pair in every head, and the strongest pairs of one head."""

from ui.part import Part

PART = Part(
    name="Find a head",
    address="find_a_head",
    question="Which head links these two tokens?",
    asks=("sentence", "head", "rows"),
    sheets=(),
)
