"""All heads as small pictures beside the stage, layer 0 on top; hovering over one previews it, a click selects it."""

from collections.abc import Callable, Sequence

from attnviz.figures.theme import FONT, SMALL_FONT_SIZE, ThemeName
from ui.components import colours, register
from ui.components.sent import takes_cell

_mount = register("head_rail", "svg", "html", "grid", "renew", "stage")


def head_rail(
    texts: Sequence[Sequence[str]],
    *,
    picked: tuple[int, int] | None,
    clips: bool,
    on_pick: Callable[[int, int], None],
    theme: ThemeName,
) -> None:
    """Draws the heads; ``on_pick`` is called with the layer and head of one that is clicked.

    The pictures show the weights that `ui.components.stage_weights` sends; without these the cells are empty.

    Args:
        picked: None if the stage knows which head is selected; then one message serves all selections, and is sent once.
        texts: each head's text in the line below, layer by layer; layers may differ in their number of heads.
        clips: whether special tokens are ignored when a picture's colour scale is set.
    """
    _mount(
        key="head_rail",
        data={
            "grid": "head_rail",
            "name": "All heads; hover over one to preview it, click to select it",
            "cells": [[{"text": text} for text in of_layer] for of_layer in texts],
            "picked": picked,
            "font": FONT,
            "fontSize": SMALL_FONT_SIZE,
            "clips": clips,
            "colours": colours(theme, "background", "text", "quiet", "edge", "picked"),
        },
        on_pick_change=takes_cell("head_rail", texts, on_pick),
    )
