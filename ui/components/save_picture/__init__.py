"""Buttons that save the pictures on the page, and that copy its link and its Python."""

from collections.abc import Mapping

from attnviz.figures.theme import THEMES, ThemeName
from ui.components import register

_mount = register("save_picture")


def save_picture(figures: Mapping[str, str], *, stem: str, python: str, link: bool, theme: ThemeName) -> None:
    """Draws the buttons; everything happens in the browser.

    Args:
        figures: name of each picture on the page, by the key of its element.
        stem: what the names of saved files begin with.
        link: whether the address leads back to this screen.
    """
    palette = THEMES[theme]
    _mount(
        key="save_picture",
        data={
            "figures": [{"key": key, "name": name} for key, name in figures.items()],
            "stem": stem,
            "python": python,
            "link": link,
            "colours": {
                "background": palette.background,
                "text": palette.text,
                "quiet": palette.quiet,
                "edge": palette.edge,
                "picked": palette.picked,
            },
        },
    )
