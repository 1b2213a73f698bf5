"""What every page has: its heading, the controls above it, the menu beside it, and the trace of the selected text."""

from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st

from attnviz.errors import AttnvizError
from attnviz.figures.theme import ThemeName
from attnviz.model.catalogue import locate, offer, offers
from attnviz.model.tokenization import remarks
from attnviz.records import LONG, MIXINGS
from ui.choice import state
from ui.choice.fitting import readable
from ui.choice.selection import Selection
from ui.components.page import drawn, whole_page
from ui.components.present import present
from ui.part import Part, part_named, room_of
from ui.runtime import cache, events
from ui.runtime.uploads import opened
from ui.session import Link, of_session
from ui.shell import bundles, controls, downloads, errors, long_text, navigation, showcase
from ui.shell.glossary_search import glossary_search
from ui.shell.language_model import lend_language_model, lent_note
from ui.shell.lesson_line import lesson_line
from ui.shell.navigation import Places
from ui.shell.view import View
from ui.streamlit_fixes.redrawn_block import redrawn_block
from ui.streamlit_fixes.sent_values import take_in_whole_and_read_alone
from ui.streamlit_fixes.stale_values import open_page
from ui.words.findings import finding, place, strongest_key
from ui.words.literal import literal

take_in_whole_and_read_alone()

_ICON = "data:image/png;base64," + b64encode(Path(__file__).with_name("icon.png").read_bytes()).decode(
    "ascii"
)
"""Sent inline: the address of a file that Streamlit serves is briefly missing while one page replaces another."""
_LOGO = Path(__file__).parent / "logo.svg"
_SIDEBAR_WIDTH = 220  # px, for the longest name of a room


@contextmanager
def shell(page: Part) -> Iterator[None]:
    """The parts of a page that do not depend on the selection, around all others."""
    _begin(page)
    try:
        yield
    finally:
        with st.sidebar:
            if "sentence" not in page.asks and page.shows_text:
                controls.more_input(has_second=False)
            glossary_search()


@contextmanager
def selected(page: Part) -> Iterator[View | None]:
    """All that changes with the selection, around the page's pictures; redrawn without its `shell`.

    A browser draws what it has before it processes more, so layer, head and link are sent after the pictures. Yields None
    after showing why nothing can be drawn: it never draws anything but the text and model in the fields.
    """
    is_stage = page.is_stage
    examples_place = head_place = None
    controls_place = st.container(key="controls", gap="small")
    with controls_place:
        top = st.container()
        try:
            offers()
            selection = _selection(page)
        except AttnvizError as error:  # the operator's list of models is wrong: nothing to fall back on
            navigation.heading(page)
            errors.show(error)
            st.stop()
        if "sentence" in page.asks:  # before the heading, which stands below it
            with top:
                examples_place = controls.sentence()
        places = navigation.heading(page, in_lesson=bool(selection.lesson))
        lesson_place = st.empty()
        if page.asks and not is_stage:
            head_place = model_place(page)
    showcase_place = st.container(key="showcase")
    if selection.lesson:
        with lesson_place.container(key="lesson_line"):
            lesson_line(page, selection)
    messages = st.container(key="messages")
    with messages:
        if bundle := opened(selection.bundle):
            bundles.banner(bundle)
        view = _view(page, selection, places, tells_progress=True)
    shown = selection if view is None else view.selection
    if view is None:  # the controls let the visitor fix the text or the model
        with controls_place:
            with top:
                examples_place = examples_place or controls.sentence(has_menu=False)
            head_place = head_place or model_place(page)
    if examples_place is not None:
        with examples_place:
            controls.examples(
                shown.model,
                fills_blanks=view is not None and cache.fills_blanks(view.selection.source),
                reads=None if view is None else cache.reads(view.selection.source),
            )
    navigation.parts(page, places.parts)
    try:
        if view is not None:
            if not selection.lesson and not is_stage:  # which has examples of its own
                with showcase_place:
                    showcase.offer(page.name, view)
            is_short = len(view.query_tokens) <= LONG
            if is_short and "head" in page.asks and not page.has_finding and not is_stage:
                _selected_finding(view)
        yield view
    finally:
        if view is not None and head_place is not None:
            with head_place:
                _choices_of_head(page, view)
        if view is None or not is_stage:  # the stage's block does so
            _end(shown, view, messages)


def redrawn_with_head(view: View, draw: Callable[[View], None]) -> None:
    """Draws a block that a change of head, query or key redraws alone; another change redraws the page.

    Args:
        view: what the page around it shows.
        draw: draws the block; called with what is selected by then.
    """
    page = view.part
    around = _around(view.selection)
    views = iter([view])

    def block() -> None:
        now = next(views, None) or _view(page, _selection(page), view.places)
        if now is not None and _around(now.selection) != around:
            st.rerun()
        try:
            if now is not None:
                draw(now)
        finally:
            _end(state.chosen(), now)

    redrawn_block(block, None)


def newest(view: View) -> View:
    """The view of what is selected by now, for what is not redrawn with it."""
    return _fitted_view(view.part, _readable(state.chosen()), view.places)


def _around(selection: Selection) -> tuple[object, ...]:
    """What of a selection is shown around the stage's block; a lesson and the tour say where all of it leads."""
    is_led = bool(selection.lesson or selection.tour)
    return (selection.source, selection.kind, is_led and selection)


