"""Where do queries and keys lie in every head? The maps of all heads as small multiples, drawn as they come."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import streamlit as st

from attnviz.figures.numbers import percent_text
from attnviz.figures.projection import N_LINES
from attnviz.maps.layouts import METHOD_NAMES, aligned
from attnviz.maps.projection import arrays, place
from attnviz.maps.table import RELIABILITY, reliability
from attnviz.model.trace import Trace
from attnviz.records import Axis, Head, Kind, Placement, by_layer
from attnviz.records.table import table_csv
from ui.choice import state, widgets
from ui.components.map_grid import SmallMap, map_grid
from ui.part import Part, Picture, Sheet
from ui.rooms.explore import map_settings
from ui.rooms.explore.map_settings import MapSettings
from ui.runtime import head_cache
from ui.runtime.jobs import Call, Job, job
from ui.session import of_session
from ui.shell import errors, waiting
from ui.shell.export.captions import LINES
from ui.shell.view import View
from ui.streamlit_fixes.stale_values import tie
from ui.words import findings as words
from ui.words.literal import literal
from ui.words.reliability import listed, reading_of

SETTINGS = ("method", "space", "metric", *map_settings.PARAMETERS)
_MOST_NAMED = 5
"""Most heads that are named before a remark on their maps."""
_PULSE = 1.0  # s between two redraws, which take server and browser 0.2 s each for 144 maps


@dataclass(slots=True)
class LastMaps:
    """The maps of all heads that this visitor saw last, layer by layer."""

    maps: list[list[SmallMap]] = field(default_factory=list)


@dataclass(slots=True)
class Entered:
    """Whether a head was just entered, so that its page must be opened."""

    now: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """The maps of all heads, as far as they are there."""

    view: View
    work: Job

    @property
    def settings(self) -> MapSettings:
        """Of every map."""
        return self.view.selection.of(MapSettings)

    @property
    def heads(self) -> tuple[Head, ...]:
        """Every head, layer by layer."""
        return self.view.trace.heads(self.view.kind)

    @property
    def placed(self) -> dict[Head, Placement]:
        """The maps that are ready."""
        made = zip(self.heads, self.work.results, strict=True)
        return {head: result for head, result in made if result is not None}


class Calls(Sequence[Call]):
    """A call for each head; its scores and weights are computed only when it is sent, since all of them would be many."""

    def __init__(self, trace: Trace, kind: Kind, heads: Sequence[Head], settings: dict[str, Any]) -> None:
        self._trace, self._kind, self._heads, self._settings = trace, kind, heads, settings

    def __len__(self) -> int:
        return len(self._heads)

    def __getitem__(self, number: Any) -> Any:
        head: Head = self._heads[number]
        return place, arrays(self._trace, *head, self._kind), self._settings


def screen_of(view: View) -> Screen:
    """The maps of all heads of this text; first the head that others align with, or the selected one."""
    settings = {"dimensions": 2} | {name: view.selection.value(name) for name in SETTINGS}
    trace, kind = view.trace, view.kind
    heads = trace.heads(kind)
    work = job(
        "maps", (view.selection.source, kind, *settings.values()), lambda: Calls(trace, kind, heads, settings)
    )
    work.prefer(heads.index(view.selection.of(MapSettings).aligned_with or view.selection.place))
    return Screen(view=view, work=work)


def controls(view: View) -> None:
    """The controls for the maps' settings, their order, and the head whose map all are aligned with."""
    selection = view.selection
    like = selection.of(MapSettings).aligned_with

    def align(on: bool) -> None:
        state.change(aligned_with=selection.place if on else None)

    with st.container(horizontal=True, vertical_alignment="bottom"):
        map_settings.method_and_vectors(view)
        st.segmented_control(**widgets.field("order", required=True))
        with st.popover("More", icon=":material/tune:", key="maps_more"):
            map_settings.parameters(view, _n_point(view))
            st.toggle(
                f"Align all with {(like or selection.place).words}",
                help="Rotates and mirrors every map as a whole, to lie as close to this head's map as it can.",
                value=like is not None,
                **tie("maps_aligned", like is not None, align),
            )


