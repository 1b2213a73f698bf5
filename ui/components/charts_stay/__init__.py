"""A chart's picture stays until the next one is drawn; streamlit_fixes/charts_stay.css says why."""

from ui.components import register

_mount = register("charts_stay")


def charts_stay() -> None:
    """Watches the whole page; every page calls it once."""
    _mount(key="charts_stay")
