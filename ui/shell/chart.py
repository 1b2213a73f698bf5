"""A chart on a page: in attnviz's own theme, without Plotly's buttons, with a text alternative."""

from collections.abc import Callable, Sequence
from typing import Any

# Plotly 7.1 checks whether pandas is imported and uses it as it is; while another visitor's page is importing it, for a
# table, the module is incomplete, and the figure ends in an AttributeError.
import pandas  # type: ignore[import-untyped]  # noqa: F401
from plotly.graph_objects import Figure

from ui.choice import state
from ui.components.plotly_figure import Listener, plotly_figure
from ui.components.plotly_figure.point_clicks import point_clicks


def chart(
    figure: Figure,
    *,
    key: str,
    alt: str,
    on_pick: Callable[[Any], None] | None = None,
    name: str = "",
    whole_rows: bool = False,
    listeners: Sequence[Listener] = (),
) -> None:
    """Draws a figure.

    Args:
        key: of the chart; identifies it for saving pictures and for clicks.
        alt: text alternative.
        on_pick: called with the custom data of a point that is clicked.
        name: of the chart, for those who go through its points with the keyboard.
        whole_rows: whether a click anywhere in a bar's row, its label included, counts as a click on the bar.
        listeners: what else listens to it in the browser.
    """
    if on_pick is not None:
        listeners = (point_clicks(on_pick, name=name, whole_rows=whole_rows), *listeners)
    plotly_figure(figure, key=key, alt=alt, listeners=listeners)


def picks(*names: str) -> Callable[[Any], None]:
    """For ``on_pick``: takes the numbers of a clicked point into the selection, under these names of a link.

    Ignores a number without a name, and points that have other data or a place below 0, which is none.
    """

    def take(clicked: Any) -> None:
        places = clicked if isinstance(clicked, list) else [clicked]
        if len(places) == len(names) and all(isinstance(place, int) and place >= 0 for place in places):
            state.change(**{name: place for name, place in zip(names, places, strict=True) if name})

    return take
