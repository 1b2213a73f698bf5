"""The numbers of all heads as a table and as CSV."""

import numpy as np
import streamlit as st

from attnviz.heads import STATISTICS
from attnviz.records.table import table_csv
from ui.choice import widgets
from ui.sections.all_heads.screen import Screen, pick

TABLE_HEIGHT = 460  # px


def table(screen: Screen) -> None:
    """Every number of the heads that are not dimmed, to be sorted; a row selects its head."""
    selection = screen.view.selection
    places = np.argwhere(screen.is_kept)
    st.markdown(f"**{len(places)} of {len(screen.heads)} heads, by number**")
    columns = {
        "Layer": places[:, 0],
        "Head": places[:, 1],
        "Labels": [", ".join(screen.borne(layer, head)) for layer, head in places],
    }
    columns |= {STATISTICS[name].title: numbers[screen.is_kept] for name, numbers in screen.numbers.items()}
    formats = {
        STATISTICS[name].title: st.column_config.NumberColumn(format="%.3f", help=STATISTICS[name].help)
        for name in screen.numbers
    }
    rows = [(int(layer), int(head)) for layer, head in places]
    st.dataframe(
        columns,
        hide_index=True,
        height=TABLE_HEIGHT,
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
