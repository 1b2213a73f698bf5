"""Where does attention go? Queries and keys in two columns, joined by lines, for one head or several."""

from ui.part import Part

PART = Part(
    name="Several heads",
    address="token_flow",
    question="Where does the attention of one head, or of several, go?",
    asks=("sentence", "head", "rows"),
    sheets=(),
)
