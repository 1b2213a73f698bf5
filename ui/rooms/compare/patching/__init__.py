"""Where does the difference between two sentences lie? States of one run carried into the other."""

from ui.part import Part

PART = Part(
    name="Patching",
    address="patching",
    question="Where does the difference between two sentences lie?",
    terms=(
        "Activation patching",
        "Path patching",
        "Attribution patching",
        "Residual stream",
        "Outcome",
        "Head",
    ),
    sheets=(),
)
