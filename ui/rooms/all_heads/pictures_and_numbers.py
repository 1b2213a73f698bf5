"""Which heads are there? Every head's matrix, or a number of each, on one screen, and which heads are alike."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from attnviz.figures.cells import MOST_PIXELS
from attnviz.figures.heads import draw_head_map
from attnviz.figures.heatmap import MEASURE_NAMES
from attnviz.figures.numbers import number_text
from attnviz.heads import PROBES
from attnviz.heads.facts import extremes
from attnviz.heads.head_statistics import Matched, matched
from attnviz.records import Head, by_layer
from attnviz.records.table import table_csv
from ui.choice import state, widgets
from ui.components.head_grid import head_grid
from ui.components.plotly_figure.label_room import label_room
from ui.part import Part, Picture, Row, Sheet
from ui.rooms.all_heads.copying_scores import copying
from ui.rooms.all_heads.heads_shown import NUMBERS, PICTURES, Screen, is_read, read, screen_of
from ui.runtime import cache, head_cache
from ui.shell.chart import chart
from ui.shell.export.captions import NUMBERS as NUMBERS_OF_CELLS
from ui.shell.frame import put_in_link
from ui.shell.head_names import find_probes
from ui.shell.heads import pick_head, ranked_heads
from ui.shell.navigation import link_to
from ui.shell.table import whole_rows
from ui.shell.view import RENORMALISED, View, hidden_note
from ui.streamlit_fixes.stale_values import tie
from ui.words.findings import MARKS, SHOWN_NAMES, extremes_words
from ui.words.glossary import linked
from ui.words.head_names import attending, attends_words, mark_of, marks_note, names_said, with_names
from ui.words.literal import literal

N_NEAREST = 8
_MOST_ROWS = 12
_WIDTHS = {"Names": 165, "Labels": 95}  # px; fits the longest in most models


def with_controls(view: View) -> Screen:
    """All heads, below the controls for what is shown of them."""
    screen = screen_of(view)
    controls(screen)
    return screen


def controls(screen: Screen) -> None:
    """The controls for what the grid shows, and which heads are dimmed."""

    def choose_number(grid: str) -> None:
        # The previous number's limits mean nothing for this one.
        state.change(grid=grid, lowest=None, highest=None)

    with st.container(horizontal=True, vertical_alignment="bottom"):
        shown = screen.view.selection.but(grid=screen.shown)
        st.selectbox(**widgets.field("grid", shown, choose_number), width=290)
        st.selectbox(**widgets.field("label"), width=210)
        with st.popover("More", icon=":material/tune:", key="heads_more"):
            if screen.shown == PICTURES:
                st.toggle(**widgets.field("common_scale"))
                st.segmented_control(**widgets.field("colour", required=True))
            else:
                range_of_number(screen)
            for name in ("near", "delimiter", "broad"):  # above which a head matches a pattern
                st.slider(**widgets.field(name, format=None))


def range_of_number(screen: Screen) -> None:
    """The range of numbers whose heads are not dimmed; the ends of the slider mean no limit."""
    numbers, settings = screen.numbers[screen.shown], screen.settings
    low = float(np.floor(1000 * np.nanmin(numbers)) / 1000)
    high = float(np.ceil(1000 * np.nanmax(numbers)) / 1000)
    if low == high:  # all heads have the same number
        return
    first, last = (
        float(np.clip(end if limit is None else limit, low, high))
        for limit, end in ((settings.lowest, low), (settings.highest, high))
    )

    def choose_range(picked: tuple[float, float]) -> None:
        first, last = picked
        state.change(lowest=None if first == low else first, highest=None if last == high else last)

    st.slider(
        "Range",
        min_value=low,
        max_value=high,
        step=0.001,
        format="%.3f",
        help="Dims the heads whose number lies outside.",
        value=(first, last),
        **tie("heads_range", (first, last), choose_range),
    )


def finding(screen: Screen) -> str:
    """What the grid shows overall, and for the selected head; nothing until the numbers are known."""
    if not screen.numbers:
        return ""
    if screen.shown == PICTURES:
        place = screen.view.selection.place
        words = attending(screen.view.keys.tokens)
        attends = attends_words(screen.labels, words, place)
        own = f"attends {attends}" if attends else "matches none"
        return literal(
            f"{matched_words(matched(screen.labels), words, len(screen.heads))}; {place.words} {own}"
        )
    amount = partial(screen.amount_text, screen.shown)
    numbers = extremes(screen.numbers[screen.shown], amount)
    return literal(extremes_words(NUMBERS[screen.shown].title, numbers, amount))


def matched_words(matched: Matched, words: Mapping[str, str], n_heads: int) -> str:
    """How many heads match a known pattern, and how they attend."""
    sentence = f"{matched.n_matched} of {n_heads} heads match a known pattern"
    listed = ", ".join(
        f"{count} attend{'s' * (count == 1)} {words[label]}" for label, count in matched.counts
    )
    return f"{sentence}: {listed}" if listed else sentence


def grid(screen: Screen) -> None:
    """All heads, each with its marks; pictures come before the numbers, which take longer."""
    view, selection = screen.view, screen.view.selection
    pictures, largest = None, None
    if screen.shown == PICTURES:
        renormalise = view.is_renormalised
        with st.spinner("Drawing all heads …", show_time=True):
            largest = [
                of_layer.max(axis=(1, 2))
                for of_layer in head_cache.pooled(screen.cells, renormalise=renormalise)
            ]
            pictures = head_cache.thumbnails(
                screen.cells,
                renormalise=renormalise,
                common=screen.settings.common_scale,
                colour=selection.colour,
                theme=view.theme,
            )

    def text(layer: int, head: int) -> str:
        if largest is None:
            title = NUMBERS[screen.shown].title
            sentence = f"{title[0].lower()}{title[1:]} {screen.reading(screen.shown, layer, head)}"
        else:
            sentence = (
                f"largest {MEASURE_NAMES[screen.cells.measure]} {number_text(float(largest[layer][head]))}"
            )
        of_text = "; ".join([f"Layer {layer}, head {head}: {sentence}", *screen.borne(layer, head)])
        return with_names(of_text, screen.names, Head(layer, head))

    def mark(head: Head) -> str:
        of_text = [MARKS[mark] for mark in screen.borne(*head)]
        return "".join(dict.fromkeys([*of_text, *mark_of(screen.names, head)]))

    layers = by_layer(screen.heads)
    marks = [[mark(head) for head in of_layer] for of_layer in layers]
    head_grid(
        [[text(*head) for head in of_layer] for of_layer in layers],
        name="All heads; select one",
        picked=selection.place,
        on_pick=pick_head,
        theme=view.theme,
        pictures=pictures,
        numbers=None if pictures else screen.numbers[screen.shown],
        marks=marks,
        dimmed=~screen.is_kept,
    )
    st.caption(literal(notes(screen)))
    if not is_read(screen.cells):
        read(screen.cells)
        put_in_link(selection)  # or the run after this one would follow a link that named another model
        st.rerun()


def notes(screen: Screen) -> str:
    """What the grid shows and hides, and what its marks mean."""
    view = screen.view
    sentences = []
    if screen.shown == PICTURES:
        own = "the largest of all heads" if screen.settings.common_scale else "its own largest"
        sentences.append(f"Each picture goes from 0 to {own}.")
        if max(len(view.queries), len(view.keys)) > MOST_PIXELS:
            sentences.append("Each pixel is the largest value in its block.")
        if view.is_renormalised:
            sentences.append(RENORMALISED)
    else:
        number = NUMBERS[screen.shown]
        sentences.append(f"{number.help} Source: {number.source}.")
    if screen.shown != screen.settings.grid:
        asked = screen.settings.grid
        why = "not known yet" if asked in PROBES else "there is none for this text"
        sentences.append(f"{NUMBERS[asked].title}: {why}, so pictures are shown.")
    if view.is_of_layer:
        sentences.append(f"{SHOWN_NAMES[view.measure]} combines all heads; weights are shown.")
    marks = " · ".join(f"{MARKS[label]} {label}" for label in screen.labels or MARKS)
    sentences.append(
        f"Marks from this text: {marks} (after Clark et al. 2019, arXiv:1906.04341, section 3 and figure 6; thresholds under More)."
    )
    if note := marks_note(screen.names):
        sentences.append(note)
    return " ".join([*sentences, hidden_note(view)])


def nearest(screen: Screen) -> None:
    """The heads most similar to the selected one; a click selects."""
    selection = screen.view.selection
    st.markdown(f"**Most similar to {selection.place.words}**")
    with st.spinner("Comparing all heads …", show_time=True):
        divergences = head_cache.divergences(screen.cells)
    nearest_heads = divergences.nearest(*selection.place, N_NEAREST)
    ranked_heads(
        screen.view,
        [
            (Head(layer, head), number_text(1 - divergence), 1 - divergence)
            for layer, head, divergence in nearest_heads
        ],
        name="Heads most similar to the selected one; select one",
        key="nearest_heads",
        marks_selected=False,
    )
    n_rows, n_queries = divergences.n_rows, divergences.n_queries
    st.caption(
        f"{linked('Jensen–Shannon divergence', 'Jensen–Shannon divergence')} of their rows; bars show 1 − distance. Distance 0 = identical, 1 = no shared keys."
        + (f" Of {n_queries:,} rows {n_rows:,} are compared, evenly spaced." if n_rows < n_queries else "")
    )
    link_to(
        "Heads off",
        label=f"What if {selection.place.words} were off?",
        help="Switches this head off, and every other, to measure what happens to an outcome.",
    )


def of_layer(screen: Screen) -> None:
    """A link to what the heads of the selected layer do together, where the model allows it."""
    view = screen.view
    names = [SHOWN_NAMES[method] for method in cache.mixings(view.selection.source)]
    if names:
        link_to(
            "Together",
            label=f"What does layer {view.selection.layer} mix into each token?",
            only={"show": cache.mixings(view.selection.source)[0], "filled": "matrix"},
            help=f"Shows one matrix of all heads of the layer, with values, W_O and the residual connection: {' or '.join(names)}.",
        )


def head_map(screen: Screen) -> None:
    """All heads as points; similar heads are close together."""
    selection = screen.view.selection
    st.markdown("**Similar heads are close together**")
    with st.spinner("Laying out the heads …", show_time=True):
        points = head_cache.head_map(screen.cells)
    chart(
        draw_head_map(
            points,
            heads=screen.heads,
            picked=selection.place,
            dimmed=~screen.is_kept[tuple(np.transpose(screen.heads))],
            theme=screen.view.theme,
        ),
        key="head_map",
        alt=f"Map of all heads; {selection.place.words} is marked",
        on_pick=_pick_point,
        listeners=[label_room(note="", theme=screen.view.theme, picked=selection.place.short)],
    )
    st.caption(
        "Multidimensional scaling of the divergences (Clark et al. 2019, arXiv:1906.04341, section 6). Select a point to select its head."
    )


def _pick_point(clicked: Any) -> None:
    match clicked:
        case [int(layer), int(head)]:
            pick_head(layer, head)


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
        **widgets.tie_row("heads_table", rows, selection.place, lambda row: pick_head(*row)),
    )


def as_csv(screen: Screen) -> bytes:
    """A line for every head: its labels and all its numbers."""
    rows = []
    for layer, head in screen.heads:
        numbers = (of_heads[layer, head] for of_heads in screen.numbers.values())
        rows.append([layer, head, " ".join(screen.borne(layer, head)), *numbers])
    return table_csv(["layer", "head", "labels", *screen.numbers], rows)


PART = Part(
    name="Pictures and numbers",
    address="all_heads",
    question="Which heads are there, and which are alike?",
    asks=("sentence", "head", "rows"),
    terms=("Layer", "Head", "Attention matrix", "Entropy", "Norm-based weight"),
    sheets=(
        Sheet(
            screen=with_controls,
            finding=finding,
            rows=(
                Row(
                    Picture(
                        "head_grid",
                        "All heads",
                        lambda view: f"cells: {NUMBERS_OF_CELLS[view.measure_of_heads]} of each head",
                        grid,
                    ),
                    nearest,
                    widths=(3, 1),
                    beside="head_grid",
                ),
                of_layer,
                Row(
                    Picture(
                        "head_map",
                        "Map of heads",
                        "close points: heads with similar attention; tone: layer",
                        head_map,
                    ),
                    table,
                ),
                copying,
                find_probes,
            ),
            numbers="All numbers",
            csv=as_csv,
        ),
    ),
)
