"""All heads as small pictures beside the stage, layer 0 on top; pointing at one previews it, a click selects it."""

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

    The pictures are of the weights that `ui.components.stage_weights` sends; until then, and without them, the cells are empty.

    Args:
        picked: None where the stage knows which head is selected: the same message then serves all, and is sent once.
        texts: what the line below the heads says of each, layer by layer; layers may differ in their number of heads.
        clips: whether special tokens are left out of where a picture's colours end.
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
