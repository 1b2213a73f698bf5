"""What every page has: its heading, the controls above it, the menu beside it, and the trace of what is selected."""

from base64 import b64encode
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st

from attnviz.errors import AttnvizError
from attnviz.figures.theme import ThemeName
from attnviz.model.catalogue import locate, offer, offers
from attnviz.model.tokenization import remarks
from ui.choice import state
from ui.choice.selection import Selection
from ui.components.drawn import drawn
from ui.components.enter_runs import enter_runs
from ui.components.present import present
from ui.components.reconnected import reconnected
from ui.components.taps import taps
from ui.components.term_cards import term_cards
from ui.components.theme_change import theme_change
from ui.components.tooltips import tooltips
from ui.runtime import cache, events
from ui.runtime.opened_bundles import opened
from ui.shell import bundles, controls, downloads, errors, navigation, showcase
from ui.shell.glossary_search import glossary_search
from ui.shell.lesson_line import lesson_line
from ui.shell.navigation import Part, Places
from ui.shell.view import View
from ui.streamlit_fixes.sent_values import take_in_whole_and_read_alone
from ui.streamlit_fixes.stale_values import open_page
from ui.words.findings import finding, place, strongest_key
from ui.words.literal import literal

take_in_whole_and_read_alone()

_ICON = "data:image/png;base64," + b64encode(Path(__file__).with_name("icon.png").read_bytes()).decode(
    "ascii"
)
"""Sent as it is: the address of a file that Streamlit serves is not there for a moment while a page gives way to the next."""
_LOGO = Path(__file__).parent / "logo.svg"
WITHOUT_FINDING = ("Scaling", "Kinds of attention", "Myths", "Verification")
"""Parts that a head is selected for, and that do not begin with what it does."""
_SIDEBAR_WIDTH = 220  # px, for the longest name of a room


def frame(name: str) -> View:
    """Page settings, heading, controls, menu and messages of the page of this name; the view of the selected text.

    Where a text or model cannot be shown, the page ends with why: what is drawn is of the text and model in their fields, or
    nothing is.
    """
    with frame_around(name) as view:
        return view


@contextmanager
def frame_around(name: str) -> Iterator[View]:
    """The same around what the page shows first: layer, head, menu and link are sent after it.

    A browser draws what it has before it takes up more, so the picture that the page is for comes before all that does
    not depend on it.
    """
    with shell(name) as menu, selected(name, menu) as view:
        if view is not None:
            yield view
    if view is None:  # after all that does not depend on it: nothing is drawn once Streamlit was told to stop
        st.stop()


@contextmanager
def shell(name: str) -> Iterator[AbstractContextManager[object]]:
    """What of a page stays whatever is selected, around all else; gives the place for the menu."""
    menu = _begin(navigation.part_named(name))
    try:
        yield menu
    finally:
        with st.sidebar:
            reconnected(on_change=state.hold)
            bundles.uploader()
            controls.own_model()  # beside the model's field it would put the controls on one more line
            glossary_search()


@contextmanager
def selected(name: str, menu: AbstractContextManager[object]) -> Iterator[View | None]:
    """All that changes with the selection, around what the page shows first; a page may draw it anew without its `shell`.

    None after saying why nothing can be shown.
    """
    page = navigation.part_named(name)
    events.draws_selection()
    open_page(page.name, state.was_clicked())
    is_stage = page.address == ""
    examples_place = head_place = None
    controls_place = st.container(key="controls", gap="small")
    with controls_place:
        top = st.container()
        places = navigation.heading(page)
        lesson_place = st.empty()
        try:
            offers()
            selection = state.with_opened_bundle(state.current(page.name))
        except AttnvizError as error:  # the operator's list of models is wrong: nothing to fall back on
            errors.show(error)
            st.stop()
        if "sentence" in page.asks:
            with top:
                examples_place = controls.sentence()
        if page.asks and not is_stage:
            head_place = _head_place(page)
    showcase_place = st.container(key="showcase")
    if selection.lesson:
        with lesson_place.container(key="lesson_line"):
            lesson_line(page, selection)
    messages = st.container()
    stage: AbstractContextManager[object] = nullcontext()
    rail = None
    if is_stage:
        with st.container(key="stage"):
            stage, beside = st.columns((3, 1), gap="medium")
        with beside:
            head_place = _head_place(page)
            rail = st.container(key="rail")
    with messages:
        if bundle := opened(selection.bundle):
            bundles.banner(bundle)
        view = _view(page.place, selection, places, rail)
    if view is None:  # whatever is wrong with text or model can be put right here
        with controls_place:
            with top:
                examples_place = examples_place or controls.sentence()
            head_place = head_place or _head_place(page)
    if examples_place is not None:
        with examples_place:
            controls.examples(
                (selection if view is None else view.selection).model,
                fills_blanks=view is not None and cache.fills_blanks(view.selection.source),
            )
    try:
        if view is None:
            yield None
        else:
            if not selection.lesson:
                with showcase_place:
                    showcase.offer(page.name, view)
            if page.name in WITHOUT_FINDING:
                _selected_finding(view)
            with stage:
                yield view
    finally:
        shown = selection if view is None else view.selection
        chosen = state.chosen()
        state.mirror(replace(shown, b=chosen.b, tour=chosen.tour))  # which their pages change
        if view is not None and head_place is not None:
            with head_place:
                _choices_of_head(page, view)
        _links(navigation.part_shown(page, shown), shown, places, menu)
        with messages:
            read = () if view is None else filter(None, (view.trace.tokens, view.trace.target_tokens))
            notes = [*state.notices(), *(note for tokens in read for note in remarks(tokens))]
            if notes:
                st.caption("  \n".join(f":material/info: {literal(note)}" for note in notes))