def _selection(page: Part) -> Selection:
    """What is selected now, at the beginning of a run."""
    events.draws_selection()
    is_asked = page.name != of_session(Link).page and not state.link_names_model()
    open_page(page.name, state.was_clicked())
    selection = state.with_opened_bundle(state.current(page.name))
    state.take_back(page.name)
    if page.predicts and (is_asked or page.predicts == "writes") and not selection.bundle:
        lend_language_model(page)
    return state.chosen()


def put_in_link(shown: Selection) -> None:
    """Puts what is shown into the link; a page whose end takes long does so before."""
    chosen = state.chosen()
    state.mirror(replace(shown, records=chosen.records, tour=chosen.tour))  # pages change these


def _end(shown: Selection, view: View | None, messages: AbstractContextManager[object] | None = None) -> None:
    """Puts what is shown into the link, says what is to be known about text and selection, and counts the run as drawn."""
    put_in_link(shown)
    read = () if view is None else filter(None, (view.trace.tokens, view.trace.target_tokens))
    notes = [
        *lent_note(part_named(of_session(Link).page)),
        *state.notices(),
        *(note for tokens in read for note in remarks(tokens)),
    ]
    if notes:
        with messages or st.container(key="notes"):
            st.caption("  \n".join(f":material/info: {literal(note)}" for note in notes))
    drawn()


def _begin(page: Part) -> None:
    """Sends what every page sends first."""
    st.set_page_config(
        page_title=page.title,
        page_icon=_ICON,
        layout="wide",
        initial_sidebar_state=_SIDEBAR_WIDTH,
    )
    st.logo(str(_LOGO), size="large", icon_image=_ICON)
    room = room_of(page)
    with st.sidebar:
        whole_page(  # first in the sidebar, to set its width before the page is drawn beside it
            page.name,
            room.name if room.in_menu else "",
            theme=_theme(),
            n_opened=bundles.n_opened(),
            on_change=state.hold,
        )
        navigation.menu(page)
    present()


@contextmanager
def heading_alone(page: Part) -> Iterator[None]:
    """The heading around what shows no text of the visitor's."""
    open_page(page.name, state.was_clicked())
    state.current(page.name)
    places = navigation.heading(page)
    yield
    navigation.parts(page, places.parts)
    drawn()


def model_place(page: Part) -> AbstractContextManager[object]:
    """The place for model and head; the model's field is drawn at once, the head's once the heads are known."""
    key = "place" if "head" in page.asks else "model_place"  # the latter needs less room
    place = st.container(key=key, horizontal=True, vertical_alignment="center", gap="small")
    with place:
        controls.model()
    return place


def _choices_of_head(page: Part, view: View) -> None:
    """Those controls for kind, head, rows and columns that affect this page; on the stage most are in the drawer."""
    if not page.is_stage:
        controls.place(view)
        if "head" in page.asks:
            controls.head(view)
    if "head" in page.asks:
        controls.walk(view)
    if not page.is_stage:
        if "rows" in page.asks:
            controls.rows_and_columns(view)
        else:
            controls.template(view)
        if "head" in page.asks:
            controls.names(view)


def _selected_finding(view: View) -> None:
    """The selected query's finding; shown only on a phone, where the page's own numbers are out of sight."""
    pattern = cache.pattern(view.selection.source, *view.selection.place, view.kind, "weights")
    key = strongest_key(pattern, view.query) if view.selection.key is None else view.selection.key
    with st.container(key="selected_finding"):
        st.markdown(f"{place(pattern)}: {literal(finding(pattern, view.query, key))}")


def _view(page: Part, selection: Selection, places: Places, *, tells_progress: bool = False) -> View | None:
    """The view of the selection; None after showing why it cannot be drawn, or offering the model's download.

    There is no fallback. What was typed and selected stays in its fields and in the link.

    Args:
        tells_progress: whether how far a long text is read is shown, too.
    """
    with errors.explained():
        if not selection.bundle and locate(offer(selection.model)) is None:
            downloads.panel(offer(selection.model))
            return None
        selection = _readable(selection)
        if (n_token := cache.n_token(selection.source)) > page.longest:
            long_text.refuse(page, n_token)
            return None
        try:
            view = _fitted_view(page, selection, places)
        except cache.StillReadError as error:
            if tells_progress:
                long_text.progress(error.source, selection.layer, None)
            return None
        state.settle(view.selection)
        if tells_progress and (n_layer := view.selection.layers):
            long_text.progress(view.selection.source, view.selection.layer, n_layer)
        return view
    return None


def _readable(selection: Selection) -> Selection:
    """The selection with a language and a template that its model has."""
    if selection.bundle:
        return selection
    return state.noted(
        *readable(selection, cache.languages(selection.source), cache.templates(selection.source))
    )


def _fitted_view(page: Part, selection: Selection, places: Places) -> View:
    is_long = cache.is_long(selection.source)
    selection = long_text.with_layers(selection) if is_long else replace(selection, layers=0)
    trace = cache.trace(selection.source)
    mixings = cache.mixings(selection.source) if selection.show in MIXINGS else ()
    fitted = state.fit(selection, trace, mixings)
    kind: Any = fitted.kind or trace.kinds[0]
    return View(
        part=page,
        selection=fitted,
        query=fitted.query or 0,
        trace=trace,
        kind=kind,
        theme=_theme(),
        places=places,
    )


def _theme() -> ThemeName:
    """The theme that the visitor's browser or settings ask for."""
    return "dark" if st.context.theme.type == "dark" else "light"
