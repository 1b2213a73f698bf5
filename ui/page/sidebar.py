"""The sidebar: the sentence, the model, layer and head, and what rows and columns stand for."""

import streamlit as st

from attnviz.model.catalogue import offers
from attnviz.model.tokenization import has_words
from ui.choice import state, widgets
from ui.choice.presets import PRESETS, Preset
from ui.page.view import View
from ui.streamlit_fixes.stale_values import fill


def sentence() -> None:
    """The sentence, or a pair, and the examples."""
    with st.form("sentence", border=False):
        st.text_area(
            "Sentence",
            height=96,
            help="What the model reads: any language, up to the model's limit of tokens.",
            key=fill("field_text", state.chosen().text),
        )
        st.text_input(
            "Second sentence (optional)",
            help="Read together with the first as a pair; by an encoder-decoder model, as what its decoder has written.",
            key=fill("field_second", state.chosen().second),
        )
        st.form_submit_button(
            "Show attention",
            type="primary",
            width="stretch",
            on_click=_take_sentence,
            key="show_attention",
            help="Shows the attention for this sentence; so does Ctrl+Enter in the field.",
        )
    st.selectbox(
        "Examples",
        PRESETS,
        index=None,
        format_func=lambda preset: preset.name,
        placeholder="Examples",
        label_visibility="collapsed",
        key="preset_choice",
        on_change=_take_preset,
        help="Replaces your sentence with an example.",
    )


def _take_sentence() -> None:
    text, second = st.session_state.field_text, st.session_state.field_second
    state.hold()
    if (text, second) != (state.chosen().text, state.chosen().second):
        state.change(text=text, second=second, cut=False, query=None, key=None)


def _take_preset() -> None:
    preset: Preset | None = st.session_state.preset_choice
    if preset is not None:
        st.session_state.preset_choice = None  # so that the same example can be selected again
        state.choose_preset(preset)


def model() -> None:
    """Whose attention is shown."""
    names = [one.name for one in offers()]
    descriptions = {one.name: one.description for one in offers()}
    st.selectbox(
        **widgets.field(
            "model",
            help="Shows the attention of this model. "
            + "; ".join(f"{name}: {descriptions[name]}" for name in names if descriptions[name])
            + ".",
            options=names,
        )
    )


def place(view: View) -> None:
    """Layer and head, with buttons that walk through the heads."""
    kind, trace = view.kind, view.trace
    if len(trace.kinds) > 1:
        st.segmented_control(
            **widgets.field("kind", view.selection.but(kind=kind), options=trace.kinds), required=True
        )
    n_layers, n_heads = trace.n_layers(kind), trace.n_heads(kind)
    place = st.container(horizontal=True)
    place.number_input(
        **widgets.field("layer", view.selection, max_value=n_layers - 1, label=f"Layer (0–{n_layers - 1})")
    )
    place.number_input(
        **widgets.field("head", view.selection, max_value=n_heads - 1, label=f"Head (0–{n_heads - 1})")
    )
    current = view.selection.layer * n_heads + view.selection.head
    walk = st.container(horizontal=True)
    for step, label, icon in (
        (-1, "Previous", ":material/chevron_left:"),
        (1, "Next", ":material/chevron_right:"),
    ):
        layer, head = divmod((current + step) % (n_layers * n_heads), n_heads)
        walk.button(
            label,
            icon=icon,
            width="stretch",
            key=f"head_{label.lower()}",
            help=f"Shows layer {layer}, head {head}.",
            on_click=_walk,
            args=(step, n_layers, n_heads),
        )


def rows_and_columns(view: View) -> None:
    """What rows and columns stand for and which are left out, on every page alike."""
    has = has_words(view.trace.tokens, view.trace.target_tokens)
    with st.popover(
        "Rows and columns", icon=":material/table_rows:", width="stretch", key="rows_and_columns"
    ):
        st.segmented_control(
            **widgets.field(
                "unit",
                help="Merges word pieces: their columns are summed and their rows averaged."
                if has
                else "Words are not offered: neither spaces nor the tokenizer tell which tokens of this text make one.",
            ),
            required=True,
            disabled=not has,
        )
        st.segmented_control(**widgets.field("special"), required=True)
        if view.trace.tokens.text_pair is not None:
            st.segmented_control(**widgets.field("sentences"), required=True)


def _walk(step: int, n_layers: int, n_heads: int) -> None:
    """The next head or the one before, from where the last click led, even if that is not drawn yet."""
    chosen = state.chosen()
    layer, head = min(chosen.layer, n_layers - 1), min(chosen.head, n_heads - 1)
    layer, head = divmod((layer * n_heads + head + step) % (n_layers * n_heads), n_heads)
    state.change(layer=layer, head=head)