def _n_point(view: View) -> int:
    return len(view.query_tokens) + len(view.key_tokens)


def enter(layer: int, head: int) -> None:
    """Selects a head everywhere; the page then goes to its map."""
    state.change(layer=layer, head=head)
    of_session(Entered).now = True


def maps_so_far(screen: Screen) -> None:
    """The maps so far, and the progress of the others."""
    work = screen.work

    def so_far() -> str:
        return f"{work.n_done} of {len(work.results)} maps done."

    def wording() -> str:
        compiles = screen.settings.method == "umap" and not work.n_done
        return so_far() + f" {words.COMPILED}." * compiles

    @errors.explained()  # a block is drawn separately from the page, even the first time
    def result() -> None:
        entered = of_session(Entered)
        if entered.now:
            entered.now = False
            st.switch_page("pages/query_key_map.py", query_params=state.chosen().to_params())
        maps = small_maps(screen)
        map_grid(
            maps,
            order=best_first(screen, maps),
            name="Maps of all heads; select one to open it",
            picked=screen.view.selection.place,
            on_pick=enter,
            theme=screen.view.theme,
        )
        st.caption(literal(note(screen, [small_map for of_layer in maps for small_map in of_layer])))

    waiting.show_jobs(
        [work], wording, lambda: f"Cancelled: {so_far()}", key="maps_act", result=result, pulse=_PULSE
    )


def best_first(screen: Screen, maps: list[list[SmallMap]]) -> list[Head] | None:
    """The heads in display order; None for layers down and heads across."""
    if screen.settings.order == "layer":
        return None
    placed = screen.placed

    def rank(head: Head) -> float:
        if head not in placed or maps[head.layer][head.head].points is None:
            return np.inf
        return float(np.nan_to_num(placed[head].in_map.order_correlation, nan=1.5))

    return sorted(screen.heads, key=rank)


def small_maps(screen: Screen) -> list[list[SmallMap]]:
    """The map of every head, layer by layer; until it is there, the previous one."""
    view, placed = screen.view, screen.placed
    rows = head_cache.rows(view.selection.source, view.kind, view.query)
    n_query, like = len(view.query_tokens), screen.settings.aligned_with
    onto = None if like is None else placed.get(like)

    def of_head(head: Head) -> SmallMap:
        made, row = placed.get(head), rows[head.layer][head.head]
        strongest = np.argsort(-row, kind="stable")[:N_LINES]
        lines = [(int(key), float(row[key])) for key in strongest if row[key] > 0]
        if made is None or (like is not None and onto is None):
            text = f"{head.title}: no map yet"
            return SmallMap(points=None, n_query=n_query, query=view.query, text=text)
        in_map = made.in_map
        reading = reading_of(in_map, made.chance)
        correlation = in_map.order_correlation
        number = "" if np.isnan(correlation) else f"{correlation:+.2f}".replace("-", "−")
        hover_lines = [
            f"{head.title}: correlation of distance and score {number}" if number else head.title,
            f"the nearest key has the largest weight for {percent_text(in_map.nearest_agreement)} of the queries"
            if number
            else "",
            listed(reading),
        ]
        return SmallMap(
            points=made.points if onto is None else aligned(made.points, onto.points),
            n_query=n_query,
            query=view.query,
            lines=lines,
            number=number,
            text="; ".join(filter(None, hover_lines)),
            faint=reading.tells_nothing,
        )

    maps, last = [list(map(of_head, of_layer)) for of_layer in by_layer(screen.heads)], of_session(LastMaps)
    if list(map(len, last.maps)) == list(map(len, maps)):
        maps = [
            [
                replace(old, number="", text=f"{new.text}; the previous one is shown", is_old=True)
                if new.points is None and old.points is not None
                else new
                for old, new in zip(*of_layer, strict=True)
            ]
            for of_layer in zip(last.maps, maps, strict=True)
        ]
    last.maps = maps
    return maps


