"""Clicks on the points of a chart, by pointer or key; Streamlit's own selection forgets a point clicked again."""

from collections.abc import Callable
from typing import Any

from ui.components.plotly_figure import Listener


def point_clicks(take: Callable[[Any], None], *, name: str = "", whole_rows: bool = False) -> Listener:
    """Calls ``take`` with the custom data of a clicked point.

    Args:
        name: of the chart, for keyboard users: left and right arrows move to the next point, up and down to points
            of another kind, Enter clicks. A line below the chart then describes the point. Empty to disable the
            keyboard.
        whole_rows: whether a click anywhere in a bar's row counts as a click on the bar.
    """
    return Listener(name="point_clicks", data={"name": name, "wholeRows": whole_rows}, take=take)
