"""Export: pictures, numbers, a bundle, a link and Python for what is on the page."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal

import streamlit as st
from plotly.graph_objects import Figure

from attnviz.bundle.bundle import Bundle
from attnviz.bundle.writing import PAGE_NUMBERS, POINTS, PageContent, write_bundle
from attnviz.records.table import matrix_csv
from ui.choice import state
from ui.components.save_picture import save_picture
from ui.runtime import cache
from ui.runtime.opened_bundles import opened
from ui.session import Link, of_session
from ui.shell.export.captions import caption
from ui.shell.export.citation import bibtex
from ui.shell.export.recipe import python_lines
from ui.shell.view import View
from ui.streamlit_fixes.redrawn_block import redrawn_block
from ui.words.findings import strongest_key


def take(
    view: View | Callable[[], View],
    figures: Mapping[str, str],
    *,
    csv: Callable[[], bytes] | None = None,
    numbers: str = "Matrix",
    python: str | None = None,
    about: str = "",
    notes: Mapping[str, str] | Callable[[View], Mapping[str, str]] | None = None,
    drawn: Callable[[], Mapping[str, Figure | str]] | None = None,
    points: Callable[[], bytes] | None = None,
) -> None:
    """The popover at the top right of a page, wherever this is called; its content is drawn only while it is open.

    Args:
        view: what the page shows; a function where the popover stays while that changes.
        figures: name of each picture on the page, by the key of its chart or component.
        csv: makes the page's numbers on request; None for the matrix of the selected head.
        numbers: name of these numbers.
        python: lines that draw the page's picture; None for the lines of the matrix.
        about: what the caption of a saved picture says besides text, model and head.
        notes: by key, how each map was made and how reliable it is, or a function that says so; also part of its caption.
        drawn: draws the page's figures for a bundle, by title: Plotly figures, or SVGs as text. The page's numbers go along.
        points: makes the CSV of a map's points for a bundle.
    """

    def insides() -> None:
        shown = view() if callable(view) else view
        selection, key = shown.selection, _key(shown)
        stem = f"attnviz-layer{selection.layer}-head{selection.head}"
        told = notes(shown) if callable(notes) else notes or {}
        save_picture(
            figures,
            captions={
                chart: caption(shown, chart, name, about, told.get(chart, ""))
                for chart, name in figures.items()
            },
            stem=stem,
            python=python_lines(shown, key) if python is None else python,
            citation=bibtex(shown),
            link=bool(of_session(Link).params) and not selection.bundle,
            theme=shown.theme,
        )
        csv_button(numbers, csv or partial(_matrix, shown), stem=stem, key="take_csv", width="stretch")
        st.download_button(
            "Download bundle (.zip)",
            data=partial(_bundle_file, _bundle_maker(shown, key), drawn, csv, points),
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


def _key(view: View) -> int:
    if view.selection.key is not None:
        return view.selection.key
    return strongest_key(view.pattern(), view.query)


def _matrix(view: View) -> bytes:
    return matrix_csv(view.pattern(), scores=view.selection.show == "scores")


def _bundle_file(
    make: Callable[[], Bundle],
    drawn: Callable[[], Mapping[str, Figure | str]] | None,
    csv: Callable[[], bytes] | None,
    points: Callable[[], bytes] | None,
) -> bytes:
    tables = {PAGE_NUMBERS: csv, POINTS: points}
    content = PageContent(
        figures=drawn() if drawn else {}, tables={name: of() for name, of in tables.items() if of}
    )
    return write_bundle(make(), content)


def _bundle_maker(view: View, key: int) -> Callable[[], Bundle]:
    """A function that makes the bundle of a view in a thread without a session; session data is looked up here."""
    selection = view.selection
    bundle = opened(selection.bundle)

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
            key=key,
            show=selection.show,
            colour=selection.colour,
            theme=view.theme,
            page=view.page,
            settings={name: value for name, value in selection.to_params().items() if name != "bundle"},
            weights_sha256=cache.model(selection.model).weights_sha256
            if bundle is None
            else bundle.weights_sha256,
        )

    return make
