"""Draws any part from its record: frame, tokens, controls, finding, pictures, terms, export and verdict.

Everything but the menu is one block: a change of the selection redraws that block, and sends the rest of the page no more.
"""

from functools import partial
from typing import Any

import streamlit as st
from plotly.graph_objects import Figure

from ui.components.head_grid import beside_grid
from ui.part import Block, Part, Row, Sheet
from ui.rooms import ROOMS
from ui.shell import errors, verdict
from ui.shell.export.take import Taken, take
from ui.shell.frame import heading_alone, newest, selected, shell
from ui.shell.view import View
from ui.streamlit_fixes.redrawn_block import redrawn_block
from ui.words.glossary import terms


def render(name: str) -> None:
    """Draws the page of the part of this name."""
    part = next(part for room in ROOMS for part in room.parts if part.name == name)
    with shell(part):
        redrawn_block(partial(_block if part.shows_text else _block_alone, part), None)


def _block(part: Part) -> None:
    """All that changes with the selection."""
    with selected(part) as view:
        if view is None:
            return
        sheet = next(sheet for sheet in part.sheets if sheet.when(view))
        taken = _sheet(sheet, view)
    if named := sheet.terms or part.terms:
        terms(*named)
    if part.pictures or sheet.csv is not None:
        take(partial(newest, view), taken)
    verdict.show(view)


def _block_alone(part: Part) -> None:
    with heading_alone(part):
        for sheet in part.sheets:
            for row in sheet.in_rows():
                _row(row, None, Taken())


def _sheet(sheet: Sheet, view: View) -> Taken:
    """Draws a sheet; returns what its export offers."""
    taken = Taken()
    with errors.explained():
        if sheet.strip is not None:
            sheet.strip(view)
        # The finding keeps its place, or what follows would move when it comes.
        place = st.container(key="finding", height=28, border=False) if sheet.finding is not None else None
        if sheet.controls is not None:
            with st.container(horizontal=True, vertical_alignment="bottom", key="part_controls"):
                sheet.controls(view)
        screen = sheet.screen(view)
        if screen is not None:
            if place is not None and sheet.finding is not None and (said := sheet.finding(screen)):
                place.markdown(f"**{said}**")
            taken.tell(sheet, screen)
            for row in sheet.in_rows():
                _row(row, screen, taken)
    return taken


def _row(row: Row, screen: Any, taken: Taken) -> None:
    if len(row.blocks) == 1:
        _draw(row.blocks[0], screen, taken)
        return
    if row.beside:
        columns = beside_grid(row.widths, row.beside, n_layers=screen.view.trace.n_layers(screen.view.kind))
    else:
        columns = st.columns(row.widths, gap=row.gap)
    for column, block in zip(columns, row.blocks, strict=True):
        with column:
            _draw(block, screen, taken)


def _draw(block: Block, screen: object, taken: Taken) -> None:
    """Draws a block; an error in it leaves the others."""
    with errors.explained(key=f"cut_{block.name}"):
        drawn = block.draw(screen)
        if isinstance(drawn, Figure):
            drawn = {block.pictures[0].key: drawn}
        taken.add(block.pictures, drawn)
