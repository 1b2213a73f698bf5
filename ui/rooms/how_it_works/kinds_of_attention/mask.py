"""The mask that is compared with the model's own: its settings, its name, and painting its cells."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
import streamlit as st

from attnviz.effects.masking import under_mask
from attnviz.effects.masks import MASKS, MaskName
from attnviz.figures.labels import label_at
from attnviz.records import AttentionPattern
from ui.choice import state, widgets
from ui.choice.fields import Cell, Cells, Number, Positions, Word
from ui.choice.selection import choices
from ui.rooms.how_it_works.step_by_step.walk import key_of
from ui.runtime import cache
from ui.shell.view import View

MASK_NAMES = {"none": "None", "causal": "Causal", "window": "Sliding window", "sentences": "One sentence"}
AppliedIn = Literal["this head", "this layer", "all layers"]
"""Where a mask is applied inside the forward pass."""


@choices
@dataclass(frozen=True, slots=True, kw_only=True)
class MaskSettings:
    """The attention mask that is compared with the model's own, and streaming attention under it."""

    mask: Annotated[
        MaskName,
        Word(
            names=MASK_NAMES,
            title="Attention mask",
            help="Sets which keys a query may see in the right matrix.",
        ),
    ] = "causal"
    applied_in: Annotated[
        AppliedIn,
        Word(
            title="Applied in",
            help="Applies the attention mask in this part of the model's forward pass, to show what it does to the output.",
        ),
    ] = "all layers"
    reach: Annotated[
        int,
        Number(0, 512, title="Tokens to each side", help="Sets how far a token sees in a sliding window."),
    ] = 2
    hidden_keys: Annotated[
        tuple[int, ...],
        Positions(
            title="Masked keys", help="Masks these columns of the matrix, whatever the attention mask."
        ),
    ] = ()
    painted: Annotated[
        tuple[Cell, ...],
        Cells(help="Allows these cells where the attention mask forbids them, and the reverse."),
    ] = ()
    tile: Annotated[int, Number(1, 512, title="Keys in a tile", help="How many keys are read at a time.")] = 4
    tiles: Annotated[
        int,
        Number(
            1,
            10**6,
            title="Tiles read",
            help="Steps through the tiles; after the last, the result is the direct one.",
        ),
    ] = 1
    """Tiles that streaming attention has read."""


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
    mask = view.selection.of(MaskSettings).mask
    return mask if mask in offered(view) else "none"


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


@dataclass(frozen=True, kw_only=True)
class Masked:
    """The selected head without and under the mask."""

    view: View
    allowed: np.ndarray
    """Which cells the mask leaves."""

    @classmethod
    def of(cls, view: View) -> "Masked":
        """Under the selected mask."""
        chosen = view.selection.of(MaskSettings)
        changed = chosen.reach, chosen.hidden_keys, chosen.painted
        return cls(view=view, allowed=cache.mask(view.selection.source, view.kind, mask_name(view), *changed))

    @property
    def key(self) -> int:
        """Position of the selected key."""
        return key_of(self.view)

    @cached_property
    def own(self) -> AttentionPattern:
        """The model's own matrix."""
        return self.view.trace.pattern(*self.view.selection.place, self.view.kind)

    @cached_property
    def pattern(self) -> AttentionPattern:
        """The matrix under the mask."""
        return under_mask(self.view.trace, *self.view.selection.place, self.allowed, self.view.kind)
