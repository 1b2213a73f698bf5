"""The stage: the viewer, which shows one head on a text and all others beside it, and what the server draws where a visitor rests."""

from typing import Any

import streamlit as st

from ui.choice import state
from ui.components.stage import stage as viewer
from ui.rooms.explore.map_settings import link_to_others
from ui.rooms.explore.stage.query_key_map import layout, query_key_map
from ui.rooms.explore.stage.screen import Screen
from ui.rooms.explore.stage.text import answers, mask_label, text, text_name
from ui.rooms.explore.stage.tour import advance
from ui.shell import controls
from ui.shell.frame import put_in_link, redrawn_with_head
from ui.shell.gap import masked_position, what_stands_here
from ui.shell.navigation import link_to
from ui.shell.view import View
from ui.streamlit_fixes.redrawn_block import redrawn_block

LOCAL = (
    *("layer", "head", "query", "key", "filled", "show"),
    *("unit", "special", "without_first", "sentences", "colour", "clip"),
)
"""The fields of the selection that the viewer changes by itself."""


def stage(view: View) -> None:
    """One head on the text, and beside it all heads."""
    with st.container(key="stage"):
        text(view)
        redrawn_with_head(view, rest)
        redrawn_block(lambda: answers(view), None)  # a question draws nothing else
        with st.container(key="slot_model"):
            controls.model()
            controls.place(view)
        with st.container(key="slot_links", horizontal=True, vertical_alignment="center"):
            link_to(
                "Step by step",
                label="Watch it happen",
                icon="play_circle",
                help="Plays how this head gets from the tokens to these weights, as a film with the model's own numbers.",
            )
            link_to_others()
            more(view)


def more(view: View) -> None:
    """What the server needs for another reading of the text, or another layout of the map; drawn while it is open."""
    drawer = st.popover("Reading and map", icon=":material/tune:", key="stage_more", on_change=state.hold)
    if drawer.open:
        with drawer:
            controls.template(view)
            layout()


def rest(view: View) -> None:
    """What is drawn where a visitor rests: the selection, the words about it, and the map."""
    screen = Screen.of(view)
    selection = view.selection
    shown: dict[str, Any] = {name: getattr(selection, name) for name in LOCAL} | {"query": screen.query}
    notes = screen.score, screen.notes(has_matrix=selection.filled in ("all", "matrix"))
    viewer(
        text_name(view),
        shown,
        {"headline": screen.headline, "notes": " ".join(filter(None, notes))},
        n_token=len(view.query_tokens),
        is_linked=state.fits_link(selection),
        on_settle=lambda is_here, fields: _settle(
            is_here and selection.source == state.chosen().source, fields
        ),
        on_mask=state.mask if mask_label(view) else None,
        theme=view.theme,
    )
    advance(screen)
    put_in_link(selection)
    if selection.filled in ("all", "map"):
        with st.container(key="slot_map"):
            query_key_map(screen)
    masked_link(screen)


def _settle(is_of_text: bool, fields: dict[str, Any]) -> None:
    """Takes what the visitor has changed since the server was told last; a token of another text is none of this one."""
    chosen = state.chosen()
    if not is_of_text:
        fields = {name: value for name, value in fields.items() if name not in ("query", "key")}
    changed = {name: value for name, value in fields.items() if value != chosen.value(name)}
    if "query" in changed and "key" in fields:
        changed["key"] = fields["key"]
    state.change(**changed)


def masked_link(screen: Screen) -> None:
    """If a token is masked, what would stand there, and the link that compares with the unmasked text."""
    selection = screen.view.selection
    if selection.masked and not selection.bundle:
        what_stands_here(screen.view, masked_position(selection, screen.query), key="stands_here")
        link_to(
            "Side by side",
            label="Compare with the unmasked text",
            selection=selection.but(masked=(), other_masked=selection.masked),
            help="Shows what masking changes: A is the unmasked text, B the masked one.",
        )
