"""What does attention cost? Cells, bytes and multiplications for any number of tokens, counted and measured."""

from functools import partial

from attnviz.cost.counting import Layer
from ui.rooms.how_it_works.cost.counting import as_csv, counted
from ui.rooms.how_it_works.cost.limits import limit_of
from ui.rooms.how_it_works.cost.measured import measured_cost
from ui.shell import errors, verdict
from ui.shell.export.take import take
from ui.shell.frame import frame

view = frame("Cost")
csv = None
with errors.explained():
    layer = Layer.of(view.trace, view.selection.layer, view.kind, reach=view.selection.masking.reach)
    csv = partial(as_csv, view, layer, limit_of(view))
    counted(view, layer)
    measured_cost(view, layer)
take(
    view,
    {"cost_counted": "Counted", "cost_seconds": "Measured time", "cost_bytes": "Measured memory"},
    csv=csv,
    numbers="Costs" if csv else "Matrix",
)
verdict.show(view)
