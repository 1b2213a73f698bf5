"""What do the words mean? The field's terms, each with its number for the reader's own sentence."""

from ui.part import Part

PART = Part(
    name="Glossary",
    address="glossary",
    question="What do the words mean?",
    asks=(),
    sheets=(),
)
