"""Export: pictures, numbers, a bundle, a link and Python for what is on the page."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import streamlit as st
from plotly.graph_objects import Figure

from attnviz.bundle.bundle import Bundle
from attnviz.bundle.writing import PAGE_NUMBERS, POINTS, PageContent, write_bundle
from attnviz.records import LONG
from ui.choice import state
from ui.components.save_picture import save_picture
from ui.part import Drawn, Picture, Sheet
from ui.runtime import cache
from ui.runtime.uploads import opened
from ui.session import Link, of_session
from ui.shell.export.captions import caption
from ui.shell.export.citation import bibtex
from ui.shell.export.long_matrix import page_button, rows_csv, rows_in_sight, rows_named
from ui.shell.export.recipe import python_lines
from ui.shell.view import View
from ui.streamlit_fixes.redrawn_block import redrawn_block


@dataclass(slots=True)
class Taken:
    """What the export of a page offers."""

    pictures: list[Picture] = field(default_factory=list)
    figures: dict[str, Figure | str | Callable[[], Figure | str]] = field(default_factory=dict)
    """Plotly figures, or SVGs as text, for a bundle's page, or functions that make them, by title."""
    sheet: Sheet = field(default_factory=Sheet)
    screen: object = None
    """What the sheet's functions are called with; None while nothing of it is drawn."""

    def tell(self, sheet: Sheet, screen: object) -> None:
        """From now on the numbers of this sheet are there."""
        self.sheet, self.screen = sheet, screen

    def add(self, pictures: tuple[Picture, ...], drawn: Drawn) -> None:
        """Adds the pictures that a block has drawn."""
        if drawn is not None:
            pictures = tuple(picture for picture in pictures if picture.key in drawn)
        self.pictures += pictures
        if isinstance(drawn, Mapping):
            self.figures |= {
                picture.name: figure for picture in pictures if (figure := drawn[picture.key]) is not None
            }

    def of(self, name: str) -> Any:
        """The sheet's function of this name for its screen; None where there is none."""
        function = None if self.screen is None else getattr(self.sheet, name)
        return function and partial(function, self.screen)


def take(view: Callable[[], View], taken: Taken) -> None:
    """The popover at the top right of a page, wherever this is called; its content is drawn only while it is open.

    Args:
        view: what the page shows by then.
    """

    def insides() -> None:
        shown = view()
        if not shown.is_there:
            st.caption("The matrix is not computed yet. Close this, and open it again once it is drawn.")
            return
        if isinstance(taken.screen, View):
            taken.screen = shown
        selection = shown.selection
        stem = f"attnviz-layer{selection.layer}-head{selection.head}"
        about, notes, python, csv = (taken.of(name) for name in ("about", "notes", "python", "csv"))
        of_long = shown.trace.is_long(shown.kind)
        told = notes() if notes else {}
        save_picture(
            {picture.key: picture.name for picture in taken.pictures},
            captions={
                picture.key: caption(shown, picture, about() if about else "", told.get(picture.key, ""))
                for picture in taken.pictures
            },
            stem=stem,
            python=python() if python else python_lines(shown, shown.key),
            citation=bibtex(shown),
            link=bool(of_session(Link).params) and not selection.bundle and state.fits_link(selection),
            theme=shown.theme,
        )
        if of_long and csv is None:
            rows = rows_in_sight(shown)
            make = partial(rows_csv, shown, rows)
            csv_button(rows_named(rows), make, stem=stem, key="take_csv", width="stretch")
            page_button(shown, stem=stem)
            return
        numbers = taken.sheet.numbers if csv else "Matrix"
        csv_button(numbers, csv or partial(_matrix, shown), stem=stem, key="take_csv", width="stretch")
        if of_long:
            st.caption(f"A bundle is made of texts of up to {LONG:,} tokens.")
            return
        st.download_button(
            "Download bundle (.zip)",
            data=partial(_bundle_file, _bundle_maker(shown), taken),
            file_name=f"{stem}.zip",
            mime="application/zip",
            on_click="ignore",
            icon=":material/folder_zip:",
            width="stretch",
            key="take_bundle",
            help="A page that opens without a network, queries, keys, values and weights as NPZ, the matrix and the page's numbers as CSV, "
            "and the provenance of all. “More input”, beside the sentence, shows it here again.",
        )

    def popover() -> None:
        with st.container(key="take"):
            drawer = st.popover(
                "Export", icon=":material/download:", key="take_popover", on_change=state.hold
            )
        if drawer.open:
            with drawer:
                insides()

    redrawn_block(popover, None)  # opening it draws nothing else


def csv_button(
    numbers: str,
    make: Callable[[], bytes],
    *,
    stem: str,
    key: str,
    width: Literal["stretch", "content"] = "content",
) -> None:
    """A button that saves numbers as CSV, made when it is clicked."""
    st.download_button(
        f"{numbers} as CSV",
        data=make,
        file_name=f"{stem}.csv",
        mime="text/csv",
        on_click="ignore",
        icon=":material/table:",
        width=width,
        key=key,
        help="Downloads the numbers in full, for a spreadsheet or a program.",
    )


def _matrix(view: View) -> bytes:
    return view.pattern().csv(scores=view.selection.show == "scores")


def _bundle_file(make: Callable[[], Bundle], taken: Taken) -> bytes:
    tables = {PAGE_NUMBERS: taken.of("csv"), POINTS: taken.of("points")}
    content = PageContent(
        figures={title: of() if callable(of) else of for title, of in taken.figures.items()},
        tables={name: made for name, of in tables.items() if of and (made := of()) is not None},
    )
    return write_bundle(make(), content)


def _bundle_maker(view: View) -> Callable[[], Bundle]:
    """A function that makes the bundle of a view in a thread without a session; session data is looked up here."""
    selection = view.selection
    bundle, shown = opened(selection.bundle), selection.show
    if shown == "alti" or shown == "value_zeroing":  # which take the model, and a bundle has a trace alone
        shown = "weights"

    def make() -> Bundle:
        return Bundle(
            trace=view.trace,
            report=cache.report(selection.source) if bundle is None else bundle.report,
            kind=view.kind,
            layer=selection.layer,
            head=selection.head,
            queries=view.queries,
            keys=view.keys,
            renormalised=view.is_renormalised,
            query=view.query,
            key=view.key,
            show=shown,
            colour=selection.colour,
            theme=view.theme,
            page=view.part.place,
            settings={name: value for name, value in selection.to_params().items() if name != "bundle"},
            weights_sha256=cache.model(selection.model).weights_sha256
            if bundle is None
            else bundle.weights_sha256,
        )

    return make
