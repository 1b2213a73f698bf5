"""Redraws a page when the browser or the settings change between light and dark.

Streamlit 1.67 changes its own colours at once, but runs no script, so figures and components would keep the previous
theme's colours until the next click, with letters as dark as their background.
"""

from collections.abc import Callable

from attnviz.figures.theme import ThemeName
from ui.components import register

_mount = register("theme_change")


def theme_change(theme: ThemeName, *, on_change: Callable[[], None]) -> None:
    """Watches the theme of the page, which is drawn in ``theme``; every page calls it once."""
    _mount(key="theme_change", data={"theme": theme}, on_changed_change=on_change)
