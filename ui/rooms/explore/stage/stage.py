"""The stage: the viewer of one head on a text and all others beside it, what it is sent, and what the server draws where a visitor rests."""

from collections.abc import Mapping
from dataclasses import MISSING, replace
from functools import partial
from hashlib import sha256
from typing import Any

import msgspec
import streamlit as st

from attnviz.errors import AttnvizError
from attnviz.records import Mixing, check_index
from attnviz.viewer.answers import answer
from attnviz.viewer.data import layer_bytes
from ui.choice import state
from ui.choice.fields import written
from ui.choice.selection import PLACES
from ui.components.stage import stage as viewer
from ui.components.stage_answer import stage_answer
from ui.components.stage_data import stage_data
from ui.rooms.explore.map_settings import link_to_others
from ui.rooms.explore.mixing import mixing_is_there
from ui.rooms.explore.stage.query_key_map import layout, query_key_map
from ui.rooms.explore.stage.row_matters import row_matters
from ui.rooms.explore.stage.screen import Screen
from ui.rooms.explore.stage.tour import advance
from ui.runtime import cache, head_cache
from ui.session import of_session
from ui.shell import controls, errors
from ui.shell.export.long_matrix import Visited
from ui.shell.frame import put_in_link, redrawn_with_head
from ui.shell.gap import masked_position, what_stands_here
from ui.shell.head_names import known_names
from ui.shell.navigation import link_to
from ui.shell.view import View
from ui.streamlit_fixes.redrawn_block import redrawn_block
from ui.words.findings import SHOWN_NAMES
from ui.words.glossary import TERMS
from ui.words.head_names import attending, heads_said

LOCAL = (
    *("layer", "head", "query", "key", "filled", "show"),
    *("unit", "special", "without_first", "sentences", "colour", "pool", "clip", "seen"),
)
"""The fields of the selection that the viewer changes by itself."""


_ORDER = {
    name: "" if place.usual is MISSING or name in ("layer", "head") else written(place.usual)
    for name, place in PLACES.items()
}
"""The fields of a link in its order, each with what it has where it is left out; layer and head never are."""


def stage(view: View) -> None:
    """One head on the text, and beside it all heads."""
    with st.container(key="stage"):
        text(view)
        redrawn_with_head(view, rest)
        redrawn_block(lambda: stage_answer(partial(_answer, view)), None)  # a question draws nothing else
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
            # What another reading of the text, or another layout of the map, needs.
            drawer = st.popover(
                "Reading and map", icon=":material/tune:", key="stage_more", on_change=state.hold
            )
            if drawer.open:
                with drawer:
                    controls.template(view)
                    layout()


def rest(view: View) -> None:
    """What is drawn where a visitor rests: the selection, the words about it, and the map."""
    selection = view.selection
    shown: dict[str, Any] = {name: getattr(selection, name) for name in LOCAL} | {"query": view.query}
    screen = None
    if not view.trace.is_long(view.kind):
        with errors.explained(key="cut_mixing"):
            if mixing_is_there(view, [selection.layer]):
                screen = Screen.of(view)
    said = {"headline": "", "notes": ""}  # of a long text the viewer says what it draws
    if screen is not None:
        notes = screen.score, screen.notes(has_matrix=selection.filled in ("all", "matrix"))
        said = {"headline": screen.headline, "notes": " ".join(filter(None, notes))}
    viewer(
        text_name(view),
        shown,
        said,
        n_token=len(view.query_tokens),
        is_linked=state.fits_link(selection),
        on_settle=lambda is_here, fields: _settle(
            is_here and selection.source == state.chosen().source, fields
        ),
        on_mask=state.mask if mask_label(view) else None,
        theme=view.theme,
    )
    if screen is not None:
        advance(screen)
    put_in_link(selection)
    if screen is not None and selection.filled in ("all", "map"):
        with st.container(key="slot_map"):
            query_key_map(screen)
    masked_link(view)
    if screen is not None:
        row_matters(view)


def _settle(is_of_text: bool, fields: dict[str, Any]) -> None:
    """Takes what the visitor has changed since the server was told last; a token of another text is none of this one."""
    chosen = state.chosen()
    if not is_of_text:
        fields = {name: value for name, value in fields.items() if name not in ("query", "key")}
    changed = {name: value for name, value in fields.items() if value != chosen.value(name)}
    if "query" in changed and "key" in fields:
        changed["key"] = fields["key"]
    state.change(**changed)


def masked_link(view: View) -> None:
    """If a token is masked, what would stand there, and the link that compares with the unmasked text."""
    selection = view.selection
    if selection.masked and not selection.bundle:
        what_stands_here(view, masked_position(selection, view.query), key="stands_here")
        link_to(
            "Side by side",
            label="Compare with the unmasked text",
            selection=selection.but(masked=(), other_masked=selection.masked),
            help="Shows what masking changes: A is the unmasked text, B the masked one.",
        )


def text_name(view: View) -> str:
    """Names the text, model and kind of attention that the stage shows, however many layers are there."""
    return sha256(repr((replace(view.selection.source, layers=0), view.kind)).encode()).hexdigest()[:16]


def text(view: View) -> None:
    """Sends the document of a text and the numbers that go with it."""
    staged = head_cache.staged(view.selection.source, view.kind, *view.selection.place)
    names = heads_said(
        view.trace.heads(view.kind), staged.labels, attending(view.key_tokens), known_names(view)
    )
    document = msgspec.structs.replace(
        staged.document,
        text=text_name(view),
        measures=(*staged.document.measures, *cache.mixings(view.selection.source)),
        names=tuple(map(tuple, names)),
        mask_label=mask_label(view),
        special_means=TERMS["Special token"].means,
    )
    stage_data(document, staged.cells, order=_ORDER)


def _mixed(view: View, layer: int, method: Mixing) -> tuple[Mapping[str, object], bytes]:
    """The cells of a layer in a measure that takes the model; what takes long is computed below the stage, and then asked for again."""
    source = view.selection.source
    check_index("layer", layer, view.trace.n_layers(view.kind), view.trace.provenance.model)
    if not cache.is_mixed(source, layer, view.kind, method):
        return {"error": f"{SHOWN_NAMES[method]} of layer {layer} is not there yet."}, b""
    cells, content = layer_bytes(cache.pattern(source, layer, None, view.kind, method))
    return {"cells": msgspec.to_builtins(cells)}, content


def mask_label(view: View) -> str | None:
    """The mask token as text; None where tokens cannot be masked."""
    return cache.mask_label(view.selection.source) if view.kind == "encoder" else None


def _answer(view: View, what: str, query: dict[str, Any]) -> tuple[Mapping[str, object], bytes]:
    """The answer to what the viewer asks for beside the document."""
    source = view.selection.source
    try:
        if what == "head" and query["measure"] in cache.mixings(source):
            return _mixed(view, int(query["layer"]), query["measure"])
        answered = answer(view.trace, view.kind, what, query, partial(head_cache.overview, source, view.kind))
        of_session(Visited).note(view, what, query)
        return answered
    except (
        AttnvizError,
        KeyError,
        OverflowError,
        TypeError,
        ValueError,
    ) as error:  # anybody can forge a question
        told = str(error) if isinstance(error, AttnvizError) else "This cannot be shown for this text."
        return {"error": told}, b""
