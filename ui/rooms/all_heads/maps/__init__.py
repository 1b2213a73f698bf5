"""Where do queries and keys lie in every head? The maps of all heads as small multiples, drawn as they come."""

from ui.part import Part

PART = Part(
    name="Maps",
    address="all_maps",
    question="Where do queries and keys lie in every head?",
    sheets=(),
)
