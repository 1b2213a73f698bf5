"""The controls for what differs in B, and for swapping A and B."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from attnviz.figures.labels import label_at
from attnviz.heads.comparison import Comparison
from attnviz.model.catalogue import offers
from ui.choice import state, widgets
from ui.choice.selection import Selection, usual
from ui.rooms.compare.choices import PartnerB
from ui.rooms.compare.partner import FIELDS, Place, differs, other, other_models, start
from ui.runtime import cache
from ui.shell import errors
from ui.shell.view import View
from ui.streamlit_fixes.stale_values import tie

NAMES = {
    "head": "Head",
    "layer": "Layer",
    "sentence": "Sentence",
    "model": "Model",
    "masked": "Masked tokens",
}


def partners(comparison: Comparison, picked: tuple[int, int]) -> Place:
    """Positions in B of A's selected query and key."""
    layers: list[int | None] = []
    for alignment, position in zip((comparison.queries, comparison.keys), picked, strict=True):
        entry = alignment.index(position)
        partner = -1 if entry is None else int(alignment.positions(1)[entry])
        layers.append(None if partner < 0 else partner)
    return layers[0], layers[1]


def controls(view: View, shown: Selection, b: View | None, key: int, there: Place) -> None:
    """The control for what differs in B, and a field for each difference.

    Args:
        there: positions of the selected query and key in B.
    """
    selection, kind = view.selection, view.kind
    can_mask = kind == "encoder" and cache.mask_label(selection.source) is not None
    options = [
        what
        for what in FIELDS
        if differs(shown, what)
        or {"masked": can_mask, "model": bool(other_models(selection))}.get(what, True)
    ]
    chosen = [what for what in options if differs(shown, what)]

    def choose_differences(picked: list[str]) -> None:
        changes: dict[str, Any] = {}
        for what, names in FIELDS.items():
            if what not in picked:
                changes |= {name: usual(name) for name in names}
            elif not differs(shown, what):
                changes |= start(what, view, key)
            else:
                changes |= {name: shown.value(name) for name in names}
        state.change(**changes)

    is_one = len(chosen) < 2
    with st.container(horizontal=True, vertical_alignment="bottom", key="compare_controls"):
        if is_one:
            st.segmented_control(
                "B differs in",
                options,
                required=True,
                format_func=NAMES.__getitem__,
                wrap=True,
                help="Sets what is different in B; everything else is as in A, which the controls above set.",
                default=chosen[0],
                **tie("compare_differs", chosen[0], lambda what: choose_differences([what])),
            )
        else:
            several(options, chosen, choose_differences)
        of_b = view if b is None else b
        n_heads = of_b.trace.n_heads(of_b.selection.layer, of_b.kind)
        for what, count in (("layer", of_b.trace.n_layers(of_b.kind)), ("head", n_heads)):
            if what in chosen:
                fitted = shown.but(**{f"other_{what}": min(shown.value(f"other_{what}"), count - 1)})
                st.number_input(
                    **field_of_b(
                        f"other_{what}",
                        fitted,
                        label=f"{NAMES[what]} of B (0–{count - 1})",
                    ),
                    width=150,
                )
        if "model" in chosen:
            st.selectbox(
                **field_of_b("other_model", shown, options=[offer.name for offer in offers()]), width=220
            )
        if "masked" in chosen:
            masked_tokens(view, shown)
        st.button(
            "Swap A and B",
            icon=":material/swap_horiz:",
            key="swap",
            on_click=swap,
            args=(selection, shown, other(shown) if b is None else b.selection, there),
            help="Selects B and compares it with what was A.",
        )
        if is_one:
            with st.popover("More", icon=":material/tune:", key="compare_more"):
                several(options, chosen, choose_differences)
    if "sentence" in chosen:
        sentences = st.columns([2, 1]) if shown.second or shown.of(PartnerB).second else [st.container()]
        sentences[0].text_input(**field_of_b("other_text", shown))
        if len(sentences) > 1:
            sentences[1].text_input(**field_of_b("other_second", shown))


def several(options: list[str], chosen: list[str], take: Callable[[list[str]], None]) -> None:
    """The control for what differs in B, when that can be several things at once."""
    st.pills(
        "B differs in all of these",
        options,
        selection_mode="multi",
        format_func=NAMES.__getitem__,
        wrap=True,
        help="Lets B differ in several things at once; the headline names each.",
        default=chosen,
        **tie("compare_several", chosen, take),
    )


def field_of_b(name: str, shown: Selection, **different: Any) -> dict[str, Any]:
    """Arguments of a widget for a field of B; a change makes all of B as shown explicit."""
    return widgets.field(name, shown, partial(choose, shown), **different)


def choose(shown: Selection, **changes: Any) -> None:
    """Changes B, and makes the rest of B as shown explicit."""
    if changes.keys() & {"other_text", "other_model"}:
        changes = {"other_masked": None} | changes  # positions belong to the previous text
    rest = {field: shown.value(field) for fields in FIELDS.values() for field in fields}
    state.change(**rest | changes)


def masked_tokens(view: View, shown: Selection) -> None:
    """The control for the masked tokens of B."""
    tokens = view.trace.tokens
    with errors.explained(key="cut_masked"):
        tokens = cache.trace(replace(other(shown).source, masked=())).tokens
    options = [position for position in range(len(tokens)) if not tokens.is_special[position]]
    masked = tuple(position for position in shown.of(PartnerB).masked or () if position in options)
    st.multiselect(
        **field_of_b(
            "other_masked",
            shown.but(other_masked=masked),
            format_func=lambda position: label_at(tokens.labels[position], position),
            options=options,
        ),
        placeholder="No token",
        width=260,
    )


def swap(a: Selection, shown: Selection, b: Selection, there: Place) -> None:
    """Swaps A and B; the selected tokens stay selected."""
    swapped = {name: b.value(name) for name in ("model", "text", "second", "masked", "layer", "head")}
    for what, fields in FIELDS.items():
        if differs(shown, what):
            swapped |= {field: a.value(field.removeprefix("other_")) for field in fields}
    if a.masked != b.masked:
        swapped["other_masked"] = a.masked
    state.change(**swapped, query=there[0], key=there[1])
