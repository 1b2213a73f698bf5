"""Where do queries and keys lie? One head's vectors as points, linked with its matrix, and how reliable they are."""

from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
import streamlit as st

from attnviz.figures import draw_pattern, draw_projection
from attnviz.figures.projection import CONTOURS, N_LINES, Side, hides_labels
from attnviz.heads.score import score_csv, score_of
from attnviz.maps.layouts import aligned
from attnviz.maps.projection import arrays, place, with_tokens
from attnviz.maps.spaces import Space
from attnviz.records import Projection
from ui.choice import map_settings, state, widgets
from ui.choice.selection import CHOICES, Selection
from ui.components.heatmap_events import heatmap_events
from ui.components.label_room import label_room
from ui.components.point_clicks import point_clicks
from ui.export.recipe import map_lines
from ui.export.take import take
from ui.page import errors, verdict
from ui.page.frame import frame
from ui.page.view import View, hidden_note
from ui.sections.space import belief
from ui.sections.space.picked_pair import picked_pair
from ui.sections.space.ranked_maps import ranked_maps
from ui.words import findings as written
from ui.words.glossary import terms
from ui.words.literal import literal
from ui.work import cache, waiting
from ui.work.jobs import Call, Job, job

HEIGHT = 520  # px of the map
MOST_AT_ONCE = (
    200  # points up to which a map takes less than a second, UMAP's aside, and is made with the page
)


def settings_of(selection: Selection) -> dict[str, Any]:
    """What a map is made with; the attention map has no place for values."""
    names = "method", "space", "dimensions", "metric", *map_settings.PARAMETERS, "values"
    found = {name: getattr(selection, name) for name in names}
    return found | {"values": selection.values and selection.method != "attention"}


def controls(view: View) -> None:
    """What places the points, what it is fed with, how many axes, and under More all the rest."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        map_settings.method_and_vectors(view)
        st.segmented_control(
            "Dimensions",
            (2, 3),
            required=True,
            format_func="{}-D".format,
            help="Lays the points out in the plane, or in space, where they can be turned.",
            **widgets.field("dimensions"),
        )
        with st.popover("More", icon=":material/tune:", key="space_more"):
            more(view)


def more(view: View) -> None:
    """The method's parameters, each in the range that it has for this many points, and what the picture shows."""
    selection = view.selection
    map_settings.parameters(view, points_of(view, settings_of(selection)))
    st.toggle(
        "Values as a third cloud",
        help="Adds the value vectors as squares; the attention map, fitted to weights, has no place for them.",
        disabled=selection.method == "attention",
        **widgets.field("values"),
    )
    st.selectbox(
        "Coloured by",
        CHOICES["tint"],
        format_func=written.TINT_NAMES.__getitem__,
        help="What the colours of the points stand for; their shapes tell queries, keys and values apart always.",
        **widgets.field("tint"),
    )
    st.segmented_control(
        "Lines of the picked",
        ("query", "key"),
        required=True,
        format_func=str.capitalize,
        help=f"Joins the picked query to its {N_LINES} strongest keys, or the picked key to its strongest queries.",
        **widgets.field("kept", replace(selection, kept=side_of(selection))),
    )
    hold(selection)


def hold(selection: Selection) -> None:
    """Keeps the map lying as it does while heads change, or lets it go."""
    here = f"{selection.layer}.{selection.head}"
    if selection.held:
        st.button(
            f"Let go of the layout of head {selection.held}",
            icon=":material/lock_open:",
            key="let_go",
            on_click=state.change,
            kwargs={"held": ""},
            help="Shows each head's map as it comes.",
        )
    else:
        st.button(
            "Hold this layout",
            icon=":material/lock:",
            key="hold",
            on_click=state.change,
            kwargs={"held": here},
            help="Turns and mirrors the maps of other heads as wholes, so that they lie as much like this one as "
            "they can.",
        )


def side_of(selection: Selection) -> Side:
    """Whether the lines of the picked query are drawn or those of the picked key."""
    return "key" if selection.kept == "key" else "query"


def points_of(view: View, settings: dict[str, Any]) -> int:
    """How many points a map has."""
    n_query, n_key = len(view.trace.query_tokens(view.kind)), len(view.trace.key_tokens(view.kind))
    return n_query + n_key * (2 if settings["values"] else 1)


