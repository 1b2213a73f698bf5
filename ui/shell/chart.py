"""A chart on a page: drawn by attnviz's own theme, without Plotly's buttons, and told in words."""

from collections.abc import Callable
from typing import Any

# Plotly 7.1 asks whether pandas was imported and takes it as it is; while the page of another visitor is importing it, for a
# table, that is half of it, and the figure ends in an AttributeError.
import pandas  # type: ignore[import-untyped]  # noqa: F401
from plotly.graph_objects import Figure

from ui.components.plotly_figure import plotly_figure
from ui.components.point_clicks import point_clicks


def chart(
    figure: Figure,
    *,
    key: str,
    alt: str,
    on_pick: Callable[[Any], None] | None = None,
    name: str = "",
    whole_rows: bool = False,
) -> None:
    """Draws a figure.

    Args:
        key: of the chart, by which pictures are saved and clicks are heard.
        alt: what it shows, for those who do not see it.
        on_pick: called with the custom data of a point that is clicked.
        name: what the chart is called for those who walk through its points by key.
        whole_rows: whether a click anywhere in the row of a bar, at its label too, is one on the bar.
    """
    plotly_figure(figure, key=key, alt=alt)
    if on_pick is not None:
        point_clicks(key, on_pick, name=name, whole_rows=whole_rows)
