"""What B differs in, chosen; and A and B changed for each other."""

from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from attnviz.figures.theme import label_at
from attnviz.heads.comparison import Comparison
from attnviz.model.catalogue import offers
from ui.choice import state, widgets
from ui.choice.selection import Selection
from ui.page import errors
from ui.page.view import View
from ui.sections.compare.partner import FIELDS, Place, differs, other_models, start
from ui.work import cache

NAMES = {
    "head": "Head",
    "layer": "Layer",
    "sentence": "Sentence",
    "model": "Model",
    "masked": "Masked tokens",
}


def partners(comparison: Comparison, picked: tuple[int, int]) -> Place:
    """Positions in B of what is picked in A."""
    found: list[int | None] = []
    for alignment, position in zip((comparison.queries, comparison.keys), picked, strict=True):
        entry = alignment.index(position)
        partner = -1 if entry is None else int(alignment.positions(1)[entry])
        found.append(None if partner < 0 else partner)
    return found[0], found[1]


def controls(view: View, shown: Selection, b: View | None, key: int, there: Place) -> None:
    """What B differs in, and a field for each of them.

    Args:
        there: where the picked query and key are in B.
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
                changes |= {one: type(shown).__dataclass_fields__[one].default for one in names}
            elif not differs(shown, what):
                changes |= start(what, view, key)
            else:
                changes |= {one: getattr(shown, one) for one in names}
        state.change(**changes)

    with st.container(horizontal=True, vertical_alignment="bottom", key="compare_controls"):
        st.pills(
            "B differs in",
            options,
            selection_mode="multi",
            format_func=NAMES.__getitem__,
            wrap=True,
            help="What is not chosen here is the same in B as in A, which is picked on the left.",
            **widgets.tie("compare_differs", chosen, choose_differences),
        )
        of_b = view if b is None else b
        for what, count in (("layer", of_b.trace.n_layers(kind)), ("head", of_b.trace.n_heads(kind))):
            if what in chosen:
                fitted = shown.but(**{f"other_{what}": min(getattr(shown, f"other_{what}"), count - 1)})
                st.number_input(
                    f"{NAMES[what]} of B (0–{count - 1})",
                    min_value=0,
                    max_value=count - 1,
                    step=1,
                    width=150,
                    help=f"The {what} that the picked one is compared with.",
                    **tied(f"other_{what}", fitted),
                )
        if "model" in chosen:
            st.selectbox(
                "Model of B",
                [one.name for one in offers()],
                width=220,
                help="The model that the picked one is compared with; tokens are matched by what is written.",
                **tied("other_model", shown),
            )
        if "masked" in chosen:
            masked_tokens(view, shown)
        st.button(
            "Swap A and B",
            icon=":material/swap_horiz:",
            key="swap",
            on_click=swap,
            args=(selection, shown, shown.other if b is None else b.selection, there),
            help="Picks B, and compares it with what was A.",
        )
    if "sentence" in chosen:
        sentences = st.columns([2, 1]) if shown.second or shown.b.second else [st.container()]
        sentences[0].text_input(
            "Sentence of B",
            help="The sentence that the picked one is compared with; empty for the same.",
            **tied("other_text", shown),
        )
        if len(sentences) > 1:
            sentences[1].text_input(
                "Second sentence of B (optional)",
                help="Read together with the sentence of B as a pair.",
                **tied("other_second", shown),
            )


def tied(field: str, shown: Selection) -> dict[str, Any]:
    """Arguments that tie a widget to a field of B; with it all of B is chosen that is shown."""
    return widgets.field(field, shown, partial(choose, shown))


def choose(shown: Selection, **changes: Any) -> None:
    """Chooses something for B, and with it the rest of B that is shown."""
    if changes.keys() & {"other_text", "other_model"}:
        changes = {"other_masked": None} | changes  # positions in another text
    rest = {field: getattr(shown, field) for fields in FIELDS.values() for field in fields}
    state.change(**rest | changes)


def masked_tokens(view: View, shown: Selection) -> None:
    """The tokens of B that are masked."""
    tokens = view.trace.tokens
    with errors.explained(key="cut_masked"):
        tokens = cache.trace(replace(shown.other.source, masked=())).tokens
    options = [position for position in range(len(tokens)) if not tokens.is_special[position]]
    masked = tuple(position for position in shown.b.masked or () if position in options)
    st.multiselect(
        "Masked in B",
        options,
        format_func=lambda position: label_at(tokens.labels[position], position),
        placeholder="No token",
        width=260,
        help="The tokens in whose place B reads the mask token.",
        **tied("other_masked", shown.but(other_masked=masked)),
    )


def swap(a: Selection, shown: Selection, b: Selection, there: Place) -> None:
    """Makes B what is picked, and A what it is compared with; the picked tokens stay picked."""
    swapped = {one: getattr(b, one) for one in ("model", "text", "second", "masked", "layer", "head")}
    for what, fields in FIELDS.items():
        if differs(shown, what):
            swapped |= {field: getattr(a, field.removeprefix("other_")) for field in fields}
    if a.masked != b.masked:
        swapped["other_masked"] = a.masked
    state.change(**swapped, query=there[0], key=there[1])
