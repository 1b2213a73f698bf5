"""A page asks for a run as soon as it is connected again, which another process of the server may answer.

Streamlit 1.67 says nothing until the next click. A process that has never heard of this visitor takes that click for the
opening of the page: it draws the view that the address holds, and what was clicked is lost.
"""

from collections.abc import Callable

from ui.components import register

_mount = register("reconnected")


def reconnected(*, on_change: Callable[[], None]) -> None:
    """Watches the connection of the whole page; every page calls it once."""
    _mount(key="reconnected", on_back_change=on_change)
