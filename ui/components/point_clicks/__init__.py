"""Clicks on the points of a chart, by pointer or key; Streamlit's own selection forgets a point clicked again."""

from collections.abc import Callable
from typing import Any

from ui.components import register
from ui.components.sent import sent

_mount = register("point_clicks", "readout", "chart", "chart_insides", "tick_labels", "walk")


def point_clicks(
    chart: str, on_click: Callable[[Any], None], *, name: str = "", whole_rows: bool = False
) -> None:
    """Connects the chart of this key; ``on_click`` is called with the custom data of a clicked point.

    Args:
        name: of the chart, for keyboard users: left and right arrows move to the next point, up and down to points
            of another kind, Enter clicks. A line below the chart then describes the point. Empty to disable the
            keyboard.
        whole_rows: whether a click anywhere in a bar's row counts as a click on the bar.
    """
    key = f"{chart}_clicks"
    _mount(
        key=key,
        data={"chart": chart, "name": name, "wholeRows": whole_rows},
        on_click_change=lambda: on_click(sent(key, "click")),
    )
