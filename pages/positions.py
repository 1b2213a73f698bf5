"""How does the model know the order of the words? Its position vectors, the paper's, and the words shuffled."""

from ui.rooms.how_it_works.positions.shuffled import shuffled
from ui.rooms.how_it_works.positions.vectors import vectors
from ui.shell import errors, verdict
from ui.shell.export.take import take
from ui.shell.frame import frame

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
