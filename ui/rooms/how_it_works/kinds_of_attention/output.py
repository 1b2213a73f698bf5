"""The mask's effect on the model's output, and a sentence that is read alone."""

from dataclasses import replace

import numpy as np
import streamlit as st

from ui.runtime import cache
from ui.shell.chart import chart

# isort: split
from attnviz.effects.masking import MaskEffect, mask_effect
from attnviz.figures.bars import draw_effect
from attnviz.figures.numbers import number_text
from attnviz.model.trace import Trace
from attnviz.records import Axis
from ui.rooms.how_it_works.kinds_of_attention.choices import MaskSettings
from ui.rooms.how_it_works.kinds_of_attention.mask import mask_name, mask_title
from ui.rooms.how_it_works.kinds_of_attention.predictions import predictions
from ui.rooms.how_it_works.step_by_step.walk import compare
from ui.shell.view import View
from ui.words.findings import name, together
from ui.words.literal import literal

UNCHANGED = "No cell that this model may attend to is masked, so nothing changes. Mask one, or select another attention mask."


def output(view: View, allowed: np.ndarray) -> None:
    """The mask's effect inside the model's own forward pass."""
    st.subheader("What it does to the output")
    if view.selection.bundle:
        st.info("A bundle holds no model to run again; close the bundle to compute its sentence.")
        return
    where = view.selection.of(MaskSettings).applied_in
    layer = None if where == "all layers" else view.selection.layer
    head = view.selection.head if where == "this head" else None
    changed = cache.masked_trace(view.selection.source, view.kind, layer, head, allowed.tobytes())
    turned(view, mask_effect(view.trace, changed, allowed, view.kind, layer=layer, head=head))
    if mask_name(view) == "sentences" and where == "all layers":
        read_alone(view, changed)
    if view.trace.target_tokens is None:
        predictions(view, changed, f"{mask_title(view)}, in {where}")


def turned(view: View, effect: MaskEffect) -> None:
    """How much the mask changes the direction of each token's last hidden state."""
    tokens = Axis.of(view.trace.last_tokens)
    st.markdown(literal(effect_words(effect, tokens, view.selection.of(MaskSettings).applied_in)))
    picked = view.query if view.kind != "encoder" or view.trace.target_tokens is None else None
    chart(
        draw_effect(effect.change, tokens, picked=picked, theme=view.theme),
        key="mask_effect",
        alt="Change of each token's last hidden state",
    )


def effect_words(effect: MaskEffect, tokens: Axis, where: str) -> str:
    """How much the last hidden states change direction, and which change most, in plain text.

    Args:
        where: where the mask is applied, such as "all layers".
    """
    if effect.is_unchanged and not effect.n_masked:
        return UNCHANGED
    masked = f"{effect.n_masked:,} cell{'s are' if effect.n_masked != 1 else ' is'} masked in {where}"
    if effect.is_unchanged or not effect.most:
        return f"{masked}, and yet no last hidden state changes its direction."
    most = together([name(tokens, position) for position in effect.most])
    return (
        f"The model has read the sentence again; {masked}. The last hidden state of a token changes its direction by "
        f"{number_text(effect.mean)} on average (1 − cosine: 0 is no change, 1 a right angle), most for {most}, by "
        f"{number_text(effect.largest)}."
    )


def read_alone(view: View, changed: Trace) -> None:
    """Whether the first sentence's states are now the same as without the second sentence."""
    source, selection = view.selection.source, view.selection
    if selection.of(MaskSettings).painted or selection.of(MaskSettings).hidden_keys:
        return
    n_own = int((view.trace.tokens.segment == 0).sum())
    alone = cache.trace(
        replace(source, second="", masked=tuple(position for position in source.masked if position < n_own))
    )
    if not np.array_equal(
        alone.tokens.ids, changed.tokens.ids[:n_own]
    ):  # RoBERTa puts two separators between them
        return
    compare(
        changed.last_hidden_state[:n_own],
        alone.last_hidden_state,
        f"the vectors of the {n_own} tokens of the first sentence under this mask",
        to="those of the same sentence read alone",
        how="Read twice",
    )
