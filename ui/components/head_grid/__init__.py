"""All heads on one screen, each a picture or a coloured square with its number: layers down, or across if there are many."""

from base64 import b64encode
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import numpy as np
import streamlit as st
from jaxtyping import Bool, Float

from attnviz.figures.cells import colours_at, inks
from attnviz.figures.layer_grid import runs_across
from attnviz.figures.numbers import cell_text, sum_text
from attnviz.figures.theme import FONT, SMALL_FONT_SIZE, ThemeName
from ui.components import colours, register
from ui.components.sent import takes_cell

_mount = register("head_grid", "svg", "html", "grid", "renew")
_LEGEND_STEPS = 17


def head_grid(
    texts: Sequence[Sequence[str]],
    *,
    name: str,
    picked: tuple[int, int],
    on_pick: Callable[[int, int], None],
    theme: ThemeName,
    pictures: Sequence[Sequence[bytes]] | None = None,
    numbers: Float[np.ndarray, "layer head"] | None = None,
    signed: bool = False,
    marks: Sequence[Sequence[str]] | None = None,
    dimmed: Bool[np.ndarray, "layer head"] | None = None,
    key: str = "head_grid",
) -> None:
    """Draws the grid; ``on_pick`` is called with the layer and head of a cell that is clicked.

    Args:
        texts: each head's text in the line below the grid, layer by layer; layers may differ in their number of heads.
        name: text alternative.
        pictures: a PNG of each head, layer by layer.
        numbers: a number for each head instead of a picture; NaN where there is no number, or no such head. The colours go
            from 0, or the smallest number if negative, to the largest.
        signed: whether the numbers are differences; the colour scale then diverges from the background at 0.
        marks: a few letters in the corner of each head's picture or square.
        dimmed: True for heads that are drawn dimmed; they can be selected like the others.
        key: of the component; one for each grid on a page.
    """
    cells: list[list[dict[str, object]]] = [
        [
            {
                "text": of_layer[head],
                "mark": "" if marks is None else marks[layer][head],
                "dimmed": dimmed is not None and bool(dimmed[layer, head]),
            }
            for head in range(len(of_layer))
        ]
        for layer, of_layer in enumerate(texts)
    ]
    is_across = runs_across(len(texts))
    data: dict[str, object] = {
        "grid": key,
        "isAcross": is_across,
        "hasPictures": pictures is not None,
        "name": name,
        "cells": cells,
        "picked": picked,
        "font": FONT,
        "fontSize": SMALL_FONT_SIZE,
        "colours": colours(theme, "background", "text", "quiet", "edge", "picked"),
    }
    with st.container(gap=None, key=f"{key}_room{'_across' * is_across}"):
        if pictures is not None:
            # In a separate message: Streamlit sends only the hash of a message that the browser already has,
            # so a selection does not send the pictures again.
            encoded = [[b64encode(picture).decode() for picture in row] for row in pictures]
            _mount(key=f"{key}_pictures", data={"grid": key, "pictures": encoded})
        if numbers is not None:
            data["legend"] = _colour(cells, numbers, theme, signed=signed)
        _mount(key=key, data=data, on_pick_change=takes_cell(key, texts, on_pick))


def beside_grid(
    widths: Sequence[int], key: str, *, n_layers: int
) -> Sequence[AbstractContextManager[object]]:
    """Columns of these widths, the first for a grid of all heads; on a narrow page the others are below it (heading.css).

    ``key`` names the grid, unique on a page.
    """
    with st.container(key=f"beside_{key}{'_across' * runs_across(n_layers)}"):
        return st.columns(widths, gap="medium")


def _colour(
    cells: list[list[dict[str, object]]],
    numbers: Float[np.ndarray, "layer head"],
    theme: ThemeName,
    *,
    signed: bool,
) -> dict[str, object]:
    """Puts numbers and colours into the cells; returns the colour legend."""
    known = numbers[np.isfinite(numbers)]
    low, high = float(known.min(initial=0.0)), float(known.max(initial=0.0))
    if signed:
        low, high = -max(-low, high), max(-low, high)
    middle = 0.5 if signed else 0.0
    shares = np.nan_to_num((numbers.astype(np.float64) - low) / ((high - low) or 1.0), nan=middle).clip(0, 1)
    flat = colours_at(shares.ravel(), theme, signed=signed)
    fills, letters = flat.reshape(*numbers.shape, 3), np.reshape(inks(flat, theme), numbers.shape)
    for layer, of_layer in enumerate(cells):
        for head, cell in enumerate(of_layer):
            cell |= {
                "label": _label(float(numbers[layer, head]), is_narrow=runs_across(len(cells))),
                "fill": _hex(fills[layer, head]),
                "ink": str(letters[layer, head]),
            }
    steps = colours_at(np.linspace(0, 1, _LEGEND_STEPS), theme, signed=signed)
    ends = {"low": "0" if low == 0 else _label(low), "high": _label(high)}
    return ends | {"steps": [_hex(step) for step in steps]}


def _label(number: float, *, is_narrow: bool = False) -> str:
    """A number short enough for its cell, with two decimals if 30 cells are side by side; a dash if there is none."""
    if not np.isfinite(number):
        return "–"
    return sum_text(number) if is_narrow else cell_text(number)


def _hex(colour: np.ndarray) -> str:
    return "#" + "".join(f"{int(channel):02x}" for channel in colour)
