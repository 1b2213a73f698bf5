"""Marks the links and buttons of the current page for screen readers and the style, which Streamlit does not do.

Version: 1.67.0; Streamlit only colours every link to the same script.
"""

from ui.components import register
from ui.components.drawn import Runs
from ui.session import of_session

_mount = register("current_links")


def current_links(*, part: int, room: int | None) -> None:
    """Marks these links of the row of parts and of the menu as the current ones; every page calls it once.

    Args:
        part: index of the link in the row.
        room: index of the link in the menu; None if no menu entry is current.
    """
    run = of_session(Runs).n  # any run may redraw the links
    _mount(key="current_links", data={"row": part, "menu": -1 if room is None else room, "run": run})
