"""What does a head do over many sentences? All their queries and keys in one map."""

from ui.part import Part

PART = Part(
    name="Joint map",
    address="many_sentences",
    question="Where do the queries and keys of many sentences lie?",
    asks=("head", "rows"),
    sheets=(),
)
