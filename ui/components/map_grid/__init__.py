"""The maps of all heads on one screen, each small: queries as circles, keys as diamonds, lines of one query."""

from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st
from jaxtyping import Float

from attnviz.figures.theme import FONT, SMALL_FONT_SIZE, ThemeName
from ui.components import colours, register
from ui.components.sent import takes_cell

_KEY = "map_grid"
_mount = register("map_grid", "svg", "html", "grid", "renew")
_FINEST = 255
"""Steps across a map: a third of a pixel each on a large screen, and a coordinate fits in a byte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallMap:
    """The map of one head."""

    points: Float[np.ndarray, "point 2"] | None
    """Queries first, then keys; None while there is no map."""
    n_query: int
    query: int
    """Position of the selected query, whose point is marked."""
    lines: Sequence[tuple[int, float]] = ()
    """Key and weight of each line from the selected query."""
    number: str = ""
    """The map's reliability, written beside its name."""
    text: str
    """The map's text in the line below the grid."""
    faint: bool = False
    """Whether the map cannot be told from chance."""
    is_old: bool = False
    """Whether it is the previous map, drawn in grey until the new one is there."""


def map_grid(
    maps: Sequence[Sequence[SmallMap]],
    *,
    order: Sequence[tuple[int, int]] | None,
    name: str,
    picked: tuple[int, int],
    on_pick: Callable[[int, int], None],
    theme: ThemeName,
) -> None:
    """Draws the grid; ``on_pick`` is called with the layer and head of a map that is clicked.

    Args:
        maps: of each head, layer by layer; layers may differ in their number of heads.
        order: layer and head of the maps in display order, in rows as long as the layer with the most heads; None for layers
            down and heads across.
        name: text alternative.
    """
    n_column = max(map(len, maps))
    of_layers = [
        _cell(layer, head, of_layer[head]) if head < len(of_layer) else None
        for layer, of_layer in enumerate(maps)
        for head in range(n_column)
    ]
    cells = of_layers if order is None else [_cell(layer, head, maps[layer][head]) for layer, head in order]
    with st.container(gap=None, key=f"{_KEY}_room"):
        # A message for each layer: Streamlit sends only the hash of a message that the browser already has, so neither a
        # selection nor another layer's maps send these again. In tuples, since Streamlit searches every list for a
        # dataframe, which takes a seventh of the grid's time.
        for layer, of_layer in enumerate(maps):
            points = tuple(
                "" if small_map.points is None else _packed(small_map.points) for small_map in of_layer
            )
            _mount(key=f"{_KEY}_{layer}", data={"grid": _KEY, "layer": layer, "points": points})
        _mount(
            key=_KEY,
            data={
                "grid": _KEY,
                "name": name,
                "columns": n_column,
                "axes": order is None,
                "cells": tuple(cells),  # None at the end of a layer with fewer heads
                "picked": picked,
                "font": FONT,
                "fontSize": SMALL_FONT_SIZE,
                "colours": colours(theme, "background", "text", "quiet", "edge", "picked", "query", "key"),
            },
            on_pick_change=takes_cell(_KEY, maps, on_pick),
        )


def _cell(layer: int, head: int, small_map: SmallMap) -> dict[str, object]:
    lines = [[at, round(float(weight), 2)] for at, weight in small_map.lines]
    return {
        "place": [layer, head],
        "number": small_map.number,
        "text": small_map.text,
        "faint": small_map.faint,
        "isOld": small_map.is_old,
        "nPoint": 0 if small_map.points is None else len(small_map.points),
        "nQuery": small_map.n_query,
        "query": small_map.query,
        "lines": lines,
    }


def _packed(points: Float[np.ndarray, "point 2"]) -> str:
    """Points scaled to fill a square, a byte for each coordinate, with y upwards."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = float((high - low).max()) or 1.0
    steps = np.rint(_FINEST * ((points - (low + high) / 2) / size + 0.5)).clip(0, _FINEST)
    return b64encode(steps.astype(np.uint8).tobytes()).decode()
