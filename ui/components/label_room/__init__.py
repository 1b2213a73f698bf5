"""Fits a map's labels to the actual window."""

from attnviz.figures.theme import THEMES, ThemeName
from ui.components import register

_mount = register("label_room", "chart", "chart_insides")


def label_room(chart: str, *, note: str, theme: ThemeName, picked: str = "") -> None:
    """Hides overlapping labels of the chart with this key, depending on the window; shows ``note`` if any are hidden.

    Args:
        picked: a label that always stays.
    """
    data = {"chart": chart, "note": note, "colour": THEMES[theme].quiet, "picked": picked}
    _mount(key=f"{chart}_labels", data=data)
