"""Where do queries and keys lie? One head's vectors as points, linked with its matrix, and how reliable they are."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
import streamlit as st
from plotly.graph_objects import Figure

from attnviz.errors import AttnvizError
from attnviz.figures import draw_pattern, draw_projection
from attnviz.figures.projection import CONTOURS, Side, hides_labels
from attnviz.heads.score import score_of
from attnviz.maps.layouts import METHOD_NAMES, aligned
from attnviz.maps.projection import arrays, place, with_tokens
from attnviz.maps.spaces import Space
from attnviz.records import Head, Kind, Projection
from ui.choice import state, widgets
from ui.choice.selection import Selection
from ui.components.plotly_figure.heatmap_events import heatmap_events
from ui.components.plotly_figure.label_room import label_room
from ui.part import Block, Part, Picture, Row, Sheet
from ui.rooms.explore import map_settings
from ui.rooms.explore.map_settings import MapSettings
from ui.rooms.explore.other_maps.of_pair import picked_pair, score_sources
from ui.rooms.explore.other_maps.ranked_maps import ranking
from ui.rooms.explore.other_maps.trusted import conclusion, figures_of_map, implied
from ui.rooms.explore.together import of_matrix
from ui.runtime import cache
from ui.runtime.jobs import TELLS_PROGRESS, Call, Job, job
from ui.runtime.source import Source
from ui.session import of_session
from ui.shell import errors, waiting
from ui.shell.chart import chart
from ui.shell.export.captions import LINES
from ui.shell.export.recipe import call, named, trace_lines, unless
from ui.shell.view import RENORMALISED, View, hidden_note
from ui.words import findings as written
from ui.words.literal import literal

MOST_AT_ONCE = 200
"""Points up to which a map takes less than a second, UMAP's aside, and is made with the page."""
HEIGHT = 520  # px of the map
EVERY_TOKEN = "The map shows every token, even where rows and columns show words or leave tokens out."


@dataclass(slots=True)
class LastMap:
    """The map that this visitor saw last, and what it was made from."""

    source: Source | None = None
    kind: Kind | None = None
    projection: Projection | None = None


@dataclass(frozen=True, kw_only=True)  # without slots, for what is computed once
class Screen:
    """A head with its map."""

    view: View
    drawn: View
    """What the map shows: the view, or an earlier one while the next map is made."""
    projection: Projection | None
    """None while there is none to draw."""
    jobs: list[Job]
    """That make the next map."""
    error: AttnvizError | None
    """Why there can be none."""

    @property
    def picked(self) -> tuple[int, int]:
        """Positions of the selected query and key."""
        return self.view.query, self.view.key

    @cached_property
    def said(self) -> str:
        """What the selected query does, or the key if its lines are drawn."""
        numbers = self.view.pattern()
        if side_of(self.view.selection) == "key":
            return written.key_finding(numbers, self.view.key)
        return written.finding(numbers, *self.picked)


def screen_of(view: View) -> Screen:
    """The map of the selected head, or the last one of the same text while it is made."""
    view = replace(view, selection=view.selection.but(show="weights"))  # nothing else here has a matrix
    projection, jobs, error, drawn = None, list[Job](), None, view
    last, source = of_session(LastMap), view.selection.source
    try:
        projection, jobs = laid_out(view)
    except AttnvizError as refusal:
        error = refusal
    if projection is not None:
        last.source, last.kind, last.projection = source, view.kind, projection
    elif error is None and last.projection is not None and (last.source, last.kind) == (source, view.kind):
        projection = last.projection
        drawn = replace(view, selection=view.selection.but(layer=projection.layer, head=projection.head))
    return Screen(view=view, drawn=drawn, projection=projection, jobs=jobs, error=error)


def settings_of(selection: Selection) -> dict[str, Any]:
    """The settings of a map; the attention map cannot include values."""
    names = "method", "space", "dimensions", "metric", *map_settings.PARAMETERS, "values"
    settings = {name: selection.value(name) for name in names}
    return settings | {"values": settings["values"] and settings["method"] != "attention"}


def side_of(selection: Selection) -> Side:
    """The side whose selected token has lines."""
    return "key" if selection.lines_of == "key" else "query"


def points_of(view: View, settings: dict[str, Any]) -> int:
    """Number of points in the map."""
    return len(view.query_tokens) + len(view.key_tokens) * (2 if settings["values"] else 1)


def laid_out(view: View) -> tuple[Projection | None, list[Job]]:
    """The map of the selected head, aligned with another if requested; or None and the jobs to wait for."""
    selection, settings = view.selection, settings_of(view.selection)
    places = list(dict.fromkeys([selection.place, selection.of(MapSettings).aligned_with or selection.place]))
    if settings["method"] != "umap" and points_of(view, settings) <= MOST_AT_ONCE:
        return turned(
            [cache.projection(selection.source, *place, view.kind, **settings) for place in places]
        ), []
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
    made = zip(jobs, places, strict=True)
    return turned([with_tokens(work.results[0], view.trace, *place, view.kind) for work, place in made]), []


