"""Why are scores divided by the square root of d_k? What any scale does to scores, to a row of weights, and to exp."""

from ui.part import Part

PART = Part(
    name="Scaling",
    address="scaling",
    question="Why are scores divided by the square root of d_k?",
    sheets=(),
)
