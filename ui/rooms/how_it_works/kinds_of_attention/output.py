"""The mask's effect on the model's output and predictions, and a sentence that is read alone."""

from dataclasses import replace

import numpy as np
import streamlit as st

from attnviz.effects.masking import MaskEffect, mask_effect
from attnviz.figures.bars import draw_effect
from attnviz.figures.labels import isolated
from attnviz.figures.numbers import number_text
from attnviz.model.answers import Predictions
from attnviz.model.trace import Trace
from attnviz.records import Axis
from ui.rooms.how_it_works.kinds_of_attention.mask import Masked, MaskSettings, mask_name, mask_title
from ui.rooms.how_it_works.step_by_step.walk import compare
from ui.runtime import cache
from ui.shell.chart import chart
from ui.shell.table import whole_rows
from ui.shell.view import View
from ui.words.findings import name, together
from ui.words.literal import literal

UNCHANGED = "No cell that this model may attend to is masked, so nothing changes. Mask one, or select another attention mask."


def output(masked: Masked) -> tuple[str, ...]:
    """The mask's effect inside the model's own forward pass; returns the key of its picture."""
    view, allowed = masked.view, masked.allowed
    st.subheader("What it does to the output")
    if view.selection.bundle:
        st.info("A bundle holds no model to run again; close the bundle to compute its sentence.")
        return ()
    where = view.selection.of(MaskSettings).applied_in
    layer = None if where == "all layers" else view.selection.layer
    head = view.selection.head if where == "this head" else None
    changed = cache.masked_trace(view.selection.source, view.kind, layer, head, allowed.tobytes())
    turned(view, mask_effect(view.trace, changed, allowed, view.kind, layer=layer, head=head))
    if mask_name(view) == "sentences" and where == "all layers":
        read_alone(view, changed)
    if view.trace.target_tokens is None:
        predictions(view, changed, f"{mask_title(view)}, in {where}")
    return ("mask_effect",)


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
    """How much the last hidden states change direction where the mask is applied, and which change most, in plain text."""
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
    source, masking = view.selection.source, view.selection.of(MaskSettings)
    if masking.painted or masking.hidden_keys:
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


def predictions(view: View, changed: Trace, title: str) -> None:
    """The likeliest tokens for a masked token, or for the selected one, without and under the mask of this title."""
    st.subheader("What the model predicts")
    source = view.selection.source
    position = _place(view)
    before = cache.predictions(source, view.trace, position)
    after = cache.predictions(source, changed, position)
    if before is None or after is None:
        st.markdown(
            f"{literal(source.model)} has no masked-language head, the part that turns a vector back into tokens; with "
            "a model that has one, such as bert-base-uncased or another listed in ATTNVIZ_MODELS, the five likeliest "
            "tokens are shown here, before and under the mask."
        )
        return
    token = literal(name(Axis.of(view.trace.tokens), position))
    if view.kind == "decoder":
        sentence = f"The model's language head gives every token a probability of following {token}."
    else:
        sentence = f"The model's masked-language head gives every token a probability of standing at {token}."
        if position not in _masked(view):
            sentence += (
                " The model sees that token here; mask it with its chip above, and it has to predict it."
            )
    st.markdown(f"{sentence} The five likeliest:")
    for column, heading, predicted, key in zip(
        st.columns(2, gap="medium"),
        ("The model's own", title),
        (before, after),
        ("predicted_before", "predicted_after"),
        strict=True,
    ):
        with column:
            st.markdown(f"**{heading}**")
            _table(predicted, key)


def _masked(view: View) -> list[int]:
    """Positions of mask tokens, masked by chip or typed."""
    label = cache.mask_label(view.selection.source)
    return [at for at, text in enumerate(view.trace.tokens.labels) if text == label]


def _place(view: View) -> int:
    """The selected token, or the first masked one if the selected token is not masked."""
    masked = _masked(view)
    return view.query if not masked or view.query in masked else masked[0]


def _table(predicted: Predictions, key: str) -> None:
    st.dataframe(
        {
            "token": [isolated(label) for label in predicted.labels],
            "probability": 100 * predicted.probabilities.astype(float),
        },
        hide_index=True,
        height=whole_rows(len(predicted.labels)),
        column_config={
            "probability": st.column_config.ProgressColumn(format="%.1f%%", min_value=0, max_value=100)
        },
        key=key,
    )
