"""What every page has: its settings, the sidebar, and the trace of what is selected."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import streamlit as st

from attnviz.errors import AttnvizError
from attnviz.figures.heatmap import measure_of
from attnviz.figures.theme import ThemeName
from attnviz.model.catalogue import locate, offer, offers
from attnviz.model.tokenization import has_words, remarks
from attnviz.model.trace import Trace
from attnviz.records import AttentionPattern, Axis, Kind, Measure
from ui.choice import state, widgets
from ui.choice.presets import PRESETS, Preset
from ui.choice.selection import CHOICES, Selection
from ui.export import bundles
from ui.page import errors
from ui.words.literal import literal
from ui.work import cache, downloads

PAGES = (
    ("app.py", "Attention", ":material/grid_on:"),
    ("pages/heads.py", "All heads", ":material/apps:"),
    ("pages/find.py", "Find the head", ":material/search:"),
    ("pages/flow.py", "Token flow", ":material/conversion_path:"),
    ("pages/compare.py", "Compare", ":material/compare_arrows:"),
    ("pages/space.py", "Query-key space", ":material/scatter_plot:"),
    ("pages/maps.py", "All maps", ":material/view_module:"),
    ("pages/steps.py", "Step by step", ":material/stairs:"),
    ("pages/scaling.py", "Scaling", ":material/square_foot:"),
    ("pages/masks.py", "Kinds", ":material/grid_guides:"),
    ("pages/positions.py", "Positions", ":material/format_list_numbered:"),
    ("pages/claims.py", "Claims", ":material/forum:"),
    ("pages/cost.py", "Cost", ":material/monitoring:"),
    ("pages/history.py", "History", ":material/history:"),
    ("pages/collection.py", "Many sentences", ":material/library_books:"),
    ("pages/glossary.py", "Glossary", ":material/dictionary:"),
    ("pages/verification.py", "Verification", ":material/fact_check:"),
)

# What is imported by now stays for good, and Python's own collections need not look through it: full ones over 40
# changes took 9 and 25 ms with this, and one 312 to 350 ms without.
gc.freeze()

_ICON = Path(__file__).parent / "icon.png"
_LOGO = Path(__file__).parent / "logo.svg"
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

    @property
    def measure(self) -> Measure:
        """What cells hold; weights where scores are shown, which only the matrix of one head does."""
        return measure_of(self.selection.show)

    @property
    def queries(self) -> Axis:
        """The rows as they are chosen: tokens or words, perhaps without special ones or of one sentence."""
        return self.axes_of(self.trace)[0]

    @property
    def keys(self) -> Axis:
        """The columns as they are chosen."""
        return self.axes_of(self.trace)[1]

    @property
    def hides_special(self) -> bool:
        """Whether special tokens are left out; they are not where nothing would be left."""
        tokens = self.trace.query_tokens(self.kind), self.trace.key_tokens(self.kind)
        return self.selection.special != "shown" and not any(one.is_special.all() for one in tokens)

    def axes_of(self, trace: Trace) -> tuple[Axis, Axis]:
        """Rows and columns of a trace, chosen as on this screen."""
        queries = Axis.of(trace.query_tokens(self.kind), self.selection.unit)
        keys = Axis.of(trace.key_tokens(self.kind), self.selection.unit)
        if self.hides_special:
            queries, keys = queries.without_special(), keys.without_special()
        if self.selection.sentences != "all" and trace.tokens.text_pair is not None:
            of_query, of_key = ("AB".index(one) for one in self.selection.sentences.split(" → "))
            queries, keys = queries.of_segment(of_query), keys.of_segment(of_key)
        return queries, keys

    def pattern(
        self,
        layer: int | None = None,
        head: int | None = None,
        *,
        together: bool = False,
        renormalise: bool | None = None,
    ) -> AttentionPattern:
        """The matrix of the picked head, or of another, with rows and columns as they are chosen.

        Args:
            together: all heads of the layer as one, instead of one head.
            renormalise: whether rows sum to 1 again after special tokens are hidden; None for what is chosen.
        """
        layer = self.selection.layer if layer is None else layer
        head = self.selection.head if head is None else head
        of_all = together or self.measure == "rollout"
        whole = cache.pattern(self.selection.source, layer, None if of_all else head, self.kind, self.measure)
        if renormalise is None:
            renormalise = self.selection.special == "renormalised" and self.hides_special
        # The matrix may be of an earlier trace of the same text, made for another visitor or kept for longer.
        queries = replace(self.queries, tokens=whole.queries.tokens)
        keys = replace(self.keys, tokens=whole.keys.tokens)
        return whole.arranged(queries, keys, renormalise=renormalise)


def frame(title: str) -> View:
    """Page settings, sidebar and messages; the view of the selected text.

    A text or model that cannot be shown is explained at the top, and the last good view stays.
    """
    with frame_around(title) as view:
        return view


@contextmanager
def frame_around(title: str) -> Iterator[View]:
    """The same around what the page shows first: the rest of the sidebar and the link are sent after it.

    A browser draws what it has before it takes up more, so the picture that the page is for comes before all that does
    not depend on it.
    """
    st.set_page_config(
        page_title=f"{title} · attnviz",
        page_icon=str(_ICON),
        layout="wide",
        initial_sidebar_state=_SIDEBAR_WIDTH,
    )
    st.html(f"<style>{_STYLE.read_text(encoding='utf-8')}</style>")
    st.logo(str(_LOGO), size="large", icon_image=str(_ICON))
    widgets.arrive(title)
    try:
        selection = state.with_opened_bundle(state.current())
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
        if bundle := cache.opened(selection.bundle):
            bundles.banner(bundle)
        view, linked = _view(selection)
    try:
        yield view
    finally:
        state.mirror(linked)
        with where:
            _place(view)
            _rows_and_columns(view)
        with menu:
            _menu()
            bundles.uploader()
        with messages:
            target = view.trace.target_tokens
            notes = [
                *st.session_state.notices,
                *remarks(view.trace.tokens),
                *(remarks(target) if target else ()),
            ]
            if notes:
                st.caption("  \n".join(f":material/info: {literal(note)}" for note in notes))


def _view(selection: Selection) -> tuple[View, Selection]:
    """The view asked for, or the nearest one that works after saying why; and the selection for the link.

    What was typed and picked stays in its fields.
    """
    try:
        chosen = offer(selection.model)
        if selection.bundle or locate(chosen) is not None:
            view = _fitted_view(selection)
            state.settle(view.selection)
            return view, view.selection
        downloads.panel(chosen)
        # The text goes on with the model there was; the link keeps the model that was asked for.
        view = _fitted_view(replace(selection, model=state.last_good().model))
        state.remember(view.selection)
        st.caption(f"What is shown is still the attention of {literal(view.selection.model)}.")
        return view, replace(view.selection, model=selection.model)
    except AttnvizError as error:
        errors.show(error)
    good = state.last_good()
    picks = {} if selection.query is None else {"query": selection.query, "key": selection.key}
    kept = {
        name: getattr(good, name)
        for name in ("model", "text", "second", "cut", "masked", "bundle", "query", "key")
    }
    view = _fitted_view(replace(selection, **(kept | picks)))
    state.remember(view.selection)
    return view, view.selection


def _fitted_view(selection: Selection) -> View:
    trace = cache.trace(selection.source)
    fitted = state.fit(selection, trace)
    kind: Any = fitted.kind or trace.kinds[0]
    theme: ThemeName = "dark" if st.context.theme.type == "dark" else "light"
    return View(selection=fitted, query=fitted.query or 0, trace=trace, kind=kind, theme=theme)


def _sentence() -> None:
    with st.form("sentence", border=False):
        st.text_area(
            "Sentence",
            height=96,
            help="What the model reads: any language, up to the model's limit of tokens.",
            key=widgets.fill("field_text", state.chosen().text),
        )
        st.text_input(
            "Second sentence (optional)",
            help="Read together with the first as a pair; by an encoder-decoder model, as what its decoder has written.",
            key=widgets.fill("field_second", state.chosen().second),
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
        **widgets.field("model"),
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
            **widgets.field("kind", replace(view.selection, kind=kind)),
        )
    n_layers, n_heads = trace.n_layers(kind), trace.n_heads(kind)
    place = st.container(horizontal=True)
    place.number_input(
        f"Layer (0–{n_layers - 1})",
        min_value=0,
        max_value=n_layers - 1,
        step=1,
        help="Which of the model's layers, counted from the text upwards, is shown.",
        **widgets.field("layer", view.selection),
    )
    place.number_input(
        f"Head (0–{n_heads - 1})",
        min_value=0,
        max_value=n_heads - 1,
        step=1,
        help="Which of the layer's heads is shown; each has queries of its own.",
        **widgets.field("head", view.selection),
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


def _rows_and_columns(view: View) -> None:
    """What rows and columns stand for and which are left out, on every page alike."""
    has = has_words(view.trace.tokens, view.trace.target_tokens)
    with st.popover(
        "Rows and columns", icon=":material/table_rows:", width="stretch", key="rows_and_columns"
    ):
        st.segmented_control(
            "One for each",
            CHOICES["unit"],
            required=True,
            format_func={"tokens": "Token", "words": "Word"}.__getitem__,
            disabled=not has,
            help="Joins the pieces of a word: their columns are summed and their rows averaged."
            if has
            else "Words are not offered: neither spaces nor the tokenizer tell which tokens of this text make one.",
            **widgets.field("unit"),
        )
        st.segmented_control(
            "Special tokens",
            CHOICES["special"],
            required=True,
            format_func=str.capitalize,
            help="Hides the rows and columns of [CLS], [SEP] and their like; renormalised rows sum to 1 again.",
            **widgets.field("special"),
        )
        if view.trace.tokens.text_pair is not None:
            st.segmented_control(
                "Sentences",
                CHOICES["sentences"],
                required=True,
                format_func=str.capitalize,
                help="Leaves the queries and keys of one sentence each: A is the first, B the second.",
                **widgets.field("sentences"),
            )


def hidden_note(view: View) -> str:
    """What the choice of rows and columns leaves out or joins, in a sentence or two; empty for nothing."""
    selection, notes = view.selection, []
    if selection.unit == "words":
        notes.append("Pieces of a word are one row and one column: columns are summed, rows averaged.")
    if view.hides_special:
        notes.append("Special tokens are hidden.")
    elif selection.special != "shown":
        notes.append("Special tokens are shown: without them nothing would be left.")
    if selection.sentences != "all":
        of_query, of_key = ({"A": "first", "B": "second"}[one] for one in selection.sentences.split(" → "))
        notes.append(f"Only queries of the {of_query} sentence and keys of the {of_key} are shown.")
    return " ".join(notes)


def _walk(step: int, n_layers: int, n_heads: int) -> None:
    """The next head or the one before, from where the last click led, even if that is not drawn yet."""
    chosen = state.chosen()
    layer, head = min(chosen.layer, n_layers - 1), min(chosen.head, n_heads - 1)
    layer, head = divmod((layer * n_heads + head + step) % (n_layers * n_heads), n_heads)
    state.change(layer=layer, head=head)


def _menu() -> None:
    params = st.session_state.get("params") or {}
    columns = st.columns(2, gap="small")
    for number, (page, label, icon) in enumerate(PAGES):
        columns[number * 2 // len(PAGES)].page_link(page, label=label, icon=icon, query_params=params)
