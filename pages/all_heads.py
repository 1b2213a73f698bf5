"""Which heads are there? Every head's matrix, or a number of each, on one screen, and which heads are alike."""

from functools import partial

import streamlit as st

from ui.components.head_grid import beside_grid
from ui.rooms.all_heads.controls import controls
from ui.rooms.all_heads.copying import copying
from ui.rooms.all_heads.grid import finding, grid, notes
from ui.rooms.all_heads.likeness import head_map, nearest
from ui.rooms.all_heads.screen import is_read, read, screen_of
from ui.rooms.all_heads.table import as_csv, table
from ui.shell import errors, verdict
from ui.shell.export.take import take
from ui.shell.frame import frame
from ui.shell.head_names import find_probes
from ui.words.glossary import terms
from ui.words.literal import literal

view = frame("Pictures and numbers")
place_of_finding = st.container(key="finding")
with errors.explained():
    screen = screen_of(view)
    if screen.numbers:
        place_of_finding.markdown(f"**{literal(finding(screen))}**")
    controls(screen)
    left, right = beside_grid((3, 1), "head_grid", n_layers=view.trace.n_layers(view.kind))
    with left:
        grid(screen)
        notes(screen)
        if not is_read(screen.cells):
            read(screen.cells)
            st.rerun()
    with right, errors.explained():
        nearest(screen)
    left, right = st.columns(2, gap="medium")
    with right:
        table(screen)
    with left, errors.explained():
        head_map(screen)
    copying(view)
    find_probes(view)
    terms("Layer", "Head", "Attention matrix", "Entropy", "Norm-based weight")
    take(
        view,
        {"head_grid": "All heads", "head_map": "Map of heads"},
        csv=partial(as_csv, screen),
        numbers="All numbers",
    )
verdict.show(view)
