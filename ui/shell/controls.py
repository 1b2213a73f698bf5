"""The controls above the pages: the sentence, the model, layer and head, and what rows and columns stand for."""

from bisect import bisect_right
from collections.abc import Sequence
from contextlib import AbstractContextManager
from operator import attrgetter
from typing import Any

import streamlit as st

from attnviz.model.catalogue import MODELS_VARIABLE, offers
from attnviz.model.words import has_words
from attnviz.records import LONG, Head, by_layer
from attnviz.starting import COMMAND
from ui.choice import state, widgets
from ui.choice.presets import LONG_TOKENS, Preset, long_preset, offered_presets
from ui.components.head_grid import head_grid
from ui.runtime import cache, head_cache
from ui.shell import bundles, text_files
from ui.shell.head_names import known_names, of_selected
from ui.shell.view import View
from ui.words.literal import literal


def sentence(*, has_menu: bool = True) -> AbstractContextManager[object]:
    """The field for a sentence: Enter or leaving the field shows it. Returns the place for the model's examples.

    Args:
        has_menu: whether `more_input` stands beside it.
    """
    with st.container(key="sentence", horizontal=True, vertical_alignment="center", gap="small"):
        st.text_area(**widgets.field("text", take=state.type_sentence, is_typed=True, height=_height("text")))
        if has_menu:
            more_input()
        return st.container(key="examples")


LONG_FIELD = 1500
"""Characters of a text from which its field scrolls instead of growing."""


def _height(name: str) -> Any:
    """The height of a text's field: that of its text, or of some lines of a long one, which a browser lays out without stalling."""
    return "content" if len(state.chosen().value(name)) < LONG_FIELD else 120


def more_input(*, has_second: bool = True) -> None:
    """The menu of what can be shown beside one sentence: a second one, a bundle, a model of the visitor's own.

    Args:
        has_second: whether the page shows a sentence, so that it can show a second one.
    """
    is_pair = has_second and bool(state.chosen().second.strip())
    label = "More input: second sentence set" if is_pair else "More input"
    # A popover with another key is new, so closed: it does not lie over the bundle that was opened.
    key = f"more_input_{bundles.n_opened()}"
    with st.popover(label, icon=f":material/{'check' if is_pair else 'add'}:", key=key):
        if has_second:
            st.text_area(
                **widgets.field("second", take=state.type_sentence, is_typed=True, height=_height("second"))
            )
            text_files.uploader()
        bundles.uploader()
        own_model()


def examples(model: str, *, fills_blanks: bool, reads: int | None) -> None:
    """The examples, one click each; those with a blank only if the model fills it in, a long text only if it reads one.

    Args:
        reads: tokens that the model reads; None where that is not known.
    """
    long = (long_preset(),) if reads is not None and reads >= LONG_TOKENS else ()
    st.pills(
        "Examples",
        (*offered_presets(model, fills_blanks=fills_blanks), *long),
        format_func=attrgetter("called"),
        key="preset_choice",
        on_change=_take_preset,
    )


def _take_preset() -> None:
    preset = st.session_state.preset_choice
    if isinstance(preset, Preset):  # a list passes on a label that is no longer among its options
        st.session_state.preset_choice = None  # so that the same example can be selected again
        state.choose_preset(preset)


def model() -> None:
    """The field for the model."""
    descriptions = {offer.name: offer.description for offer in offers()}
    st.selectbox(
        **widgets.field(
            "model",
            help="Shows the attention of this model. "
            + "; ".join(f"{name}: {told}" for name, told in descriptions.items() if told)
            + ". “More input”, beside the sentence, says how to add your own.",
            options=[*descriptions],
            width=262,
        )
    )


def own_model() -> None:
    """How to show a model that is not in the list."""
    with st.expander("Your own model", icon=":material/folder_open:", key="own_model"):
        where = " in its folder" if COMMAND == "make run" else ""
        st.caption(f"Stop attnviz, and start it again from a terminal{where} with this line:")
        st.code(f"{MODELS_VARIABLE}=/path/to/checkpoint {COMMAND}", language="bash", wrap_lines=True)
        st.caption(
            "Write the folder of a transformers checkpoint there, or its name on huggingface.co; several are separated by "
            "commas. BERT and most other families work; docs/families.md lists them. The model is then in the list “Model”."
        )


