"""What every page has: its settings, the sidebar, and the trace of what is selected."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import streamlit as st

from attnviz.catalogue import locate, offer, offers
from attnviz.errors import AttnvizError
from attnviz.figures.theme import ThemeName
from attnviz.records import Kind
from attnviz.tokenization import remarks
from attnviz.trace import Trace
from ui import cache, downloads, errors, state
from ui.presets import PRESETS, Preset
from ui.state import Selection
from ui.text import literal

PAGES = (
    ("app.py", "Attention", ":material/grid_on:"),
    ("pages/verification.py", "Verification", ":material/fact_check:"),
)


_ICON = Path(__file__).parent / "icon.png"
_STYLE = Path(__file__).parent / "frame.css"
_SIDEBAR_WIDTH = 340  # px


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a page draws: the selection as it is really shown, and its trace."""

    selection: Selection
    query: int
    """Position of the picked query."""
    trace: Trace
    kind: Kind
    theme: ThemeName


def frame(title: str) -> View:
    """Page settings, sidebar and messages; the view of the selected text.

    A text or model that cannot be shown is explained at the top, and the last good view stays.
    """
    st.set_page_config(
        page_title=f"{title} · attnviz",
        page_icon=str(_ICON),
        layout="wide",
        initial_sidebar_state=_SIDEBAR_WIDTH,
    )
    st.html(f"<style>{_STYLE.read_text(encoding='utf-8')}</style>")
    state.arrive(title)
    try:
        selection = state.current()
    except AttnvizError as error:  # the operator's list of models is wrong: there is nothing to fall back on
        errors.show(error)
        st.stop()
    with st.sidebar:
        _sentence()
        _model()
        where = st.container()
        menu = st.container()
    messages = st.container()
    with messages:
        view = _view(selection)
    with where:
        _place(view)
    with menu:
        _menu()
    with messages:
        target = view.trace.target_tokens
        notes = [*st.session_state.notices, *remarks(view.trace.tokens), *(remarks(target) if target else ())]
        if notes:
            st.caption("  \n".join(f":material/info: {literal(note)}" for note in notes))
    return view


def _view(selection: Selection) -> View:
    """The view asked for, or the nearest one that works after saying why it is shown instead.

    What was typed and picked stays in its fields.
    """
    try:
        chosen = offer(selection.model)
        if locate(chosen) is not None:
            view = _fitted_view(selection)
            state.settle(view.selection)
            return view
        downloads.panel(chosen)
        # The text goes on with the model there was; the link keeps the model that was asked for.
        view = _fitted_view(replace(selection, model=state.last_good().model))
        state.remember(view.selection)
        state.mirror(replace(view.selection, model=selection.model))
        st.caption(f"What is shown is still the attention of {literal(view.selection.model)}.")
        return view
    except AttnvizError as error:
        errors.show(error)
    good = state.last_good()
    picks = {} if selection.query is None else {"query": selection.query, "key": selection.key}
    kept = {name: getattr(good, name) for name in ("model", "text", "second", "cut", "query", "key")}
    view = _fitted_view(replace(selection, **(kept | picks)))
    state.remember(view.selection)
    state.mirror(view.selection)
    return view


def _fitted_view(selection: Selection) -> View:
    trace = cache.trace(selection.source)
    fitted = state.fit(selection, trace)
    kind: Any = fitted.kind or trace.kinds[0]
    theme: ThemeName = "dark" if st.context.theme.type == "dark" else "light"
    return View(selection=fitted, query=fitted.query or 0, trace=trace, kind=kind, theme=theme)


def _sentence() -> None:
    st.markdown("### attnviz")
    with st.form("sentence", border=False):
        st.text_area(
            "Sentence",
            height=96,
            help="What the model reads: any language, up to the model's limit of tokens.",
            key=state.fill("text"),
        )
        st.text_input(
            "Second sentence (optional)",
            help="Read together with the first as a pair; by an encoder-decoder model, as what its decoder has written.",
            key=state.fill("second"),
        )
        st.form_submit_button(
            "Show attention",
            type="primary",
            width="stretch",
            on_click=_take_sentence,
            key="show_attention",
            help="Shows how the model reads this sentence; Ctrl and Enter in the field do the same.",
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
        help="Puts an example in place of your sentence.",
    )


def _take_sentence() -> None:
    text, second = st.session_state.field_text, st.session_state.field_second
    state.hold()
    if (text, second) != (state.chosen().text, state.chosen().second):
        state.change(text=text, second=second, cut=False, query=None, key=None)


def _take_preset() -> None:
    preset: Preset | None = st.session_state.preset_choice
    if preset is not None:
        st.session_state.preset_choice = None  # so that the same example can be picked again
        state.choose_preset(preset)


def _model() -> None:
    names = [one.name for one in offers()]
    descriptions = {one.name: one.description for one in offers()}
    st.selectbox(
        "Model",
        names,
        help="Whose attention is shown. "
        + "; ".join(f"{name}: {descriptions[name]}" for name in names if descriptions[name])
        + ".",
        **state.field("model"),
    )


def _place(view: View) -> None:
    """Layer and head, with buttons that walk through the heads."""
    kind, trace = view.kind, view.trace
    if len(trace.kinds) > 1:
        st.segmented_control(
            "Kind of attention",
            trace.kinds,
            required=True,
            help="Encoder: all tokens see all; decoder: earlier ones only; cross: from decoder to encoder.",
            **state.field("kind", replace(view.selection, kind=kind)),
        )
    n_layers, n_heads = trace.n_layers(kind), trace.n_heads(kind)
    place = st.container(horizontal=True)
    place.number_input(
        f"Layer (0–{n_layers - 1})",
        min_value=0,
        max_value=n_layers - 1,
        step=1,
        help="Which of the model's layers, counted from the text upwards, is shown.",
        **state.field("layer", view.selection),
    )
    place.number_input(
        f"Head (0–{n_heads - 1})",
        min_value=0,
        max_value=n_heads - 1,
        step=1,
        help="Which of the layer's heads is shown; each has queries, keys and values of its own.",
        **state.field("head", view.selection),
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


def _walk(step: int, n_layers: int, n_heads: int) -> None:
    """The next head or the one before, from where the last click led, even if that is not drawn yet."""
    chosen = state.chosen()
    layer, head = min(chosen.layer, n_layers - 1), min(chosen.head, n_heads - 1)
    layer, head = divmod((layer * n_heads + head + step) % (n_layers * n_heads), n_heads)
    state.change(layer=layer, head=head)


def _menu() -> None:
    params = st.session_state.get("params") or {}
    st.divider()
    for page, label, icon in PAGES:
        st.page_link(page, label=label, icon=icon, query_params=params)
