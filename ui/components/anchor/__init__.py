"""The heading that a link's end names, brought into view once a page is drawn."""

from ui.components import register

_mount = register("anchor")


def anchor() -> None:
    """Scrolls to the heading; the last thing that a page calls."""
    _mount(key="anchor")