def place(view: View) -> None:
    """Kind of attention and languages, if there are several."""
    kind, trace = view.kind, view.trace
    if len(trace.kinds) > 1:
        st.segmented_control(
            **widgets.field("kind", view.selection.but(kind=kind), options=trace.kinds, required=True)
        )
    if languages := cache.languages(view.selection.source):
        texts = {"source_language": trace.tokens, "target_language": trace.target_tokens}
        for name, tokens in texts.items():
            if tokens is not None:
                told = view.selection.but(**{name: tokens.language})
                st.selectbox(**widgets.field(name, told, options=languages.codes, width=280))


def head(view: View) -> None:
    """Layer and head: a button that opens the small pictures of all heads."""
    selection, heads = view.selection, view.trace.heads(view.kind)
    drawer = st.popover(
        selection.place.title,
        icon=":material/apps:",
        key="head_picker",
        on_change=state.hold,
        help="Shows all heads as small pictures; select one.",
    )
    with drawer:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            last_head = view.trace.n_heads(selection.layer, view.kind) - 1
            st.number_input(
                **widgets.field("layer", selection, label=f"Layer (0–{heads[-1].layer})", width=150)
            )
            st.number_input(**widgets.field("head", selection, label=f"Head (0–{last_head})", width=150))
        if drawer.open and len(view.query_tokens) <= LONG:
            _pictures(view, heads)


def _pictures(view: View, heads: Sequence[Head]) -> None:
    cells = head_cache.Cells(
        source=view.selection.source,
        kind=view.kind,
        measure="weights",
        rows=head_cache.spans(view.queries),
        columns=head_cache.spans(view.keys),
    )
    head_grid(
        [[head.title for head in of_layer] for of_layer in by_layer(heads)],
        name="All heads; select one",
        picked=view.selection.place,
        on_pick=lambda layer, head: state.change(layer=layer, head=head),
        theme=view.theme,
        pictures=head_cache.thumbnails(
            cells,
            renormalise=view.is_renormalised,
            common=False,
            colour=view.selection.colour,
            theme=view.theme,
        ),
        key="picker_grid",
    )


def walk(view: View) -> None:
    """Buttons for the previous and the next head."""
    heads = view.trace.heads(view.kind)
    for step, label, icon in (
        (-1, "Previous", ":material/chevron_left:"),
        (1, "Next", ":material/chevron_right:"),
    ):
        st.button(
            label,
            icon=icon,
            key=f"head_{label.lower()}",
            help=f"Shows {_beside(view.selection.place, step, heads).words}.",
            on_click=_walk,
            args=(step, heads),
        )


def names(view: View) -> None:
    """The selected head's name and what it is based on, once known."""
    with st.container(key="head_name", height=24, border=False):  # reserved, since names come late
        if probes := known_names(view):
            st.caption(literal(of_selected(view, probes, knows_text=False)))


def rows_and_columns(view: View) -> None:
    """The popover of `entries`."""
    with st.popover("Rows and columns", icon=":material/table_rows:", key="rows_and_columns"):
        entries(view)


def entries(view: View) -> None:
    """The template, what rows and columns stand for, and which are left out."""
    has = has_words(view.trace.tokens, view.trace.target_tokens)
    template(view)
    st.segmented_control(
        **widgets.field(
            "unit",
            help="Merges word pieces: their columns are summed and their rows averaged."
            if has
            else "Words are not offered: neither spaces nor the tokenizer tell which tokens of this text make one.",
            required=True,
        ),
        disabled=not has,
    )
    st.segmented_control(**widgets.field("special", required=True))
    st.toggle(**widgets.field("without_first"))
    if view.trace.tokens.text_pair is not None:
        st.segmented_control(**widgets.field("sentences", required=True))


def template(view: View) -> None:
    """The field for the template, if there is a choice."""
    if len(templates := cache.templates(view.selection.source)) > 1:
        st.selectbox(**widgets.field("template", options=templates, width=300))


def _walk(step: int, heads: Sequence[Head]) -> None:
    """Selects the next or previous head, counted from where the last click led, even if that is not drawn yet."""
    neighbour = _beside(state.chosen().place, step, heads)
    state.change(layer=neighbour.layer, head=neighbour.head)


def _beside(place: Head, step: int, heads: Sequence[Head]) -> Head:
    """The head so many steps from this one; if there is no such head, from the last one before it."""
    at = bisect_right(heads, place) - 1
    return heads[(at + step) % len(heads)]
