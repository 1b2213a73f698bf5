"""Where do queries and keys lie in every head? The maps of all heads as small multiples, drawn as they come."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from attnviz.figures.projection import N_LINES
from attnviz.maps.projection import arrays, place
from attnviz.model.trace import Trace
from attnviz.records import Axis, Kind
from attnviz.records.table import table_csv
from ui.choice import map_settings, state, widgets
from ui.choice.selection import CHOICES
from ui.components.map_grid import SmallMap, map_grid
from ui.export.take import take
from ui.page import errors, verdict
from ui.page.frame import frame
from ui.page.view import View
from ui.sections.maps.small_maps import Head, heads_of, held, small_maps
from ui.words import findings as words
from ui.words.literal import literal
from ui.work import waiting
from ui.work.jobs import Call, Job, job

_PULSE = 1.0  # s between two looks, which take server and browser 0.2 s each for 144 maps
SETTINGS = ("method", "space", "metric", "perplexity", "iterations", "neighbours", "min_dist", "seed")


class Calls(Sequence[Call]):
    """A call for each head, whose scores and weights are computed when it is sent: those of all would be many."""

    def __init__(self, trace: Trace, kind: Kind, heads: list[Head], settings: dict[str, Any]) -> None:
        self._trace, self._kind, self._heads, self._settings = trace, kind, heads, settings

    def __len__(self) -> int:
        return len(self._heads)

    def __getitem__(self, number: Any) -> Any:
        layer, head = self._heads[number]
        return place, arrays(self._trace, layer, head, self._kind), self._settings


def job_of(view: View) -> Job:
    """The maps of all heads of this text with these settings; the head that others lie like, or the picked one, first."""
    settings = {"dimensions": 2} | {name: getattr(view.selection, name) for name in SETTINGS}
    heads, trace, kind = heads_of(view), view.trace, view.kind
    found = job(
        "maps", (view.selection.source, kind, *settings.values()), lambda: Calls(trace, kind, heads, settings)
    )
    found.prefer(heads.index(held(view) or (view.selection.layer, view.selection.head)))
    return found


def controls(view: View) -> None:
    """What the maps are made with, and their order."""
    selection = view.selection
    with st.container(horizontal=True, vertical_alignment="bottom"):
        map_settings.method_and_vectors(view)
        st.segmented_control(
            "Order",
            CHOICES["maps_order"],
            required=True,
            format_func={"layer": "By layer", "belief": "Best map first"}.__getitem__,
            help="Puts the maps in layers and heads, or those first whose distances follow the scores best.",
            **widgets.field("maps_order"),
        )
        with st.popover("More", icon=":material/tune:", key="maps_more"):
            map_settings.parameters(
                view, len(view.trace.query_tokens(view.kind)) + len(view.trace.key_tokens(view.kind))
            )
            hold(f"{selection.layer}.{selection.head}", selection.held)


def hold(picked: str, now: str) -> None:
    """Turns all maps to lie like one, or lets them go."""
    st.toggle(
        f"All lie like head {now or picked}",
        help="Turns and mirrors every map as a whole, so that its points lie as near to those of this head's map as "
        "they can.",
        **widgets.tie("maps_hold", bool(now), lambda on: state.change(held=picked if on else "")),
    )


def enter(layer: int, head: int) -> None:
    """Picks a head everywhere; the page then goes to its map."""
    state.change(layer=layer, head=head)
    st.session_state.enter_map = True


def progress(work: Job, view: View) -> None:
    """How far the maps are, and a button that stops them or goes on; nothing once all are there."""
    said = f"{work.n_done} of {len(work.results)} maps are made."
    compiled = ""
    if view.selection.method == "umap" and not work.n_done:
        compiled = f" {words.COMPILED}."
    waiting.progress(work, said + compiled, f"Cancelled: {said}", key="maps_act")


def best_first(maps: list[list[SmallMap]], work: Job, view: View) -> list[Head] | None:
    """The heads in the order in which they are shown; None for layers down and heads across."""
    if view.selection.maps_order == "layer":
        return None
    heads = heads_of(view)

    def rank(number: int) -> float:
        placed = work.results[number]
        if placed is None or maps[heads[number][0]][heads[number][1]].points is None:
            return np.inf
        return float(np.nan_to_num(placed.in_map.order_correlation, nan=1.5))

    return [heads[number] for number in sorted(range(len(heads)), key=rank)]


@errors.explained()  # a fragment is drawn apart from the page, also the first time
def screen(view: View, work: Job) -> None:
    """The maps there are, and how far the others are."""
    if st.session_state.pop("enter_map", False):
        st.switch_page("pages/space.py", query_params=state.chosen().to_params())
    progress(work, view)
    draw(view, work)


def draw(view: View, work: Job) -> None:
    """The finding, the grid, and what its signs mean."""
    maps = small_maps(view, work)
    with st.container(key="finding"):
        st.markdown(f"**{literal(finding(view, work))}**")
    map_grid(
        maps,
        order=best_first(maps, work, view),
        name="Maps of all heads; pick one to enter it",
        picked=(view.selection.layer, view.selection.head),
        on_pick=enter,
        theme=view.theme,
    )
    st.caption(literal(note(view, work, [one for of_layer in maps for one in of_layer])))


def finding(view: View, work: Job) -> str:
    """Which head has the most reliable map, and how they do on average."""
    known = {
        head: placed.in_map.order_correlation
        for head, placed in zip(heads_of(view), work.results, strict=True)
        if placed is not None and not np.isnan(placed.in_map.order_correlation)
    }
    if not known:
        return "Maps of all heads"
    (layer, head), best = min(known.items(), key=lambda one: one[1])
    said = (
        f"The most reliable map is that of layer {layer}, head {head}: correlation of distance and score "
        f"{words.correlation_text(best)}"
    )
    if len(known) > 1:
        said += f"; mean of {len(known)} maps {words.correlation_text(float(np.mean(list(known.values()))))}"
    return said


def note(view: View, work: Job, maps: list[SmallMap]) -> str:
    """How the maps were made and what their signs mean."""
    queries = Axis.of(view.trace.query_tokens(view.kind))
    made = [one for one in work.results if one is not None]
    said = [f"{words.METHOD_NAMES[view.selection.method]}, the same settings for every head."]
    if made and made[0].remark:
        said.append(made[0].remark)
    said.append(
        f"Circles are queries, diamonds keys; lines go from {words.name(queries, view.query)} to its {N_LINES} strongest "
        "keys. The number is the mean correlation of distance and score: −1 when a nearer key always has the higher "
        "score, 0 when distance says nothing."
    )
    if n_faint := sum(one.faint and not one.is_old for one in maps):
        said.append(f"Dimmed maps mislead, {n_faint} here: their number cannot be told from chance.")
    if any(one.is_old for one in maps):
        said.append("Grey maps are those from before; each stays until its next one is made.")
    like = held(view)
    if like is not None:
        said.append(f"All are turned to lie like the map of layer {like[0]}, head {like[1]}.")
    said.append(
        "Each map fills its square, so that sizes cannot be compared. Maps are of single tokens, all of them."
    )
    return " ".join(said)


def as_csv(view: View, work: Job) -> bytes:
    """A line for every map that is made, with how reliable it is."""
    header = [
        "layer",
        "head",
        "mean correlation",
        "worst correlation",
        "nearest is strongest",
        "trustworthiness",
    ]
    rows = [
        [
            *place_of,
            *(
                "" if np.isnan(number) else number
                for number in (
                    placed.in_map.order_correlation,
                    placed.in_map.worst_correlation,
                    placed.in_map.nearest_agreement,
                    placed.trustworthiness,
                )
            ),
        ]
        for place_of, placed in zip(heads_of(view), work.results, strict=True)
        if placed is not None
    ]
    return table_csv(header, rows)


view = frame("All maps")
controls(view)
with errors.explained():
    work = job_of(view)
    waiting.watched(work, partial(screen, view, work), pulse=_PULSE)
    take(
        view,
        {"map_grid": "Maps of all heads"},
        csv=partial(as_csv, view, work),
        numbers="Reliability of each map",
    )
verdict.in_sidebar(view.selection)