def _begin(page: Part) -> AbstractContextManager[object]:
    """What every page sends first; the place for its menu."""
    st.set_page_config(
        page_title=page.title,
        page_icon=_ICON,
        layout="wide",
        initial_sidebar_state=_SIDEBAR_WIDTH,
    )
    st.logo(str(_LOGO), size="large", icon_image=_ICON)
    with st.sidebar:
        taps(
            bundles.n_opened()
        )  # the first of the sidebar: it takes its width before the page is drawn beside it
        theme_change(_theme(), on_change=state.hold)
        tooltips()
        term_cards()
        enter_runs("field_text", "field_second")
        menu = st.container()
    present()
    return menu


@contextmanager
def page_alone(page: Part) -> Iterator[None]:
    """Page settings, heading and menu around a page that shows no text of the reader's; its link is kept for the menu."""
    menu = _begin(page)
    open_page(page.name, state.was_clicked())
    selection = state.current(page.name)
    places = navigation.heading(page)
    yield
    _links(page, selection, places, menu)
    with st.sidebar:
        reconnected(on_change=state.hold)
        glossary_search()


def _links(here: Part, selection: Selection, places: Places, menu: AbstractContextManager[object]) -> None:
    """The links to all parts, and that this run is drawn."""
    with menu:
        rooms = st.container(key="menu", gap=None)
        drawn()
    navigation.links(here, selection, places.parts, rooms)


def _head_place(page: Part) -> AbstractContextManager[object]:
    """Where model and head are selected; the model at once, the head when it is known which there are."""
    key = "place" if "head" in page.asks else "model_place"  # which needs less room
    place = st.container(key=key, horizontal=True, vertical_alignment="center", gap="small")
    with place:
        controls.model()
    return place


def _choices_of_head(page: Part, view: View) -> None:
    """What of the kind of attention, head, rows and columns matters here; on the stage most is in its drawer."""
    if page.filled is None:
        controls.place(view)
        if "head" in page.asks:
            controls.head(view)
    if "head" in page.asks:
        controls.walk(view)
    if page.filled is None:
        if "rows" in page.asks:
            controls.rows_and_columns(view)
        else:
            controls.template(view)
        if "head" in page.asks:
            controls.names(view)


def _selected_finding(view: View) -> None:
    """What the selected query gives, in words; only a phone shows it, where the page's own numbers are out of sight."""
    pattern = cache.pattern(view.selection.source, *view.selection.place, view.kind, "weights")
    key = strongest_key(pattern, view.query) if view.selection.key is None else view.selection.key
    with st.container(key="selected_finding"):
        st.markdown(f"{place(pattern)}: {literal(finding(pattern, view.query, key))}")


def _view(
    page: str, selection: Selection, places: Places, rail: AbstractContextManager[object] | None
) -> View | None:
    """The view of what is chosen; None after saying why it cannot be shown, or offering the model's download.

    Nothing stands in for it. What was typed and selected stays in its fields and in the link.
    """
    with errors.explained():
        if selection.bundle or locate(offer(selection.model)) is not None:
            view = replace(_fitted_view(page, selection, places), rail_place=rail)
            state.settle(view.selection)
            return view
        downloads.panel(offer(selection.model))
    return None


def _fitted_view(page: str, selection: Selection, places: Places) -> View:
    if not selection.bundle:
        selection = state.fit_languages(selection, cache.languages(selection.source))
        selection = state.fit_template(selection, cache.templates(selection.source))
    trace = cache.trace(selection.source)
    fitted = state.fit(selection, trace)
    kind: Any = fitted.kind or trace.kinds[0]
    return View(
        page=page,
        selection=fitted,
        query=fitted.query or 0,
        trace=trace,
        kind=kind,
        theme=_theme(),
        verdict_place=places.verdict,
        lead_place=places.lead,
    )


def _theme() -> ThemeName:
    """What the visitor's browser or settings ask for."""
    return "dark" if st.context.theme.type == "dark" else "light"
