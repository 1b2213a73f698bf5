"""A tooltip never lies over what its button has just changed; streamlit_fixes/tooltips.css says why.

A list whose value has no room tells it in one.
"""

from ui.components import register

_mount = register("tooltips")


def tooltips() -> None:
    """Listens on the whole page; every page calls it once."""
    _mount(key="tooltips")
