"""Where do queries and keys lie in every head? The maps of all heads as small multiples, drawn as they come."""

from functools import partial

from ui.export.take import take
from ui.page import errors, verdict
from ui.page.frame import frame
from ui.sections.all_maps.drawing import as_csv, screen
from ui.sections.all_maps.layout import job_of
from ui.sections.all_maps.settings import controls, in_words

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
