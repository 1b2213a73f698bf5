"""Buttons that save the pictures on the page, and that copy its link, its Python and its citation."""

from collections.abc import Mapping, Sequence

from attnviz.figures.theme import FONT, SMALL_FONT_SIZE, ThemeName
from ui.components import colours, register

_mount = register("save_picture", "svg", "html", "measure", "renew", "chart", "chart_insides", "picture")


def save_picture(
    figures: Mapping[str, str],
    *,
    captions: Mapping[str, Sequence[str]],
    stem: str,
    python: str,
    citation: str,
    link: bool,
    theme: ThemeName,
) -> None:
    """Draws the buttons; everything happens in the browser.

    Args:
        figures: name of each picture on the page, by the key of its element.
        captions: paragraphs below a saved picture, by the same key; the first is cut after two lines.
        stem: beginning of the names of saved files.
        python: lines that draw the picture.
        citation: the BibTeX entry for this screen.
        link: whether the address leads back to this screen.
    """
    _mount(
        key="save_picture",
        data={
            "figures": [
                {"key": key, "name": name, "caption": list(captions[key])} for key, name in figures.items()
            ],
            "stem": stem,
            "python": python,
            "citation": citation,
            "link": link,
            "font": FONT,
            "fontSize": SMALL_FONT_SIZE,
            "colours": colours(theme, "background", "text", "quiet", "edge", "picked"),
        },
    )