def laid_out(view: View) -> tuple[Projection | None, list[Job]]:
    """The map of the picked head, turned like the held one's; None with the jobs that it waits for."""
    selection, settings = view.selection, settings_of(view.selection)
    layer, head = selection.layer, selection.head
    places = [(layer, head)]
    if selection.held not in ("", f"{layer}.{head}"):
        held_layer, _, held_head = selection.held.partition(".")
        places.append((int(held_layer), int(held_head)))
    if settings["method"] != "umap" and points_of(view, settings) <= MOST_AT_ONCE:
        made = [cache.projection(selection.source, *one, view.kind, **settings) for one in places]
        return turned(made), []
    jobs = [
        job(
            "space",
            (selection.source, view.kind, *one, *settings.items()),
            partial(calls, view, *one, settings),
        )
        for one in places
    ]
    if not all(one.finished for one in jobs):
        return None, jobs
    return turned(
        [
            with_tokens(work.results[0], view.trace, *one, view.kind)
            for work, one in zip(jobs, places, strict=True)
        ]
    ), []


def calls(view: View, layer: int, head: int, settings: dict[str, Any]) -> list[Call]:
    """What a process of its own is asked for."""
    value = view.trace.value(layer, head, view.kind) if settings["values"] else None
    named = {name: one for name, one in settings.items() if name != "values"}
    return [(place, arrays(view.trace, layer, head, view.kind), named | {"value": value, "progress": None})]


def turned(made: list[Projection]) -> Projection:
    """The first map, lying like the second if there is one."""
    first, *held = made
    return replace(first, points=aligned(first.points, held[0].points)) if held else first


def wait_for(jobs: list[Job], said: str) -> None:
    """How far a map is that takes longer; the page is drawn again when it is there."""

    def look() -> None:
        for work in jobs:
            work.watch()
        if any(work.error is not None for work in jobs) or all(work.finished for work in jobs):
            waiting.whole_page()
        st.progress(sum(work.share for work in jobs) / len(jobs), text=said)

    waiting.looking(look, waiting.PULSE)


def failed(jobs: list[Job]) -> bool:
    """Explains what a map could not be made for; whether it could not."""
    error = next((work.error for work in jobs if work.error is not None), None)

    def try_again() -> None:
        for work in jobs:
            work.go_on()

    if error is not None:
        errors.failed(error, try_again)
    return error is not None


def under_way(view: View) -> str:
    """What is being made, and why it takes long."""
    settings = settings_of(view.selection)
    said = f"{written.METHOD_NAMES[settings['method']]} lays out {points_of(view, settings):,} points"
    if settings["method"] == "umap":
        said += f". {written.COMPILED}"
    return f"{said} …"


def pick(clicked: Any) -> None:
    """Picks the token of a clicked point; lines are then drawn of what it was, query or key."""
    match clicked:
        case ["query", int(position)]:
            state.change(query=position, key=None, kept="query")
        case ["key" | "value", int(position)]:
            state.change(key=position, kept="key")
        case _:
            state.hold()


def lengths(view: View, projection: Projection) -> np.ndarray:
    """Length of each vector as the model has it, in the order of the points."""
    at = projection.layer, projection.head, view.kind
    sides = {"query": view.trace.query, "key": view.trace.key, "value": view.trace.value}
    return np.concatenate(
        [np.linalg.norm(vectors(*at), axis=1) for role, vectors in sides.items() if role in projection.role]
    )


def draw_map(view: View, projection: Projection, picked: tuple[int, int]) -> None:
    """The map with its lines, linked."""
    side = side_of(view.selection)
    drawn = draw_projection(
        projection,
        view.trace.weights(projection.layer, projection.head, view.kind),
        picked=picked,
        side=side,
        tint=view.selection.tint,
        lengths=lengths(view, projection) if view.selection.tint == "norm" else None,
        height=HEIGHT,
        theme=view.theme,
    )
    note = map_note(view, projection, side)
    if hides_labels(drawn):
        note += f" {written.WITHOUT_ROOM}"
    st.plotly_chart(
        drawn,
        theme=None,
        key="space_map",
        config={"displayModeBar": False},
        alt=f"Map of the {len(projection.points):,} vectors of this head: {note}",
    )
    point_clicks(
        "space_map",
        pick,
        name="Map of queries and keys; arrow keys walk through the points, Enter picks one",
    )
    st.caption(literal(note))
    label_room("space_map", note="" if hides_labels(drawn) else written.WITHOUT_ROOM, theme=view.theme)


