"""Room for the labels of a map in the window that it is really seen in."""

from attnviz.figures.theme import THEMES, ThemeName
from ui.components import register

_mount = register("label_room", "chart", "chart_insides")


def label_room(chart: str, *, note: str, theme: ThemeName, picked: str = "") -> None:
    """Hides labels of the chart of this key that lie on others in this window; ``note`` is shown where it hides any.

    Args:
        picked: a label that always stays.
    """
    data = {"chart": chart, "note": note, "colour": THEMES[theme].quiet, "picked": picked}
    _mount(key=f"{chart}_labels", data=data)
