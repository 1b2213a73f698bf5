"""What is often said of attention, and what this model says to it for this sentence."""

from functools import partial

import streamlit as st

from ui.rooms.myths.contribution import contribution
from ui.rooms.myths.diagonal import diagonal
from ui.rooms.myths.full import full
from ui.rooms.myths.symmetric import symmetric
from ui.rooms.myths.table import as_csv
from ui.runtime import cache
from ui.shell import errors, verdict
from ui.shell.export.take import take
from ui.shell.frame import frame
from ui.words.glossary import linked

CLAIMS = (
    ("“The attention matrix is symmetric”", symmetric),
    ("“Tokens attend to themselves most”", diagonal),
    ("“Every cell is filled”", full),
    ("“The larger the weight, the more a key adds”", contribution),
)

view = frame("Myths")
csv = None
with errors.explained():
    claims = cache.claims(view.selection.source, view.kind)
    csv = partial(as_csv, claims)
    st.caption(
        f"Four common claims, tested in all {len(view.trace.heads(view.kind))} {linked('Head', 'heads')} on this sentence. A claim holds "
        "where at least two heads in three show it, and does not where at most one in three does; that every cell is filled "
        "is true only where every cell of every head is. Another sentence has other numbers, and perhaps other answers."
    )
    for claim, draw in CLAIMS:
        st.subheader(claim)
        draw(view, claims)
take(
    view,
    {f"claim_{name}": name.capitalize() for name in ("symmetric", "diagonal", "full", "contribution")},
    csv=csv,
    numbers="All heads" if csv else "Matrix",
)
verdict.show(view)
