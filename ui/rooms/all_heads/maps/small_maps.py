"""The small map of every head, for the grid of all heads."""

from dataclasses import dataclass, field, replace

import numpy as np

from attnviz.figures.numbers import percent_text
from attnviz.figures.projection import N_LINES
from attnviz.maps.layouts import aligned
from attnviz.records import Head, Placement, by_layer
from ui.components.map_grid import SmallMap
from ui.rooms.explore.other_maps.choices import MapSettings
from ui.runtime import head_cache
from ui.runtime.jobs import Job
from ui.session import of_session
from ui.shell.view import View
from ui.words.reliability import listed, reading_of


@dataclass(slots=True)
class LastMaps:
    """The maps of all heads that this visitor saw last, layer by layer."""

    maps: list[list[SmallMap]] = field(default_factory=list)


def heads_of(view: View) -> list[Head]:
    """Every head, layer by layer."""
    return list(view.trace.heads(view.kind))


def small_maps(view: View, work: Job) -> list[list[SmallMap]]:
    """The map of every head, layer by layer; until it is there, the previous one."""
    rows = head_cache.rows(view.selection.source, view.kind, view.query)
    heads, n_query = heads_of(view), len(view.query_tokens)
    like = view.selection.of(MapSettings).aligned_with
    onto: Placement | None = None if like is None else work.results[heads.index(like)]

    def of_head(head: Head, placed: Placement | None) -> SmallMap:
        row = rows[head.layer][head.head]
        strongest = np.argsort(-row, kind="stable")[:N_LINES]
        lines = [(int(key), float(row[key])) for key in strongest if row[key] > 0]
        if placed is None or (like is not None and onto is None):
            text = f"{head.title}: no map yet"
            return SmallMap(points=None, n_query=n_query, query=view.query, text=text)
        reliability = placed.in_map
        reading = reading_of(reliability, placed.chance)
        number = short(reliability.order_correlation)
        hover_lines = [
            f"{head.title}: correlation of distance and score {number}" if number else head.title,
            f"the nearest key has the largest weight for {percent_text(reliability.nearest_agreement)} of the queries"
            if number
            else "",
            listed(reading),
        ]
        return SmallMap(
            points=placed.points if onto is None else aligned(placed.points, onto.points),
            n_query=n_query,
            query=view.query,
            lines=lines,
            number=number,
            text="; ".join(filter(None, hover_lines)),
            faint=reading.tells_nothing,
        )

    placed = dict(zip(heads, work.results, strict=True))
    return _with_those_before(
        [[of_head(head, placed[head]) for head in of_layer] for of_layer in by_layer(heads)]
    )


def _with_those_before(maps: list[list[SmallMap]]) -> list[list[SmallMap]]:
    """Fills in missing maps with those that this session drew last."""
    before = of_session(LastMaps).maps
    if [len(of_layer) for of_layer in before] == [len(of_layer) for of_layer in maps]:
        maps = [
            [
                replace(old, number="", text=f"{new.text}; the previous one is shown", is_old=True)
                if new.points is None and old.points is not None
                else new
                for old, new in zip(*of_layer, strict=True)
            ]
            for of_layer in zip(before, maps, strict=True)
        ]
    of_session(LastMaps).maps = maps
    return maps


def short(correlation: float) -> str:
    """A correlation for a map's title: "−0.79"; empty if there is none."""
    if np.isnan(correlation):
        return ""
    return f"{correlation:+.2f}".replace("-", "−")
