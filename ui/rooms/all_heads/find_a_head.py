"""Which head links these tokens? The weight of one pair in every head, and the strongest pairs of one head."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar

import numpy as np
import streamlit as st

from attnviz import heads
from attnviz.figures import draw_pattern
from attnviz.figures.labels import labels_at
from attnviz.figures.numbers import cell_text, number_text, share_text
from attnviz.heads.facts import rank
from attnviz.heads.probes import PROBES, HeadProbes
from attnviz.model.catalogue import offer
from attnviz.records import AttentionPattern, Axis, Head, Measure, known
from attnviz.records.table import table_csv
from ui.choice import state, widgets
from ui.choice.fields import Switch
from ui.choice.selection import choices
from ui.components import ranked_list as ranked
from ui.components.ranked_list import ranked_list
from ui.part import Part, Picture, Row, Sheet
from ui.rooms.explore.pair import chips, pick_in_text
from ui.runtime import head_cache
from ui.runtime import probes as of_model
from ui.runtime.jobs import job
from ui.shell.chart import chart
from ui.shell.export.captions import measured
from ui.shell.head_names import find_probes, known_probes
from ui.shell.heads import named_heads, ranked_heads
from ui.shell.view import View, hidden_note
from ui.shell.waiting import is_there
from ui.words.findings import SHOWN_NAMES, group_name, measure_text, pair_finding, strongest_key
from ui.words.literal import literal

MOST_ROWS = 24  # of a list, which scrolls if the window is too small
N_RANKED = 6
NO_PAIR = "There is no such pair in this head."
Span = tuple[int, int]
"""Position of the first token of a group, and the position after its last."""


@choices
@dataclass(frozen=True, slots=True, kw_only=True)
class PairList:
    """Which of a head's strongest pairs are listed."""

    PREFIX: ClassVar = "pairs_"

    special: Annotated[
        bool,
        Switch(title="Special tokens", help="Also lists pairs with special tokens such as [CLS] and [SEP]."),
    ] = False
    itself: Annotated[
        bool, Switch(title="Self-attention", help="Also lists what a token gives to itself.")
    ] = False


def span_of(axis: Axis, first: int, last: int | None) -> Span:
    """The tokens from the axis entry of one position to that of another, or of the first entry alone."""
    start, end = (axis.index(first if position is None else position) or 0 for position in (first, last))
    return int(axis.spans[start, 0]), int(axis.spans[max(start, end), 1])


@dataclass(frozen=True, kw_only=True)  # without slots, for what is computed once
class Screen:
    """A pair, each side a token or a phrase, and its weight in every head."""

    view: View

    @property
    def measure(self) -> Measure:
        """What heads are searched by."""
        return self.view.measure_of_heads

    @cached_property
    def axes(self) -> tuple[Axis, Axis]:
        """Queries and keys, none of them left out."""
        unit = self.view.selection.unit
        return Axis.of(self.view.query_tokens, unit), Axis.of(self.view.key_tokens, unit)

    @property
    def is_long(self) -> bool:
        """Whether the matrix is never held whole."""
        return self.view.trace.is_long(self.view.kind)

    @cached_property
    def whole(self) -> AttentionPattern:
        """The selected head's matrix, token by token."""
        view = self.view
        return view.trace.pattern(*view.selection.place, view.kind, measure=self.measure)

    @cached_property
    def key(self) -> int:
        """Position of the selected key."""
        if self.is_long:
            return self.view.key
        chosen = self.view.selection.key
        return strongest_key(self.whole.arranged(*self.axes), self.view.query) if chosen is None else chosen

    @cached_property
    def spans(self) -> tuple[Span, Span]:
        """The tokens of the pair's query and of its key."""
        (queries, keys), selection = self.axes, self.view.selection
        query = span_of(queries, self.view.query, selection.query_to)
        return query, span_of(keys, self.key, selection.key_to)

    @cached_property
    def names(self) -> tuple[str, str]:
        """What the two are called."""
        query, key = map(group_name, self.axes, self.spans)
        return query, key

    @cached_property
    def weights(self) -> np.ndarray:
        """Of the pair in every head [layer, head]."""
        view = self.view
        return head_cache.pair_weights(view.selection.source, view.kind, *self.spans, measure=self.measure)


