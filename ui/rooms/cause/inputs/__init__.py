"""Which tokens does the outcome depend on? Seven methods on one sheet, and which of them is right for this sentence."""

from ui.part import Part

PART = Part(
    name="Inputs",
    address="inputs",
    question="Which tokens does the outcome depend on?",
    asks=("sentence",),
    terms=(
        "Attribution",
        "Integrated gradients",
        "Attention flow",
        "Rollout",
        "Norm-based weight",
        "Outcome",
    ),
    sheets=(),
)
