"""Which heads are there? Every head's matrix, or a number of each, on one screen, and which heads are alike."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import streamlit as st

from attnviz import heads
from attnviz.figures.heads import draw_head_map
from attnviz.figures.heatmap import MEASURE_NAMES
from attnviz.figures.theme import share_text, weight_text
from attnviz.figures.thumbnails import MOST_PIXELS
from attnviz.heads import LABELS, STATISTICS
from attnviz.records.table import table_csv
from ui.choice import state, widgets
from ui.choice.selection import CHOICES
from ui.components.head_grid import head_grid
from ui.components.point_clicks import point_clicks
from ui.components.ranked_list import Row, ranked_list
from ui.export.take import take
from ui.page import errors, verdict
from ui.page.frame import frame
from ui.page.view import View, hidden_note
from ui.words.glossary import linked, terms
from ui.words.literal import literal
from ui.work import cache

PICTURES = "pictures"
# What stands in the corner of a head that bears a label.
MARKS = {
    "previous": "←",
    "next": "→",
    "self": "=",
    "[CLS]": "C",
    "[SEP]": "S",
    "punctuation": "P",
    "broad": "~",
}
N_NEAREST = 8
TABLE_HEIGHT = 460  # px

OfHeads = Mapping[str, np.ndarray]  # by name, something of every head [layer, head]


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What is shown of all heads."""

    view: View
    cells: cache.Cells
    numbers: OfHeads
    labels: OfHeads

    @property
    def shown(self) -> str:
        """Pictures, or the number that the grid is coloured by; pictures where the heads have no such number."""
        return self.view.selection.grid if self.view.selection.grid in self.numbers else PICTURES

    @property
    def shape(self) -> tuple[int, int]:
        """Layers, and heads of a layer."""
        return self.view.trace.n_layers(self.view.kind), self.view.trace.n_heads(self.view.kind)

    def amount(self, name: str, layer: int, head: int) -> str:
        """A number of a head in words."""
        number = float(self.numbers[name][layer, head])
        if not np.isfinite(number):
            return "none"
        is_distance = STATISTICS[name].unit == "distance"
        return f"{number:.3g} {self.view.selection.unit}" if is_distance else share_text(number)

    def borne(self, layer: int, head: int) -> list[str]:
        """The labels of a head."""
        return [label for label, bears in self.labels.items() if bears[layer, head]]

    @property
    def is_kept(self) -> np.ndarray:
        """Which heads bear the label and have a number in the range that is asked for, [layer, head]."""
        selection = self.view.selection
        keep = np.ones(self.shape, dtype=bool)
        if not self.numbers:
            return keep
        if selection.label == "none":
            keep &= ~np.any(list(self.labels.values()), axis=0)
        elif selection.label != "all":
            keep &= self.labels.get(LABELS[selection.label], np.zeros(self.shape, dtype=bool))
        if self.shown != PICTURES:
            low = -np.inf if selection.lowest is None else selection.lowest
            high = np.inf if selection.highest is None else selection.highest
            keep &= ~((self.numbers[self.shown] < low) | (self.numbers[self.shown] > high))
        return keep


def _within(title: str) -> str:
    """A title as it stands within a sentence."""
    return title[0].lower() + title[1:]


def pick(layer: int, head: int) -> None:
    """Picks a head, here and on every page."""
    state.change(layer=layer, head=head)


def look(view: View) -> Screen:
    """The numbers and labels of all heads; none yet where pictures can be shown before they are found."""
    measure = "weights" if view.measure == "rollout" else view.measure  # rollout has no matrix for a head
    selection = view.selection
    cells = cache.Cells(
        source=selection.source,
        kind=view.kind,
        measure=measure,
        rows=cache.spans(view.queries),
        columns=cache.spans(view.keys),
    )
    if selection.grid == PICTURES and st.session_state.get("heads_read") != cells:
        return Screen(view=view, cells=cells, numbers={}, labels={})
    numbers = read(cells)
    labels = heads.labels(numbers, near=selection.near, delimiter=selection.delimiter, broad=selection.broad)
    return Screen(view=view, cells=cells, numbers=numbers, labels=labels)


def read(cells: cache.Cells) -> OfHeads:
    """The numbers of all heads, which takes longer than their pictures."""
    with st.spinner("Reading all heads …", show_time=True):
        numbers = cache.statistics(cells)
    st.session_state.heads_read = cells
    return numbers


def finding(screen: Screen) -> str:
    """What the grid says at a glance."""
    if screen.shown == PICTURES:
        n_labelled = int(np.any(list(screen.labels.values()), axis=0).sum())
        counts = sorted(((int(bears.sum()), label) for label, bears in screen.labels.items()), reverse=True)
        listed = ", ".join(f"{count} {label}" for count, label in counts if count)
        said = f"{n_labelled} of {np.prod(screen.shape)} heads bear a label"
        return f"{said}: {listed}" if listed else said
    numbers = screen.numbers[screen.shown]
    order = heads.ranked(numbers)[: np.isfinite(numbers).sum()]
    most, least = (
        f"layer {layer}, head {head}, {screen.amount(screen.shown, layer, head)}"
        for layer, head in (order[0], order[-1])
    )
    return f"{STATISTICS[screen.shown].title}: most in {most}; least in {least}"