def calls(view: View, head: Head, settings: dict[str, Any]) -> list[Call]:
    """The calls for a worker process."""
    value = view.trace.value(*head, view.kind) if settings["values"] else None
    given = {name: value for name, value in settings.items() if name != "values"}
    return [(place, arrays(view.trace, *head, view.kind), given | {"value": value, **TELLS_PROGRESS})]


def turned(made: list[Projection]) -> Projection:
    """The first map, aligned with the second if there is one."""
    first, *others = made
    return replace(first, points=aligned(first.points, others[0].points)) if others else first


def under_way(view: View) -> str:
    """What is being computed, and why it takes long."""
    settings = settings_of(view.selection)
    compiles = f". {written.COMPILED}" if settings["method"] == "umap" else ""
    return f"{METHOD_NAMES[settings['method']]} lays out {points_of(view, settings):,} points{compiles} …"


def controls(view: View) -> None:
    """The controls for the method, its input vectors and the number of axes; under More all others."""
    selection = view.selection
    with st.container(horizontal=True, vertical_alignment="bottom"):
        map_settings.method_and_vectors(view)
        st.segmented_control(
            **widgets.field("dimensions", format_func="{}-D".format, options=(2, 3), required=True)
        )
        with st.popover("More", icon=":material/tune:", key="space_more"):
            map_settings.parameters(view, points_of(view, settings_of(selection)))
            st.toggle(**widgets.field("values"), disabled=selection.of(MapSettings).method == "attention")
            st.selectbox(**widgets.field("tint"))
            st.segmented_control(
                **widgets.field("lines_of", selection.but(lines_of=side_of(selection)), required=True)
            )
            alignment(selection)


def alignment(selection: Selection) -> None:
    """The control that aligns other heads' maps with this one when the head changes."""
    if like := selection.of(MapSettings).aligned_with:
        st.button(
            f"Stop aligning with {like.words}",
            icon=":material/lock_open:",
            key="stop_aligning",
            on_click=state.change,
            kwargs={"aligned_with": None},
            help="Shows each head's map as the method laid it out.",
        )
    else:
        st.button(
            "Align other heads with this",
            icon=":material/lock:",
            key="align",
            on_click=state.change,
            kwargs={"aligned_with": selection.place},
            help="Rotates and mirrors the maps of other heads as wholes, to lie as close to this one as they can.",
        )


def pick(clicked: Any) -> None:
    """Selects the token of a clicked point, a query or a key, whose lines are then drawn."""
    match clicked:
        case ["query", int(position)]:
            state.change(query=position, key=None, lines_of="query")
        case ["key" | "value", int(position)]:
            state.change(key=position, lines_of="key")
        case _:
            state.hold()


def map_and_controls(screen: Screen) -> Figure | tuple[str, ...]:
    """The controls and the map with its lines; while it is made, its progress and the one before."""
    controls(screen.view)
    if screen.error is not None:
        errors.show(screen.error)
    if screen.jobs:
        waiting.show_jobs(
            screen.jobs,
            lambda: under_way(screen.view),
            lambda: "The layout of the map was stopped.",
            key="space_act",
            is_page_without=True,
        )
    if screen.projection is None:
        st.container(height=HEIGHT, border=False)  # so that nothing below jumps when the map comes
        return ()
    return draw_map(screen.drawn, screen.projection, screen.picked)


def map_figure(view: View, projection: Projection, picked: tuple[int, int]) -> Figure:
    """The map with its lines."""
    tint = view.selection.of(MapSettings).tint
    return draw_projection(
        projection,
        picked=picked,
        side=side_of(view.selection),
        tint=tint,
        lengths=lengths(view, projection) if tint == "norm" else None,
        height=HEIGHT,
        theme=view.theme,
    )


def lengths(view: View, projection: Projection) -> np.ndarray:
    """Length of each raw vector, in the order of the points."""
    at = projection.layer, projection.head, view.kind
    sides = {"query": view.trace.query, "key": view.trace.key, "value": view.trace.value}
    return np.concatenate(
        [np.linalg.norm(vectors(*at), axis=1) for role, vectors in sides.items() if role in projection.role]
    )


def draw_map(view: View, projection: Projection, picked: tuple[int, int]) -> Figure:
    """Draws the map with its lines; clicks select."""
    drawn = map_figure(view, projection, picked)
    is_crowded = hides_labels(drawn)
    note = map_note(view, projection) + f" {written.WITHOUT_ROOM}" * is_crowded
    chart(
        drawn,
        key="space_map",
        alt=f"Map of the {len(projection.points):,} vectors of this head: {note}",
        on_pick=pick,
        name="Map of queries and keys; arrow keys walk through the points, Enter selects one",
        listeners=[label_room(note="" if is_crowded else written.WITHOUT_ROOM, theme=view.theme)],
    )
    st.caption(literal(note))
    return drawn


