"""The matrix of one head, the notes below it, and the keys of the selected query, ranked."""

import streamlit as st

from attnviz.figures import draw_pattern, draw_ranking
from attnviz.figures.bars import MOST_BARS
from attnviz.figures.heatmap import MEASURE_NAMES, TALLEST
from attnviz.records import AttentionPattern
from ui.choice import state, widgets
from ui.components.plotly_figure.heatmap_events import heatmap_events
from ui.rooms.explore.pair import pick
from ui.rooms.explore.stage.screen import Screen
from ui.shell.chart import chart
from ui.shell.view import View
from ui.words.findings import SHOWN_NAMES, name, place
from ui.words.glossary import linked
from ui.words.literal import literal


def cells(view: View) -> None:
    """The controls for what the cells hold, and for their colours."""
    st.segmented_control(
        **widgets.field(
            "show",
            options=[
                shown_name
                for shown_name in SHOWN_NAMES
                if shown_name == "scores" or shown_name in view.measures
            ],
            required=True,
        ),
    )
    is_scores = view.selection.show == "scores"
    st.segmented_control(**widgets.field("colour", required=True), disabled=is_scores)
    st.toggle(**widgets.field("clip"), disabled=is_scores or view.selection.colour == "logarithmic")


def matrix(screen: Screen) -> None:
    """The matrix; a click on a cell selects its query and key, a click on a label only that token."""
    view, query, key = screen.view, screen.query, screen.key
    selection, theme = view.selection, view.theme
    pattern, caption = screen.pattern, screen.finding
    end = view.colour_end(pattern)
    chart(
        draw_pattern(
            pattern,
            show=selection.show,
            colour=selection.colour,
            picked=(query, key),
            largest=end,
            tallest=TALLEST,
            theme=theme,
        ),
        key="matrix",
        alt=f"Attention matrix, {place(pattern)}: {caption}",
        listeners=[
            heatmap_events(
                pattern,
                show=selection.show,
                picked=(query, key),
                on_pick=lambda query, key: state.change(query=query, key=key),
                on_label=lambda *clicked: pick(list(clicked)),
                theme=theme,
            )
        ],
    )


def cell_notes(screen: Screen) -> None:
    """What is left out of the matrix, and what its cells, their colours and a large one among them mean."""
    if notes := screen.notes():
        st.caption(literal(notes))


def ranking(screen: Screen) -> None:
    """The keys of the selected query, largest first."""
    pattern, query = screen.pattern, screen.query
    if (row := pattern.queries.index(query)) is not None:
        chart(
            draw_ranking(pattern, query, picked_key=screen.key, theme=screen.view.theme),
            key="ranking",
            alt=f"Keys ranked by their weight: {screen.finding}",
            on_pick=pick,
            whole_rows=True,
        )
        st.caption(listed_words(pattern, row))


def listed_words(pattern: AttentionPattern, row: int) -> str:
    """Describes the list of a row's keys, and how many it leaves out, as Markdown."""
    query = name(pattern.queries, int(pattern.queries.positions[row]))
    rest = int(pattern.allowed[row].sum()) - MOST_BARS
    return (
        f"{linked('Key', 'Keys')} of the {linked('Query')} {literal(query)}, largest "
        f"{linked('Weight') if pattern.measure == 'weights' else MEASURE_NAMES[pattern.measure]} first"
        + (f"; {rest:,} weaker ones are not listed." if rest > 0 else ".")
    )
