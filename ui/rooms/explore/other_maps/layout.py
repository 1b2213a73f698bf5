"""The selected map: its settings, its jobs, and the map that it is aligned with."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from attnviz.figures.projection import Side
from attnviz.maps.layouts import METHOD_NAMES, aligned
from attnviz.maps.projection import arrays, place, with_tokens
from attnviz.records import Head, Kind, Projection
from ui.choice.selection import Selection
from ui.rooms.explore import map_controls as map_settings
from ui.rooms.explore.other_maps.choices import MapSettings
from ui.runtime import cache
from ui.runtime.jobs import TELLS_PROGRESS, Call, Job, job
from ui.runtime.source import Source
from ui.shell import waiting
from ui.shell.view import View
from ui.words import findings as written

MOST_AT_ONCE = (
    200  # points up to which a map takes less than a second, UMAP's aside, and is made with the page
)


@dataclass(slots=True)
class LastMap:
    """The map that this visitor saw last, and what it was made from."""

    source: Source | None = None
    kind: Kind | None = None
    projection: Projection | None = None


def settings_of(selection: Selection) -> dict[str, Any]:
    """The settings of a map; the attention map cannot include values."""
    names = "method", "space", "dimensions", "metric", *map_settings.PARAMETERS, "values"
    settings = {name: selection.value(name) for name in names}
    return settings | {
        "values": selection.of(MapSettings).values and selection.of(MapSettings).method != "attention"
    }


def side_of(selection: Selection) -> Side:
    """The side whose selected token has lines."""
    return "key" if selection.lines_of == "key" else "query"


def points_of(view: View, settings: dict[str, Any]) -> int:
    """Number of points in the map."""
    n_query, n_key = len(view.query_tokens), len(view.key_tokens)
    return n_query + n_key * (2 if settings["values"] else 1)


def laid_out(view: View) -> tuple[Projection | None, list[Job]]:
    """The map of the selected head, aligned with another if requested; or None and the jobs to wait for."""
    selection, settings = view.selection, settings_of(view.selection)
    places = [selection.place]
    like = selection.of(MapSettings).aligned_with
    if like not in (None, selection.place):
        places.append(like)
    if settings["method"] != "umap" and points_of(view, settings) <= MOST_AT_ONCE:
        made = [cache.projection(selection.source, *place, view.kind, **settings) for place in places]
        return turned(made), []
    jobs = [
        job(
            "space",
            (selection.source, view.kind, *place, *settings.items()),
            partial(calls, view, place, settings),
        )
        for place in places
    ]
    if not all(job.finished for job in jobs):
        return None, jobs
    return turned(
        [
            with_tokens(work.results[0], view.trace, *place, view.kind)
            for work, place in zip(jobs, places, strict=True)
        ]
    ), []


def calls(view: View, head: Head, settings: dict[str, Any]) -> list[Call]:
    """The calls for a worker process."""
    value = view.trace.value(*head, view.kind) if settings["values"] else None
    named = {name: value for name, value in settings.items() if name != "values"}
    return [(place, arrays(view.trace, *head, view.kind), named | {"value": value, **TELLS_PROGRESS})]


def turned(made: list[Projection]) -> Projection:
    """The first map, aligned with the second if there is one."""
    first, *others = made
    return replace(first, points=aligned(first.points, others[0].points)) if others else first


def wait_for(jobs: list[Job], view: View) -> None:
    """The progress of a map that takes longer; redraws the page when the map is ready."""
    waiting.show_jobs(
        jobs,
        lambda: under_way(view),
        lambda: "The layout of the map was stopped.",
        key="space_act",
        is_page_without=True,
    )


def under_way(view: View) -> str:
    """What is being computed, and why it takes long."""
    settings = settings_of(view.selection)
    sentence = f"{METHOD_NAMES[settings['method']]} lays out {points_of(view, settings):,} points"
    if settings["method"] == "umap":
        sentence += f". {written.COMPILED}"
    return f"{sentence} …"