def controls(screen: Screen) -> None:
    """What the grid shows, and which heads are dimmed."""

    def choose_number(grid: str) -> None:
        # Limits of the number before mean nothing to this one.
        state.change(grid=grid, lowest=None, highest=None)

    def name_of(label: str) -> str:
        if label in LABELS:
            return f"{MARKS[LABELS[label]]}  {LABELS[label]}"
        return {"all": "All heads", "none": "Heads without a label"}[label]

    with st.container(horizontal=True, vertical_alignment="bottom"):
        shown = replace(screen.view.selection, grid=screen.shown)
        st.selectbox(
            "Show",
            CHOICES["grid"],
            format_func=lambda name: STATISTICS[name].title if name in STATISTICS else "Pictures",
            help="Each head's matrix as a small picture, or one number of each head as a colour.",
            width=290,
            **widgets.field("grid", shown, choose_number),
        )
        st.selectbox(
            "Highlight",
            CHOICES["label"],
            format_func=name_of,
            help="Dims the heads that do not bear this label.",
            width=210,
            **widgets.field("label"),
        )
        with st.popover("More", icon=":material/tune:", key="heads_more"):
            if screen.shown == PICTURES:
                scale_of_pictures()
            else:
                range_of_number(screen)
            thresholds()


def scale_of_pictures() -> None:
    """How weights become tones."""
    st.toggle(
        "One scale for all heads",
        help="Gives the strongest tone to the largest weight of all heads, instead of each head's own.",
        **widgets.field("common"),
    )
    st.segmented_control(
        "Colours",
        CHOICES["colour"],
        required=True,
        format_func=str.capitalize,
        help="Logarithmic colours tell small weights apart.",
        **widgets.field("colour"),
    )


def range_of_number(screen: Screen) -> None:
    """From where to where a head's number is not dimmed; at the ends there is no limit."""
    numbers, selection = screen.numbers[screen.shown], screen.view.selection
    low = float(np.floor(1000 * np.nanmin(numbers)) / 1000)
    high = float(np.ceil(1000 * np.nanmax(numbers)) / 1000)
    if low == high:  # all heads alike
        return
    chosen = tuple(
        float(np.clip(end if limit is None else limit, low, high))
        for limit, end in ((selection.lowest, low), (selection.highest, high))
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
        **widgets.tie("heads_range", chosen, choose_range),
    )


def thresholds() -> None:
    """The number from which on a head bears a label."""
    for name, title in (
        ("near", "Previous, next, self: weight above"),
        ("delimiter", r"\[CLS\], \[SEP\], punctuation: weight above"),
        ("broad", "Broad: entropy, as a share of ln n, above"),
    ):
        st.slider(
            title,
            min_value=0.0,
            max_value=1.0,
            step=0.05,
            help="A head whose number is larger bears the label.",
            **widgets.field(name),
        )


def grid(screen: Screen) -> None:
    """All heads, layers down and heads across."""
    view, selection = screen.view, screen.view.selection
    pictures, largest = None, None
    if screen.shown == PICTURES:
        renormalise = selection.special == "renormalised" and view.hides_special
        with st.spinner("Drawing all heads …", show_time=True):
            largest = cache.pooled(screen.cells, renormalise=renormalise).max(axis=(2, 3))
            pictures = cache.thumbnails(
                screen.cells,
                renormalise=renormalise,
                common=selection.common,
                colour=selection.colour,
                theme=view.theme,
            )

    def text(layer: int, head: int) -> str:
        if largest is None:
            said = f"{_within(STATISTICS[screen.shown].title)} {screen.amount(screen.shown, layer, head)}"
        else:
            said = f"largest {MEASURE_NAMES[screen.cells.measure]} {weight_text(float(largest[layer, head]))}"
        return "; ".join([f"Layer {layer}, head {head}: {said}", *screen.borne(layer, head)])

    layers, of_layer = (range(count) for count in screen.shape)
    marks = [
        ["".join(MARKS[one] for one in screen.borne(layer, head)) for head in of_layer] for layer in layers
    ]
    head_grid(
        [[text(layer, head) for head in of_layer] for layer in layers],
        name="All heads, layers down and heads across; pick one",
        picked=(selection.layer, selection.head),
        on_pick=pick,
        theme=view.theme,
        pictures=pictures,
        numbers=None if pictures else screen.numbers[screen.shown],
        marks=marks,
        dimmed=~screen.is_kept,
    )