def finding(screen: Screen) -> str:
    """Which head's map follows the scores best, and the average over all maps, once no more maps will come."""
    correlations = {head: made.in_map.order_correlation for head, made in screen.placed.items()}
    known = {head: number for head, number in correlations.items() if not np.isnan(number)}
    if screen.work.is_awaited or not known:
        return "Maps of all heads"
    best = min(known, key=known.__getitem__)
    written = words.correlation_text(known[best])
    n_as_good = sum(words.correlation_text(number) == written for number in known.values()) - 1
    sentence = (
        f"Distances follow the scores best in {best.words}{f' and {n_as_good} more' * bool(n_as_good)}: correlation of distance "
        f"and score {written}"
    )
    if len(known) > 1:
        sentence += (
            f"; mean of {len(known)} maps {words.correlation_text(float(np.mean(list(known.values()))))}"
        )
    return literal(sentence)


def remarks(placed: Mapping[Head, Placement]) -> list[str]:
    """What had to be changed in the maps that are ready: once where it holds for all of them, else with the heads it holds for."""
    heads: dict[str, list[Head]] = {}
    for head, made in placed.items():
        heads.setdefault(made.remark, []).append(head)
    if len(heads) == 1:
        return [remark for remark in heads if remark]
    return [
        f"{', '.join(head.short for head in of_remark[:_MOST_NAMED])}"
        f"{f' and {len(of_remark) - _MOST_NAMED} more' * (len(of_remark) > _MOST_NAMED)}: {remark}"
        for remark, of_remark in heads.items()
        if remark
    ]


def note(screen: Screen, maps: list[SmallMap]) -> str:
    """How the maps were made and what their symbols mean."""
    view = screen.view
    sentences = [
        f"{METHOD_NAMES[screen.settings.method]}, the same settings for every head.",
        *remarks(screen.placed),
    ]
    sentences.append(
        f"Circles are queries, diamonds keys; lines go from {words.name(Axis.of(view.query_tokens), view.query)} to its strongest keys, at most "
        f"{N_LINES}. The number is the mean correlation of distance and score: −1 when a nearer key always has the higher "
        "score, 0 when the ranks of distance and score do not go together."
    )
    if n_faint := sum(small_map.faint and not small_map.is_old for small_map in maps):
        sentences.append(
            f"Dimmed maps, {n_faint} here, cannot be told from chance: in neither figure are they better than 19 of 20 maps "
            "with permuted key points. Each is tested on its own."
        )
    if any(small_map.is_old for small_map in maps):
        sentences.append("Grey maps are the previous ones; each stays until the next is ready.")
    if (like := screen.settings.aligned_with) is not None:
        sentences.append(f"All are aligned with the map of {like.words}.")
    sentences.append(
        "Each map fills its square, so that sizes cannot be compared. Points are tokens, even where rows show words."
    )
    return " ".join(sentences)


def as_csv(screen: Screen) -> bytes:
    """A line for every map that is ready, with its reliability."""
    rows = [
        [*head, *reliability(made.in_map, made.chance, made.trustworthiness)]
        for head, made in screen.placed.items()
    ]
    return table_csv(["layer", "head", *RELIABILITY], rows)


PART = Part(
    name="Maps",
    address="all_maps",
    question="Where do queries and keys lie in every head?",
    sheets=(
        Sheet(
            controls=controls,
            screen=screen_of,
            finding=finding,
            rows=(Picture("map_grid", "Maps of all heads", f"{LINES} of each head", maps_so_far),),
            numbers="Reliability of each map",
            csv=as_csv,
            notes=lambda screen: {
                "map_grid": f"{map_settings.in_words(screen.view, _n_point(screen.view))}. Each number is a map's correlation of "
                "distance and score (−1 is perfect)"
            },
        ),
    ),
)
