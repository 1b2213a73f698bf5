"""The tour of the first screen: five stops on its own controls, told with the sentence that is shown."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attnviz.figures.heatmap import MEASURE_NAMES
from attnviz.figures.theme import THEMES
from attnviz.records import AttentionPattern
from ui.choice import state
from ui.components.tour import Stop, tour
from ui.page.first_look import PURPOSE
from ui.stage.screen import Screen
from ui.words.findings import name


def guide(screen: Screen, invitation: DeltaGenerator) -> None:
    """The invitation, in its place, or the stop that the tour is at above the controls; what it is about is framed."""
    stops, at = stops_of(screen), screen.view.selection.tour
    if at:
        frame = (
            f"outline: 2px solid {THEMES[screen.view.theme].picked}; outline-offset: 4px; border-radius: 4px"
        )
        st.html(f"<style>.st-key-{stops[at - 1].target} {{ {frame} }}</style>")
    place = screen.view.lead_place if at else invitation
    with place.container(key="tour_under_way" if at else "tour_place"):
        tour(
            stops,
            at=at,
            purpose=PURPOSE,
            on_go=lambda number: state.change(tour=number),
            theme=screen.view.theme,
        )


def stops_of(screen: Screen) -> list[Stop]:
    """Sentence, matrix, one row, map, verdict."""
    pattern, trace = screen.pattern, screen.view.trace
    query = name(pattern.queries, screen.query)
    n_token = len(trace.tokens)
    n_heads = len(trace.heads(screen.view.kind))
    of_kind = f" of {screen.view.kind} attention" if len(trace.kinds) > 1 else ""
    which = (
        "All heads of the layers so far together."  # rollout
        if pattern.head is None
        else f"One of {n_heads} heads{of_kind}, each of which attends in its own way."
    )
    is_added = trace.tokens.is_added
    added = dict.fromkeys(label for label, one in zip(trace.tokens.labels, is_added, strict=True) if one)
    is_decoder = screen.view.kind == "decoder" and len(trace.kinds) == 1
    of_special = (
        f" {' and '.join(added)} {'are' if len(added) > 1 else 'is'} added by the model." if added else ""
    )
    if is_decoder and not trace.tokens.is_special.any():
        of_special = " No special token is added; many heads rest on the first token instead."
    earlier = " A token sees only itself and earlier ones, so the upper right is empty." if is_decoder else ""
    return [
        Stop(
            title="Sentence",
            text="Type a sentence of your own, or keep this one. The model reads it as "
            f"{n_token} tokens, the chips below the field.{of_special}",
            target="sentence",
        ),
        Stop(
            title="Matrix",
            text=f"{which} Every row is a token that attends, "
            "the query; every column a token attended to, the key. The stronger a cell's colour, the larger "
            f"{_cells(pattern)}.{earlier} Select a cell to follow its pair.",
            target="matrix",
        ),
        Stop(
            title="One row",
            text=f"The keys of {query}, largest weight first. {screen.special_note}"
            "Select another row of the matrix to see its keys.",
            target="ranking",
        ),
        Stop(
            title="Map",
            text=f"The head's vectors as points: circles are queries, diamonds keys, and lines lead from {query} to the "
            "keys that it attends to: the thicker the line, the larger the weight. A map in two dimensions distorts: "
            "beside its title stands whether this one's distances can be read.",
            target="map",
        ),
        Stop(
            title="Verdict",
            text="attnviz computes attention itself and compares tokens, vectors, weights and outputs of every head with the "
            "model's own, for this very sentence. Follow the link to see each comparison; then change the head, or go on to "
            "another room.",
            target="verdict",
        ),
    ]


def _cells(pattern: AttentionPattern) -> str:
    """What the cells hold, and what a row of them adds up to."""
    measure = f"the {MEASURE_NAMES[pattern.measure]}"
    if pattern.measure == "norms" and not pattern.is_renormalised:
        return measure
    is_whole = pattern.is_renormalised or not pattern.hidden_weight.any()
    return f"{measure}; each row adds up to 100%{'' if is_whole else ' with what is hidden'}"