def notes(screen: Screen) -> None:
    """What the grid shows and hides, and what its marks stand for."""
    view, selection = screen.view, screen.view.selection
    said = []
    if screen.shown == PICTURES:
        own = "the largest of all heads" if selection.common else "its own largest"
        said.append(f"Each picture goes from 0 to {own}.")
        if max(len(view.queries), len(view.keys)) > MOST_PIXELS:
            said.append(
                "A pixel is the largest cell of its block of neighbours, so that nothing strong disappears."
            )
    else:
        one = STATISTICS[screen.shown]
        said.append(f"{one.help} Source: {one.source}.")
    if screen.shown != selection.grid:
        said.append(
            f"{STATISTICS[selection.grid].title}: there is none for this text, so pictures are shown."
        )
    if view.measure == "rollout":
        said.append("Rollout is of all heads together; weights are shown.")
    marks = " · ".join(f"{MARKS[label]} {label}" for label in screen.labels or MARKS)
    said.append(
        f"Marks: {marks} (after Clark et al. 2019, arXiv:1906.04341, section 3 and figure 6; thresholds under More)."
    )
    st.caption(literal(" ".join([*said, hidden_note(view)])))


def nearest(screen: Screen) -> None:
    """The heads most like the picked one, each a click away."""
    selection = screen.view.selection
    st.markdown(f"**Most like layer {selection.layer}, head {selection.head}**")
    with st.spinner("Comparing all heads …", show_time=True):
        divergences = cache.divergences(screen.cells)
    found = divergences.nearest(selection.layer, selection.head, N_NEAREST)
    ranked_list(
        [
            Row(
                text=f"Layer {layer}, head {head}",
                amount=weight_text(divergence),
                length=1 - divergence,
                picked=False,
            )
            for layer, head, divergence in found
        ],
        name="Heads most like the picked one; pick one",
        on_pick=lambda row: pick(*found[row][:2]),
        theme=screen.view.theme,
        key="nearest_heads",
    )
    n_rows, n_queries = divergences.n_rows, divergences.n_queries
    st.caption(
        f"{linked('Jensen–Shannon divergence', 'Jensen–Shannon divergence')} of their rows: 0 for heads that do the same, 1 for heads that look at no key "
        "in common."
        + (f" Of {n_queries:,} rows {n_rows:,} are compared, evenly spaced." if n_rows < n_queries else "")
    )


def head_map(screen: Screen) -> None:
    """All heads as points, near for those that are alike."""
    selection = screen.view.selection
    st.markdown("**Heads that do the same lie near each other**")
    with st.spinner("Laying out the heads …", show_time=True):
        points = cache.head_map(screen.cells)
    st.plotly_chart(
        draw_head_map(
            points,
            n_heads=screen.shape[1],
            picked=(selection.layer, selection.head),
            dimmed=~screen.is_kept.ravel(),
            theme=screen.view.theme,
        ),
        theme=None,
        key="head_map",
        config={"displayModeBar": False},
        alt=f"Map of all heads; layer {selection.layer}, head {selection.head} is marked",
    )
    point_clicks("head_map", lambda place: pick(*(int(one) for one in place)))
    st.caption(
        "Multidimensional scaling of the divergences (Clark et al. 2019, arXiv:1906.04341, section 6); a click picks a head."
    )


def table(screen: Screen) -> None:
    """Every number of the heads that are not dimmed, to be sorted; a row picks its head."""
    selection = screen.view.selection
    places = np.argwhere(screen.is_kept)
    st.markdown(f"**{len(places)} of {np.prod(screen.shape)} heads, by number**")
    columns = {
        "layer": places[:, 0],
        "head": places[:, 1],
        "labels": [", ".join(screen.borne(layer, head)) for layer, head in places],
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
        **widgets.tie_row("heads_table", rows, (selection.layer, selection.head), lambda row: pick(*row)),
    )


def as_csv(screen: Screen) -> bytes:
    """A line for every head: its labels and all its numbers."""
    rows = []
    for layer, head in np.ndindex(*screen.shape):
        numbers = (of_heads[layer, head] for of_heads in screen.numbers.values())
        rows.append([layer, head, " ".join(screen.borne(layer, head)), *numbers])
    return table_csv(["layer", "head", "labels", *screen.numbers], rows)


view = frame("All heads")
found = st.container(key="finding")
with errors.explained():
    screen = look(view)
    if screen.numbers:
        found.markdown(f"**{literal(finding(screen))}**")
    controls(screen)
    left, right = st.columns([3, 1], gap="medium")
    with left:
        grid(screen)
        notes(screen)
        if st.session_state.get("heads_read") != screen.cells:
            read(screen.cells)
            st.rerun()
    with right, errors.explained():
        nearest(screen)
    left, right = st.columns(2, gap="medium")
    with right:
        table(screen)
    with left, errors.explained():
        head_map(screen)
    terms("Layer", "Head", "Attention matrix", "Entropy", "Norm-based weight")
    take(
        view,
        {"head_grid": "All heads", "head_map": "Map of heads"},
        csv=partial(as_csv, screen),
        numbers="All numbers",
    )
verdict.in_sidebar(view.selection)