def map_note(view: View, projection: Projection, side: Side) -> str:
    """How the map was made and what its signs mean."""
    selection = view.selection
    said = [written.map_settings(projection)]
    if projection.divergence is None and not projection.remark:
        said.append(written.SPACE_WORDS[cast(Space, projection.space)])
    if projection.divergence is None and belief.is_biased(view.trace.attention(projection.layer, view.kind)):
        said.append(written.BIASED)
    if selection.held not in ("", f"{projection.layer}.{projection.head}"):
        layer, _, head = selection.held.partition(".")
        said.append(f"Turned to lie like the map of layer {layer}, head {head}.")
    if projection.method == "attention" and projection.points.shape[1] == 2 and side == "query":
        shares = list(CONTOURS)
        said.append(
            f"On the dotted circles a key has {', '.join(shares[:-1])} or {shares[-1]} of the weight that the map gives "
            "to the nearest key of the picked query."
        )
    if selection.unit == "words" or view.hides_special or selection.sentences != "all":
        said.append("The map is of single tokens, and of all of them.")
    return " ".join(said)


def draw_matrix(view: View, picked: tuple[int, int], said: str) -> None:
    """The weights, with the row of the picked query or the column of the picked key."""
    shown = view.pattern()
    st.plotly_chart(
        draw_pattern(
            shown, colour=view.selection.colour, picked=picked, side=side_of(view.selection), theme=view.theme
        ),
        theme=None,
        key="matrix",
        config={"displayModeBar": False, "scrollZoom": False},
        alt=f"Attention matrix, {written.place(shown)}: {said}",
    )
    heatmap_events(
        shown,
        chart="matrix",
        show="weights",
        picked=picked,
        on_pick=lambda query, key: state.change(query=query, key=key, kept="query"),
        theme=view.theme,
    )
    if note := hidden_note(view):
        st.caption(note)


view = frame("Query-key space")
view = replace(view, selection=replace(view.selection, show="weights"))  # nothing else here has a matrix
selection, query = view.selection, view.query
numbers = view.pattern(renormalise=False)  # what is said are the model's numbers
key = written.strongest_key(numbers, query) if selection.key is None else selection.key
picked = query, key
is_of_key = side_of(selection) == "key"
said = written.key_finding(numbers, key) if is_of_key else written.finding(numbers, query, key)
with st.container(key="finding"):
    st.markdown(f"**{written.place(numbers)}: {literal(said)}**")

map_column, matrix_column = st.columns([3, 2], gap="medium")
projection: Projection | None = None
drawn = view  # of an earlier map, while the next one is made
with map_column, errors.explained():
    controls(view)
    projection, jobs = laid_out(view)
    if projection is not None:
        st.session_state.last_map = (selection.source, view.kind, projection)
    else:
        if not failed(jobs):
            wait_for(jobs, under_way(view))
        source, kind, last = st.session_state.get("last_map", (None, None, None))
        if (source, kind) == (selection.source, view.kind):
            projection = last
            drawn = replace(view, selection=replace(selection, layer=last.layer, head=last.head))
    if projection is not None:
        draw_map(drawn, projection, picked)
    else:
        st.container(height=HEIGHT, border=False)  # so that nothing below jumps when the map comes
with matrix_column:
    if projection is not None:
        belief.panel(drawn, projection)
    draw_matrix(view, picked, said)

if projection is not None:
    belief.implied(drawn, projection, picked)
picked_pair(view, query, key)
ranked_maps(view)
terms(
    "Query",
    "Key",
    "Attention map",
    "t-SNE",
    "Perplexity",
    "UMAP",
    "PCA",
    "Classical MDS",
    "Lifted vectors",
    "Rank correlation",
    "Trustworthiness",
    "KL divergence",
)
take(
    view,
    {"space_map": "Map of queries and keys", "matrix": "Attention matrix", "pair": "Picked pair"},
    csv=partial(score_csv, score_of(view.trace, selection.layer, selection.head, query, key, kind=view.kind)),
    numbers="Picked pair",
    python=map_lines(view, picked, settings_of(selection)),
)
verdict.in_sidebar(selection)
