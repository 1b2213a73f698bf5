"""Scrolls to the heading that the link's fragment names, once a page is drawn."""

from ui.components import register

_mount = register("anchor")


def anchor() -> None:
    """Scrolls to the heading; pages call this last."""
    _mount(key="anchor")
