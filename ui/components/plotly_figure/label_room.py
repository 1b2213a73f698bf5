"""Fits a map's labels to the actual window."""

from attnviz.figures.theme import THEMES, ThemeName
from ui.components.plotly_figure import Listener


def label_room(*, note: str, theme: ThemeName, picked: str = "") -> Listener:
    """Hides overlapping labels of the chart, depending on the window; shows ``note`` if any are hidden.

    Args:
        picked: a label that always stays.
    """
    return Listener(name="label_room", data={"note": note, "colour": THEMES[theme].quiet, "picked": picked})
