"""The mask that is compared with the model's own: its kind, its name, and painting its cells."""

import streamlit as st

from ui.choice import (
    state,
    widgets,  # before attnviz loads torch
)

# isort: split
from attnviz.effects.masks import MASKS, MaskName
from attnviz.figures.labels import label_at
from ui.choice.fields import Cell
from ui.rooms.how_it_works.kinds_of_attention.choices import MaskSettings
from ui.shell.view import View

MASK_NAMES = {
    "none": "None",
    "causal": "Causal",
    "window": "Sliding window",
    "sentences": "One sentence",
}


def controls(view: View) -> None:
    """The controls for the mask, and for where it is applied."""
    name = mask_name(view)
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="mask_controls")
    row.segmented_control(
        **widgets.field("mask", view.selection.but(mask=name), options=offered(view), required=True)
    )
    row.segmented_control(**widgets.field("applied_in", required=True))
    if name == "window":
        row.number_input(**widgets.field("reach"), width=160)
    with row.popover("More", icon=":material/tune:", key="mask_more"):
        keys = view.key_tokens
        st.multiselect(
            **widgets.field(
                "hidden_keys",
                format_func=lambda position: label_at(keys.labels[position], position),
                options=range(len(keys)),
            ),
            placeholder="Select tokens",
        )
        st.button(
            "Undo painted cells",
            disabled=not view.selection.of(MaskSettings).painted,
            on_click=lambda: state.change(painted=()),
            key="unpaint",
            help="Resets every cell to the attention mask.",
        )


def offered(view: View) -> list[MaskName]:
    """The masks that make sense here: separating sentences needs a pair, and cross-attention has no earlier tokens."""
    if view.kind == "cross":
        return ["none"]
    return [mask for mask in MASKS if mask != "sentences" or view.trace.tokens.text_pair is not None]


def mask_name(view: View) -> MaskName:
    """The mask on screen; none if the selected one is not offered."""
    return (
        view.selection.of(MaskSettings).mask
        if view.selection.of(MaskSettings).mask in offered(view)
        else "none"
    )


def mask_title(view: View) -> str:
    """The heading above results under the mask."""
    name, masking = mask_name(view), view.selection.of(MaskSettings)
    if not (masking.painted or masking.hidden_keys):
        return f"Mask: {MASK_NAMES[name].lower()}"
    return "Mask: painted cells" if name == "none" else f"Mask: {MASK_NAMES[name].lower()} and painted cells"


def under_words(view: View) -> str:
    """The mask at the beginning of a sentence, "under the causal mask"; empty where it is the model's own."""
    name, masking = mask_name(view), view.selection.of(MaskSettings)
    painted = "painted cells" * bool(masking.painted or masking.hidden_keys)
    if name == "none":
        return painted and f"with {painted}"
    mask = f"under the {MASK_NAMES[name].lower().replace(' ', '-')} mask"
    return f"{mask} with {painted}" if painted else mask


def paint(query: int, key: int) -> None:
    """Masks a cell, or unmasks it."""
    cell = Cell(query, key)
    painted = state.chosen().of(MaskSettings).painted
    state.change(
        painted=tuple(other for other in painted if other != cell) if cell in painted else (*painted, cell)
    )
