"""The numbers of all heads as a table and as CSV."""

import numpy as np
import streamlit as st

from attnviz.records import Head
from attnviz.records.table import table_csv
from ui.choice import widgets
from ui.rooms.all_heads.screen import NUMBERS, Screen, pick
from ui.shell.table import whole_rows
from ui.words.head_names import names_said

_MOST_ROWS = 12
_WIDTHS = {"Names": 165, "Labels": 95}  # px; fits the longest in most models


def table(screen: Screen) -> None:
    """Every number of the heads that are not dimmed, sortable; a row selects its head."""
    selection = screen.view.selection
    places = np.argwhere(screen.is_kept)
    which = (
        f"all {len(places)}" if len(places) == len(screen.heads) else f"{len(places)} of {len(screen.heads)}"
    )
    st.markdown(f"**The numbers of {which} heads**")
    columns = {
        "Layer": places[:, 0],
        "Head": places[:, 1],
        "Names": [names_said(screen.names, Head(layer, head)) for layer, head in places.tolist()],
        "Labels": [", ".join(screen.borne(layer, head)) for layer, head in places],
    }
    columns |= {NUMBERS[name].title: numbers[screen.is_kept] for name, numbers in screen.numbers.items()}
    formats = {
        NUMBERS[name].title: st.column_config.NumberColumn(format="%.3f", help=NUMBERS[name].help)
        for name in screen.numbers
    }
    formats |= {name: st.column_config.TextColumn(width=width) for name, width in _WIDTHS.items()}
    if screen.names is not None:
        formats["Names"] = st.column_config.TextColumn(
            width=_WIDTHS["Names"],
            help=f"What each head is called {screen.names.where}, with the share of its weight.",
        )
    rows = [(int(layer), int(head)) for layer, head in places]
    st.dataframe(
        columns,
        hide_index=True,
        height=whole_rows(len(rows), _MOST_ROWS),
        column_config=formats,
        **widgets.tie_row("heads_table", rows, selection.place, lambda row: pick(*row)),
    )


def as_csv(screen: Screen) -> bytes:
    """A line for every head: its labels and all its numbers."""
    rows = []
    for layer, head in screen.heads:
        numbers = (of_heads[layer, head] for of_heads in screen.numbers.values())
        rows.append([layer, head, " ".join(screen.borne(layer, head)), *numbers])
    return table_csv(["layer", "head", "labels", *screen.numbers], rows)
