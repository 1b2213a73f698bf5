"""The grid of maps as they arrive, with its finding."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import streamlit as st

from attnviz.figures.projection import N_LINES
from attnviz.maps.layouts import METHOD_NAMES
from attnviz.maps.table import RELIABILITY, reliability
from attnviz.records import Axis, Head
from attnviz.records.table import table_csv
from ui.choice import state
from ui.components.map_grid import SmallMap, map_grid
from ui.rooms.all_heads.maps.controls import Entered, enter
from ui.rooms.all_heads.maps.layout import best_first
from ui.rooms.all_heads.maps.small_maps import heads_of, small_maps
from ui.rooms.explore.other_maps.choices import MapSettings
from ui.runtime.jobs import Job
from ui.session import of_session
from ui.shell import errors, waiting
from ui.shell.view import View
from ui.words import findings as words
from ui.words.literal import literal

_MOST_NAMED = 5
"""Most heads that are named before a remark on their maps."""
_PULSE = 1.0  # s between two redraws, which take server and browser 0.2 s each for 144 maps


def screen(view: View, work: Job) -> None:
    """The maps so far, and the progress of the others."""

    def wording() -> str:
        compiles = view.selection.of(MapSettings).method == "umap" and not work.n_done
        return _so_far(work) + f" {words.COMPILED}." * compiles

    @errors.explained()  # a block is drawn separately from the page, even the first time
    def result() -> None:
        entered = of_session(Entered)
        if entered.now:
            entered.now = False
            st.switch_page("pages/query_key_map.py", query_params=state.chosen().to_params())
        draw(view, work)

    waiting.show_jobs(
        [work], wording, lambda: f"Cancelled: {_so_far(work)}", key="maps_act", result=result, pulse=_PULSE
    )


def _so_far(work: Job) -> str:
    return f"{work.n_done} of {len(work.results)} maps done."


def draw(view: View, work: Job) -> None:
    """The finding, the grid, and the meaning of its symbols."""
    maps = small_maps(view, work)
    with st.container(key="finding"):
        st.markdown(f"**{literal(finding(view, work))}**")
    map_grid(
        maps,
        order=best_first(maps, work, view),
        name="Maps of all heads; select one to open it",
        picked=view.selection.place,
        on_pick=enter,
        theme=view.theme,
    )
    st.caption(literal(note(view, work, [small_map for of_layer in maps for small_map in of_layer])))


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The maps whose distances follow the scores best, among those that are ready and have a correlation."""

    heads: tuple[Head, ...]
    """Heads with the lowest correlation; several if tied."""
    correlation: float
    mean: float
    n_map: int


def best_of(correlations: Mapping[Head, float]) -> Best | None:
    """The lowest correlation of distance and score, and the mean; None if no map has a correlation."""
    known = {head: correlation for head, correlation in correlations.items() if not np.isnan(correlation)}
    if not known:
        return None
    lowest = min(known.values())
    return Best(
        heads=tuple(
            head
            for head, correlation in sorted(known.items(), key=lambda of_head: of_head[1])
            if words.correlation_text(correlation) == words.correlation_text(lowest)
        ),
        correlation=lowest,
        mean=float(np.mean(list(known.values()))),
        n_map=len(known),
    )


def finding(view: View, work: Job) -> str:
    """Which head's map follows the scores best, and the average over all maps."""
    made = zip(heads_of(view), work.results, strict=True)
    best = best_of({head: rating.in_map.order_correlation for head, rating in made if rating is not None})
    if best is None:
        return "Maps of all heads"
    head, *others = best.heads
    where = f"layer {head.layer}, head {head.head}" + f" and {len(others)} more" * bool(others)
    sentence = (
        f"Distances follow the scores best in {where}: correlation of distance and score "
        f"{words.correlation_text(best.correlation)}"
    )
    if best.n_map > 1:
        sentence += f"; mean of {best.n_map} maps {words.correlation_text(best.mean)}"
    return sentence


def remarks(view: View, work: Job) -> list[str]:
    """What had to be changed in the maps that are ready: once where it holds for all of them, else with the heads it holds for."""
    heads: dict[str, list[Head]] = {}
    for head, result in zip(heads_of(view), work.results, strict=False):
        if result is not None:
            heads.setdefault(result.remark, []).append(head)
    if len(heads) == 1:
        return [remark for remark in heads if remark]
    return [
        f"{', '.join(head.short for head in of_remark[:_MOST_NAMED])}"
        f"{f' and {len(of_remark) - _MOST_NAMED} more' * (len(of_remark) > _MOST_NAMED)}: {remark}"
        for remark, of_remark in heads.items()
        if remark
    ]


def note(view: View, work: Job, maps: list[SmallMap]) -> str:
    """How the maps were made and what their symbols mean."""
    queries = Axis.of(view.query_tokens)
    sentences = [
        f"{METHOD_NAMES[view.selection.of(MapSettings).method]}, the same settings for every head.",
        *remarks(view, work),
    ]
    sentences.append(
        f"Circles are queries, diamonds keys; lines go from {words.name(queries, view.query)} to its strongest keys, at most "
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
    like = view.selection.of(MapSettings).aligned_with
    if like is not None:
        sentences.append(f"All are aligned with the map of {like.words}.")
    sentences.append(
        "Each map fills its square, so that sizes cannot be compared. Points are tokens, even where rows show words."
    )
    return " ".join(sentences)


def as_csv(view: View, work: Job) -> bytes:
    """A line for every map that is ready, with its reliability."""
    rows = [
        [*place_of, *reliability(placed.in_map, placed.chance, placed.trustworthiness)]
        for place_of, placed in zip(heads_of(view), work.results, strict=True)
        if placed is not None
    ]
    return table_csv(["layer", "head", *RELIABILITY], rows)
