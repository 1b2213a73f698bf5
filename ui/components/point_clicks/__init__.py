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
        name: what the chart is called for those who walk through its points by key: arrows left and right to the
            next point, up and down to those of another kind, Enter to click. A line below the chart then says which
            point it is. Empty where points cannot be walked through.
        whole_rows: whether a click anywhere in the row of a bar is one on the bar.
    """
    key = f"{chart}_clicks"
    _mount(
        key=key,
        data={"chart": chart, "name": name, "wholeRows": whole_rows},
        on_click_change=lambda: on_click(sent(key, "click")),
    )