def strip(view: View) -> None:
    """The tokens, with the pair; a long text has fields alone."""
    screen, selection = Screen(view=view), view.selection
    state.pin(key=screen.key)  # or another head would be asked about another pair
    if screen.is_long:
        return
    chips(
        view,
        screen.whole.weights,
        screen.key,
        lambda position: state.change(query=position, key=screen.key, key_to=selection.key_to),
    )


def screen_of(view: View) -> Screen:
    """A pair, below the fields that say which."""
    screen = Screen(view=view)
    if screen.is_long:
        pick_in_text(view, "query", *screen.spans[0])
        pick_in_text(view, "key", *screen.spans[1])
        return screen
    with st.container(horizontal=True, key="pair"):
        for side, axis, span in zip(("query", "key"), screen.axes, screen.spans, strict=True):
            pick_group(view, side, axis, span)
    return screen


def pick_group(view: View, side: str, axis: Axis, span: Span) -> None:
    """Two fields for one side of the pair: its token, and the last token if it is a phrase."""
    names = dict(zip(axis.positions.tolist(), labels_at(axis), strict=True))
    first, last = (int(axis.positions[axis.index(position) or 0]) for position in (span[0], span[1] - 1))
    places: dict[str, Any] = {side: first, f"{side}_to": last}
    for field, options, help_text in (
        (side, list(names), f"The {side} of the pair; typing finds a token."),
        (
            f"{side}_to",
            [name for name in names if name >= first],
            f"Makes the {side} a phrase that ends here; the same token again for one alone.",
        ),
    ):
        st.selectbox(
            **widgets.field(
                field,
                view.selection.but(**places),
                format_func=names.__getitem__,
                help=help_text,
                options=options,
            )
        )


def finding(screen: Screen) -> str:
    """The pair's weight in the selected head, and where it is largest."""
    place, measure = screen.view.selection.place, screen.measure
    facts = rank(screen.weights, place, partial(measure_text, measure=measure))
    return literal(pair_finding(facts, place, screen.names, measure))


def grid(screen: Screen) -> None:
    """The pair's weight in every head."""
    weights, view = screen.weights, screen.view
    link = "from {} to {}".format(*screen.names)
    ranks = 1 + (weights > weights[..., None, None]).sum(axis=(2, 3))
    notes = []
    if max(stop - start for start, stop in screen.spans) > 1:
        notes.append("For a phrase or word: the mean over its queries of the sum over its keys.")
    if view.is_of_layer:
        notes.append(f"{SHOWN_NAMES[view.measure]} combines all heads; the weights of each head are shown.")
    if view.kind == "decoder" and not np.nan_to_num(weights).any():
        notes.append("In a decoder a token sees only itself and earlier tokens.")
    named_heads(
        view,
        weights,
        lambda head: (
            f"{head.title}: {number_text(float(weights[head]))} {link}, rank {ranks[head]} of {known(weights).size}"
        ),
        name=f"The weight in every head {link}",
        notes=notes,
    )


def best_heads(screen: Screen) -> None:
    """The heads with the largest weight for the pair."""
    weights = screen.weights
    order = [Head(int(layer), int(head)) for layer, head in heads.ranked(weights)[:MOST_ROWS]]
    largest = float(np.nanmax(weights)) or 1.0
    st.markdown("**Heads with the largest weight**")
    ranked_heads(
        screen.view,
        [(head, number_text(float(weights[head])), float(weights[head]) / largest) for head in order],
        name="Heads, ranked by what they give from the query to the key",
        key="best_heads",
        scrolls=True,
    )
    if (n_heads := len(known(weights))) > len(order):
        st.caption(f"The first {len(order)} of {n_heads} heads.")


def best_pairs(screen: Screen) -> None:
    """The pairs with the largest weight in the selected head."""
    view, selection = screen.view, screen.view.selection
    queries, keys, listed = view.queries, view.keys, selection.of(PairList)
    st.markdown(f"**Strongest pairs of {selection.place.words}**")
    cells = head_cache.Cells(
        source=selection.source,
        kind=view.kind,
        measure=screen.measure,
        rows=head_cache.spans(queries),
        columns=head_cache.spans(keys),
    )
    asked = (*selection.place, MOST_ROWS)
    pairs = head_cache.strongest_pairs(cells, *asked, special=listed.special, itself=listed.itself)
    query_labels, key_labels = labels_at(queries), labels_at(keys)
    ranked_list(
        [
            ranked.Row(
                text=query_labels[row],
                key=key_labels[column],
                amount=number_text(weight),
                length=weight / pairs[0].weight,
                picked=(tuple(queries.spans[row]), tuple(keys.spans[column])) == screen.spans,
            )
            for row, column, weight in pairs
        ],
        name="Pairs of query and key, ranked by what this head gives them",
        on_pick=lambda row: state.change(
            query=int(queries.positions[pairs[row].row]), key=int(keys.positions[pairs[row].column])
        ),
        theme=view.theme,
        key="best_pairs",
        scrolls=True,
    )
    if not pairs:
        st.caption(NO_PAIR)
    boxes = st.container(horizontal=True)
    boxes.checkbox(**widgets.field("pairs_special"), disabled=view.hides_special)
    if view.kind != "cross":
        boxes.checkbox(**widgets.field("pairs_itself"))
    if note := hidden_note(view):
        st.caption(note)