def map_note(view: View, projection: Projection) -> str:
    """How the map was made and what its symbols mean."""
    selection = view.selection
    sentences = [written.map_settings(projection)]
    if projection.divergence is None and not projection.remark:
        sentences.append(written.SPACE_WORDS[cast(Space, projection.space)])
    if projection.divergence is None and view.trace.attention(projection.layer, view.kind).is_biased:
        sentences.append(written.BIASED)
    like = selection.of(MapSettings).aligned_with
    if like is not None and like != (projection.layer, projection.head):
        sentences.append(f"Aligned with the map of {like.words}.")
    is_of_query = side_of(selection) == "query"
    if projection.method == "attention" and projection.points.shape[1] == 2 and is_of_query:
        *shares, last = CONTOURS
        sentences.append(
            f"On the dashed circles a key has {', '.join(shares)} or {last} of the weight that the map gives "
            "to the nearest key of the selected query."
        )
    if selection.unit == "words" or view.hides_special or view.hides_first or selection.sentences != "all":
        sentences.append(EVERY_TOKEN)
    return " ".join(sentences)


def matrix_and_reliability(screen: Screen) -> None:
    """Whether the map can be read, the weights, and the map's figures, below them so that a laptop shows both side by side."""
    if screen.projection is not None:
        attention = screen.view.trace.attention(screen.projection.layer, screen.view.kind)
        st.markdown(conclusion(screen.projection, has_bias=attention.is_biased))
    draw_matrix(screen)
    if screen.projection is not None:
        figures_of_map(screen.drawn, screen.projection)


def draw_matrix(screen: Screen) -> None:
    """The weights, with the row of the selected query or the column of the selected key."""
    view, picked = screen.view, screen.picked
    shown = view.pattern()
    end = view.colour_end(shown)
    chart(
        draw_pattern(
            shown,
            colour=view.selection.colour,
            picked=picked,
            side=side_of(view.selection),
            largest=end,
            theme=view.theme,
        ),
        key="matrix",
        alt=f"Attention matrix, {written.place(shown)}: {screen.said}",
        listeners=[
            heatmap_events(
                shown,
                show="weights",
                picked=picked,
                on_pick=lambda query, key: state.change(query=query, key=key, lines_of="query"),
                on_label=lambda *clicked: pick(list(clicked)),
                theme=view.theme,
            )
        ],
    )
    notes = hidden_note(view), RENORMALISED * view.is_renormalised, written.clipped_words(shown, end)
    if note := " ".join(filter(None, notes)):
        st.caption(note)


def map_lines(view: View, picked: tuple[int, int], settings: Mapping[str, object]) -> str:
    """Python that draws the map of the selected head with these settings of `attnviz.project`.

    The map keeps its own orientation; it is not aligned with another head's.
    """
    selection, tint = view.selection, view.selection.of(MapSettings).tint
    place = call(*selection.place, kind=selection.kind)
    drawn = call(side=unless("query", selection.lines_of), tint=unless("role", tint))
    drawn = f", {drawn}" if drawn and tint != "norm" else ""
    lines = [
        "import attnviz",
        *trace_lines(view),
        f"projection = attnviz.project(trace, {place}, {named(settings)})",
        f"figure = projection.figure(picked={picked}{drawn})",
    ]
    return "\n".join([*lines, "figure.show()", ""])


PART = Part(
    name="Other maps",
    address="query_key_map",
    question="Where do the queries and keys of a head lie?",
    asks=("sentence", "head", "rows"),
    terms=(
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
        "Permutation test",
        "Trustworthiness",
        "KL divergence",
    ),
    sheets=(
        Sheet(
            screen=screen_of,
            finding=lambda screen: f"{written.place(screen.view.pattern())}: {literal(screen.said)}",
            rows=(
                Row(
                    Picture("space_map", "Map of queries and keys", LINES, map_and_controls),
                    Picture(
                        "matrix",
                        "Attention matrix",
                        lambda view: of_matrix(replace(view, selection=view.selection.but(show="weights"))),
                        matrix_and_reliability,
                    ),
                    widths=(3, 2),
                ),
                lambda screen: implied(screen.drawn, screen.projection, screen.picked),
                Picture(
                    "pair",
                    "Selected pair",
                    "bar height: number of each dimension of query, key and their product",
                    lambda screen: picked_pair(screen.view, *screen.picked),
                ),
                Block(
                    lambda screen: score_sources(screen.view, *screen.picked),
                    (
                        Picture(
                            "score_sources",
                            "Sources of the score",
                            "cell colour: part of the score, by where the query comes from (down) and the key (across)",
                        ),
                    ),
                ),
                lambda screen: ranking(screen.view),
            ),
            numbers="Selected pair",
            csv=lambda screen: score_of(
                screen.view.trace,
                *screen.view.selection.place,
                *screen.picked,
                kind=screen.view.kind,
            ).csv(),
            python=lambda screen: map_lines(screen.view, screen.picked, settings_of(screen.view.selection)),
            notes=lambda screen: (
                {} if screen.projection is None else {"space_map": written.map_note(screen.projection)}
            ),
            points=lambda screen: screen.projection and screen.projection.csv(),
        ),
    ),
)
