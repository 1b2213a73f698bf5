"""Python that does what “Other maps” shows."""

from collections.abc import Mapping

from ui.rooms.explore.other_maps.choices import MapSettings
from ui.shell.export.recipe import call, named, trace_lines, unless
from ui.shell.view import View


def map_lines(view: View, picked: tuple[int, int], settings: Mapping[str, object]) -> str:
    """Python that draws the map of the selected head with these settings of `attnviz.project`.

    The map keeps its own orientation; it is not aligned with another head's.
    """
    selection = view.selection
    place = call(*selection.place, kind=selection.kind)
    lines = ["import attnviz", *trace_lines(view)]
    lines.append(f"projection = attnviz.project(trace, {place}, {named(settings)})")
    lines.append(f"weights = trace.weights({place})")
    drawn = call(
        side=unless("query", selection.lines_of), tint=unless("role", selection.of(MapSettings).tint)
    )
    drawn = f", {drawn}" if drawn and selection.of(MapSettings).tint != "norm" else ""
    lines.append(f"figure = attnviz.figures.draw_projection(projection, weights, picked={picked}{drawn})")
    return "\n".join([*lines, "figure.show()", ""])