def random_tokens(screen: Screen) -> None:
    """Which heads repeat earlier tokens: those with the largest number of each probe, and the selected head on random tokens."""
    view = screen.view
    if not find_probes(screen) or (probes := known_probes(view)) is None:
        return
    st.markdown(f"**{repeats(probes, view.selection.place)}**")
    for column, name in zip(st.columns(len(PROBES), gap="medium"), PROBES, strict=True):
        with column:
            means, spreads = probes.means[name], probes.spreads[name]
            st.markdown(f"**{PROBES[name].called.capitalize()}**")
            ranked_heads(
                view,
                [
                    (
                        head,
                        f"{cell_text(float(means[head]))} ± {cell_text(float(spreads[head]))}",
                        float(means[head]),
                    )
                    for head in probes.ranked(name)[:N_RANKED]
                ],
                name=f"Heads with the largest share, {PROBES[name].called}; select one",
                key=name,
            )
            st.caption(literal(PROBES[name].help))
    _matrix(view, probes)


_GIVEN = {
    "probe_induction": "of a repeated token’s weight to what followed it the first time",
    "probe_duplicate": "of a repeated token’s weight to its other occurrence",
    "probe_previous": "of its weight to the previous token",
    "probe_first": "of its weight to the first token",
}


def repeats(probes: HeadProbes, head: Head) -> str:
    """What the selected head does with repeated random tokens."""
    largest = max(PROBES, key=lambda name: float(probes.means[name][head]))
    share = share_text(float(probes.means[largest][head]))
    return f"On repeated random tokens, {head.words} gives {share} {_GIVEN[largest]}"


def _matrix(view: View, probes: HeadProbes) -> None:
    """The weights of the selected head on one of the texts."""
    asked = offer(view.selection.model).name, view.selection.place, view.kind
    work = job("probe_pattern", asked, lambda: [(of_model.pattern, asked, {})])
    if not is_there(work, 2 * probes.n_token, "Reading random tokens", key="pattern_act"):
        return
    pattern: AttentionPattern = work.results[0]
    place = view.selection.place
    chart(
        draw_pattern(pattern, theme=view.theme),
        key="random_tokens",
        alt=f"Attention matrix of {place.words} on {probes.n_token} repeated random tokens",
    )
    st.caption(
        f"{place.title} on {probes.n_token} repeated random tokens, the first of {probes.n_text} such texts that the numbers "
        "above are means of; behind ± is the standard deviation over the texts. An induction head draws a line that starts where "
        "the tokens come again, one cell to the right of their first occurrence; a duplicate token head draws it on that "
        "occurrence (Olsson et al. 2022, arXiv:2209.11895)."
    )


def as_csv(screen: Screen) -> bytes:
    """The pair's weight in every head, largest first."""
    rows = ([layer, head, screen.weights[layer, head]] for layer, head in heads.ranked(screen.weights))
    return table_csv(["layer", "head", "number"], rows)


PART = Part(
    name="Find a head",
    address="find_a_head",
    question="Which head links these two tokens?",
    asks=("sentence", "head", "rows"),
    longest=8192,
    sheets=(
        Sheet(
            strip=strip,
            screen=screen_of,
            finding=finding,
            rows=(
                Row(
                    Picture(
                        "head_grid", "All heads", lambda view: f"cells: {measured(view)} of each head", grid
                    ),
                    best_heads,
                    best_pairs,
                    widths=(23, 10, 10),
                    beside="head_grid",
                ),
                random_tokens,
            ),
            numbers="All heads",
            csv=as_csv,
        ),
    ),
)
