"""A page asks for a run as soon as it has reconnected, perhaps to another process of the server.

Streamlit 1.67 sends nothing until the next click. A process that does not know this visitor takes that click for the
opening of the page: it draws the view in the address, and the click is lost.
"""

from collections.abc import Callable

from ui.components import register

_mount = register("reconnected")


def reconnected(*, on_change: Callable[[], None]) -> None:
    """Watches the connection of the whole page; every page calls it once."""
    _mount(key="reconnected", on_back_change=on_change)
