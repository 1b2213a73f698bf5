"""Which links lead to what is shown, for screen readers and the style: Streamlit marks none of them.

Version: 1.67.0; its own mark is a colour, on every link to the same script.
"""

from ui.components import register
from ui.components.drawn import Runs
from ui.session import of_session

_mount = register("current_links")


def current_links(*, part: int, room: int | None) -> None:
    """Marks these links of the row of parts and of the menu as the current ones; every page calls it once.

    Args:
        part: place of the link in the row.
        room: place of the link in the menu; None where none of them is current.
    """
    run = of_session(Runs).n  # links may be drawn anew in any run
    _mount(key="current_links", data={"row": part, "menu": -1 if room is None else room, "run": run})
