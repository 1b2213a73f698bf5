"""How does the model know the order of the words? Its position vectors, the paper's, and the words shuffled."""

from ui.export.take import take
from ui.page import errors, verdict
from ui.page.frame import frame
from ui.sections.positions.shuffled import shuffled
from ui.sections.positions.vectors import vectors

view = frame("Positions")
with errors.explained():
    vectors(view)
    shuffled(view)
take(
    view,
    {
        "learned_table": "The model’s vectors",
        "sines_table": "Sines and cosines",
        "learned_likeness": "The model’s, similarity",
        "sines_likeness": "Sines, similarity",
        "learned_path": "The model’s, path",
        "sines_path": "Sines, path",
        "shift_matrix": "Shift",
        "shuffled_with": "Shuffled",
    },
)
verdict.show(view)
