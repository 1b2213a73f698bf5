"""For teachers: the lessons, with what to say at each step, and how to write one."""

from ui.part import Part

PART = Part(
    name="For teachers",
    address="teach",
    question="Which lessons are there, and what is there to say?",
    asks=(),
    shows_text=False,
    sheets=(),
)
