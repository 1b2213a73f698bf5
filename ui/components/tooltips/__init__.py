"""Tooltips never cover what their button has just changed; streamlit_fixes/tooltips.css says why.

A list whose value does not fit shows it in a tooltip.
"""

from ui.components import register

_mount = register("tooltips")


def tooltips() -> None:
    """Listens on the whole page; every page calls it once."""
    _mount(key="tooltips")
