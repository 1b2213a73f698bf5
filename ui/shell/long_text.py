"""A long text that is being read: how far it is, and which layers can be looked at before the others are there."""

from dataclasses import replace

import streamlit as st

from attnviz.figures.numbers import counted
from ui.choice import state
from ui.choice.selection import Selection
from ui.part import Part, part_named, room_of
from ui.runtime import cache, long_texts
from ui.runtime.source import Source
from ui.shell.navigation import link_to
from ui.shell.waiting import LONG_PULSE, show_jobs, whole_page


def refuse(part: Part, n_token: int) -> None:
    """Says how long a text a part takes, and which part takes one of so many tokens."""
    with st.container(horizontal=True, vertical_alignment="center", key="too_long"):
        st.markdown(
            f"{part.name} takes texts of up to {part.longest:,} tokens; this one has {n_token:,}.",
            width="content",
        )
        link_to(
            part.beyond, label=f"Look at it in {room_of(part_named(part.beyond)).name}", icon="arrow_forward"
        )


def with_layers(selection: Selection) -> Selection:
    """The selection of a long text with how many of its layers are there: none is named where all are.

    Raises:
        StillReadError: the selected layer is not there.
    """
    source = replace(selection.source, layers=0)
    read = cache.tokens(source)
    there = 0 if long_texts.trace(source, read) is not None else long_texts.n_layers(source, read)
    return replace(selection, layers=there if selection.layer < there else 0)


def progress(source: Source, layer: int, drawn: int | None) -> None:
    """How far the reading of a long text is, with a button that stops it.

    Args:
        layer: the selected one, which is drawn as soon as it is there.
        drawn: how many layers are drawn so far; None for nothing.
    """
    source = replace(source, layers=0)
    read = cache.tokens(source)
    work = long_texts.job(source, read)
    n_token = counted(cache.n_token(source), "token")

    def n_there() -> int:
        return long_texts.n_layers(source, read)

    def words() -> str:
        if work.n_ahead:
            return f"{n_token}: waiting until {counted(work.n_ahead, 'other long text')} is done."
        return f"Reading {n_token}: {counted(n_there(), 'layer')} done."

    def so_far() -> None:
        there = n_there()
        if drawn is None and there > layer:
            whole_page()
        if (
            drawn is None
            and there
            and st.button(
                f"Show layer {there - 1} meanwhile",
                key="show_layers",
                type="tertiary",
                icon=":material/layers:",
                help=f"Layer {layer} is selected, and not read yet.",
            )
        ):
            state.change(layer=there - 1)
            whole_page()
        if (
            drawn is not None
            and there > drawn
            and st.button(
                f"Show the {there} layers that are done",
                key="show_layers",
                type="tertiary",
                icon=":material/layers:",
                help="Draws the page again, with these layers; the others follow.",
            )
        ):
            whole_page()

    if drawn is not None:
        st.caption(f"Layers 0 to {drawn - 1} are shown; nothing is checked before all are there.")
    show_jobs(
        [work],
        words,
        lambda: f"Stopped; {n_token} are not read.",
        resume="Read it from the beginning",
        key="read_long",
        result=so_far,
        is_page_without=True,
        pulse=LONG_PULSE,
    )
