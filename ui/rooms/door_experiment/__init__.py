"""Why does one token attend to another? The experiment with the door, step by step, and the reader's own."""

from ui.part import Part

PART = Part(
    name="Door experiment",
    address="door_experiment",
    question="Why does one token attend to another?",
    asks=("sentence", "head", "rows"),
    terms=("Query", "Key", "Weight", "Special token", "Infilling"),
    sheets=(),
)
