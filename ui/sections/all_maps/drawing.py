"""The grid of maps while they come, with what it says."""

import numpy as np
import streamlit as st

from attnviz.figures.projection import N_LINES
from attnviz.maps.layouts import METHOD_NAMES
from attnviz.records import Axis
from attnviz.records.table import table_csv
from ui.choice import state
from ui.components.map_grid import SmallMap, map_grid
from ui.page import errors, waiting
from ui.page.view import View
from ui.sections.all_maps.layout import best_first
from ui.sections.all_maps.settings import Entered, enter
from ui.sections.all_maps.small_maps import heads_of, small_maps
from ui.session import of_session
from ui.words import findings as words
from ui.words.literal import literal
from ui.work.jobs import Job

_PULSE = 1.0  # s between two looks, which take server and browser 0.2 s each for 144 maps


def screen(view: View, work: Job) -> None:
    """The maps there are, and how far the others are."""

    def said() -> str:
        compiles = view.selection.maps.method == "umap" and not work.n_done
        return _so_far(work) + f" {words.COMPILED}." * compiles

    @errors.explained()  # a block is drawn apart from the page, also the first time
    def result() -> None:
        entered = of_session(Entered)
        if entered.now:
            entered.now = False
            st.switch_page("pages/query_key_map.py", query_params=state.chosen().to_params())
        draw(view, work)

    waiting.show_jobs(
        [work], said, lambda: f"Cancelled: {_so_far(work)}", key="maps_act", result=result, pulse=_PULSE
    )


def _so_far(work: Job) -> str:
    return f"{work.n_done} of {len(work.results)} maps done."


def draw(view: View, work: Job) -> None:
    """The finding, the grid, and what its signs mean."""
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
    said = [f"{METHOD_NAMES[view.selection.maps.method]}, the same settings for every head."]
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
        said.append("Grey maps are the previous ones; each stays until the next is ready.")
    like = view.selection.maps.aligned_with
    if like is not None:
        said.append(f"All are aligned with the map of {like.words}.")
    said.append(
        "Each map fills its square, so that sizes cannot be compared. Every token is a point, also where rows show words."
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
