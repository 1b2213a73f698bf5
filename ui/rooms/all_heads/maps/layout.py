"""The maps of all heads: the calls that compute them, and their order."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnviz.maps.projection import arrays, place
from attnviz.model.trace import Trace
from attnviz.records import Head, Kind
from ui.components.map_grid import SmallMap
from ui.rooms.all_heads.maps.small_maps import heads_of
from ui.rooms.explore.other_maps.choices import MapSettings
from ui.runtime.jobs import Call, Job, job
from ui.shell.view import View

SETTINGS = ("method", "space", "metric", "perplexity", "iterations", "neighbours", "min_dist", "seed")


class Calls(Sequence[Call]):
    """A call for each head; its scores and weights are computed only when it is sent, since all of them would be many."""

    def __init__(self, trace: Trace, kind: Kind, heads: list[Head], settings: dict[str, Any]) -> None:
        self._trace, self._kind, self._heads, self._settings = trace, kind, heads, settings

    def __len__(self) -> int:
        return len(self._heads)

    def __getitem__(self, number: Any) -> Any:
        head: Head = self._heads[number]
        return place, arrays(self._trace, *head, self._kind), self._settings


def job_of(view: View) -> Job:
    """The maps of all heads of this text with these settings; first the head that others align with, or the selected one."""
    settings = {"dimensions": 2} | {name: view.selection.value(name) for name in SETTINGS}
    heads, trace, kind = heads_of(view), view.trace, view.kind
    layout_job = job(
        "maps", (view.selection.source, kind, *settings.values()), lambda: Calls(trace, kind, heads, settings)
    )
    layout_job.prefer(heads.index(view.selection.of(MapSettings).aligned_with or view.selection.place))
    return layout_job


def best_first(maps: list[list[SmallMap]], work: Job, view: View) -> list[Head] | None:
    """The heads in display order; None for layers down and heads across."""
    if view.selection.of(MapSettings).order == "layer":
        return None
    heads = heads_of(view)

    def rank(number: int) -> float:
        placed = work.results[number]
        if placed is None or maps[heads[number].layer][heads[number].head].points is None:
            return np.inf
        return float(np.nan_to_num(placed.in_map.order_correlation, nan=1.5))

    return [heads[number] for number in sorted(range(len(heads)), key=rank)]
