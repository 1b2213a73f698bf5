"""No tooltip lies over what its button has just changed (streamlit_fixes/tooltips.css); a list tells what it has no room for."""

from ui.components import register

_mount = register("tooltips")


def tooltips() -> None:
    """Listens on the whole page; every page calls it once."""
    _mount(key="tooltips")
