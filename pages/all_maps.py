"""Where do queries and keys lie in every head? The maps of all heads as small multiples, drawn as they come."""

from functools import partial

from ui.rooms.all_heads.all_maps.controls import controls, in_words
from ui.rooms.all_heads.all_maps.drawing import as_csv, screen
from ui.rooms.all_heads.all_maps.layout import job_of
from ui.shell import errors, verdict
from ui.shell.export.take import take
from ui.shell.frame import frame

view = frame("Maps")
controls(view)
with errors.explained():
    work = job_of(view)
    screen(view, work)
    take(
        view,
        {"map_grid": "Maps of all heads"},
        csv=partial(as_csv, view, work),
        numbers="Reliability of each map",
        notes={"map_grid": in_words(view)},
    )
verdict.show(view)
