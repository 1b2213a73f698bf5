"""What differs? Two heads, layers, sentences or models on common axes: A is what is selected, B the other."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import streamlit as st
from plotly.graph_objects import Figure

from attnviz.figures import comparison as figures
from attnviz.figures.comparison import MOST_CHANGES, entry_labels
from attnviz.figures.labels import label_at
from attnviz.figures.numbers import number_text, signed_text
from attnviz.heads.comparison import Change, Comparison, compare
from attnviz.model.catalogue import offers
from ui.choice import state, widgets
from ui.choice.selection import Selection, usual
from ui.components import ranked_list as ranked
from ui.components.ranked_list import ranked_list
from ui.part import Part, Picture, Row, Sheet
from ui.rooms.compare.differences import heading, notes, side_b, summary
from ui.rooms.compare.partner import (
    FIELDS,
    PartnerB,
    Place,
    differs,
    other,
    other_models,
    start,
    view_of_b,
    with_b,
)
from ui.rooms.compare.zoom import matrix, pick, zoom_buttons
from ui.rooms.explore.mixing import mixing_is_there
from ui.runtime import cache
from ui.shell import errors, verdict
from ui.shell.export.captions import measured
from ui.shell.gap import masked_position, what_stands_here
from ui.shell.view import View
from ui.streamlit_fixes.stale_values import tie
from ui.words.findings import finding, place
from ui.words.literal import literal

NAMES = {
    "head": "Head",
    "layer": "Layer",
    "sentence": "Sentence",
    "model": "Model",
    "masked": "Masked tokens",
}


@dataclass(frozen=True, kw_only=True)  # without slots, for what is computed once
class Screen:
    """A, B and what differs between their matrices."""

    view: View
    shown: Selection
    """The selection with a B."""
    b: View | None
    """None where it cannot be drawn, which has been explained."""
    comparison: Comparison | None
    """None where the two cannot be compared; A stays."""
    place_of_verdict: list[Any] = field(default_factory=list)
    """Below B; filled last, since checking takes as long as reading the text."""

    @property
    def picked(self) -> tuple[int, int]:
        """Positions of the selected query and key in A."""
        return self.view.query, self.view.key

    @property
    def partners(self) -> Place:
        """The same in B."""
        if self.comparison is None:
            return self.picked
        partners: list[int | None] = []
        sides = self.comparison.queries, self.comparison.keys
        for alignment, position in zip(sides, self.picked, strict=True):
            entry = alignment.index(position)
            partner = -1 if entry is None else int(alignment.positions(1)[entry])
            partners.append(None if partner < 0 else partner)
        return partners[0], partners[1]

    @cached_property
    def said(self) -> str:
        """How the two differ, or what A does where there is nothing to compare it with."""
        if self.b is None or self.comparison is None:
            pattern = self.view.pattern()
            return f"{place(pattern)}: {literal(finding(pattern, *self.picked))}"
        return summary(self.comparison, self.picked, self.view.selection, self.b.selection)


def screen_of(view: View) -> Screen | None:
    """A and B, below the controls that say how they differ; None while their numbers are computed."""
    shown, place_of_controls, comparison = with_b(view, view.key), st.container(), None
    b, is_awaited = view_of_b(view, shown), False
    with errors.explained(key="cut_compared"):
        sides = (view,) if b is None else (view, b)
        is_awaited = not all(mixing_is_there(side, [side.selection.layer]) for side in sides)
        if not is_awaited and b is not None:
            comparison = compare(view.pattern(), b.pattern())
    screen = Screen(view=view, shown=shown, b=b, comparison=comparison)
    with place_of_controls:
        controls(screen)
        masked = next((side for side in (b, view) if side is not None and side.selection.masked), None)
        if masked is not None:
            what_stands_here(masked, masked_position(masked.selection, masked.query), key="stands_here")
    return None if is_awaited else screen


def controls(screen: Screen) -> None:
    """The control for what differs in B, and a field for each difference."""
    view, shown, b = screen.view, screen.shown, screen.b
    selection = view.selection
    can_mask = view.kind == "encoder" and cache.mask_label(selection.source) is not None
    is_possible = {"masked": can_mask, "model": bool(other_models(selection))}
    options = [what for what in FIELDS if differs(shown, what) or is_possible.get(what, True)]
    chosen = [what for what in options if differs(shown, what)]

    def choose_differences(picked: list[str]) -> None:
        changes: dict[str, Any] = {}
        for what, names in FIELDS.items():
            if what not in picked:
                changes |= {name: usual(name) for name in names}
            elif not differs(shown, what):
                changes |= start(what, view, view.key)
            else:
                changes |= {name: shown.value(name) for name in names}
        state.change(**changes)

    is_one = len(chosen) < 2
    with st.container(horizontal=True, vertical_alignment="bottom", key="part_controls"):
        if is_one:
            st.segmented_control(
                "B differs in",
                options,
                required=True,
                format_func=NAMES.__getitem__,
                wrap=True,
                help="Sets what is different in B; everything else is as in A, which the controls above set.",
                default=chosen[0],
                **tie("compare_differs", chosen[0], lambda what: choose_differences([what])),
            )
        else:
            several(options, chosen, choose_differences)
        of_b = view if b is None else b
        n_heads = of_b.trace.n_heads(of_b.selection.layer, of_b.kind)
        for what, count in (("layer", of_b.trace.n_layers(of_b.kind)), ("head", n_heads)):
            if what in chosen:
                fitted = shown.but(**{f"other_{what}": min(shown.value(f"other_{what}"), count - 1)})
                label = f"{NAMES[what]} of B (0–{count - 1})"
                st.number_input(**field_of_b(f"other_{what}", fitted, label=label), width=150)
        if "model" in chosen:
            st.selectbox(
                **field_of_b("other_model", shown, options=[offer.name for offer in offers()]), width=220
            )
        if "masked" in chosen:
            masked_tokens(view, shown)
        st.button(
            "Swap A and B",
            icon=":material/swap_horiz:",
            key="swap",
            on_click=swap,
            args=(selection, shown, other(shown) if b is None else b.selection, screen.partners),
            help="Selects B and compares it with what was A.",
        )
        if is_one:
            with st.popover("More", icon=":material/tune:", key="compare_more"):
                several(options, chosen, choose_differences)
    if "sentence" in chosen:
        sentences = st.columns([2, 1]) if shown.second or shown.of(PartnerB).second else [st.container()]
        for column, name in zip(sentences, ("other_text", "other_second"), strict=False):
            column.text_input(**field_of_b(name, shown))


def several(options: list[str], chosen: list[str], take: Callable[[list[str]], None]) -> None:
    """The control for what differs in B, when that can be several things at once."""
    st.pills(
        "B differs in all of these",
        options,
        selection_mode="multi",
        format_func=NAMES.__getitem__,
        wrap=True,
        help="Lets B differ in several things at once; the headline names each.",
        default=chosen,
        **tie("compare_several", chosen, take),
    )


def field_of_b(name: str, shown: Selection, **different: Any) -> dict[str, Any]:
    """Arguments of a widget for a field of B; a change makes all of B as shown explicit."""
    return widgets.field(name, shown, partial(choose, shown), **different)


def choose(shown: Selection, **changes: Any) -> None:
    """Changes B, and makes the rest of B as shown explicit."""
    if changes.keys() & {"other_text", "other_model"}:
        changes = {"other_masked": None} | changes  # positions belong to the previous text
    rest = {field: shown.value(field) for fields in FIELDS.values() for field in fields}
    state.change(**rest | changes)


def masked_tokens(view: View, shown: Selection) -> None:
    """The control for the masked tokens of B."""
    tokens = view.trace.tokens
    with errors.explained(key="cut_masked"):
        tokens = cache.trace(replace(other(shown).source, masked=())).tokens
    options = [position for position in range(len(tokens)) if not tokens.is_special[position]]
    masked = tuple(position for position in shown.of(PartnerB).masked or () if position in options)
    st.multiselect(
        **field_of_b(
            "other_masked",
            shown.but(other_masked=masked),
            format_func=lambda position: label_at(tokens.labels[position], position),
            options=options,
        ),
        placeholder="No token",
        width=260,
    )


def swap(a: Selection, shown: Selection, b: Selection, there: Place) -> None:
    """Swaps A and B; the selected tokens stay selected."""
    swapped = {name: b.value(name) for name in ("model", "text", "second", "masked", "layer", "head")}
    for what, fields in FIELDS.items():
        if differs(shown, what):
            swapped |= {field: a.value(field.removeprefix("other_")) for field in fields}
    if a.masked != b.masked:
        swapped["other_masked"] = a.masked
    state.change(**swapped, query=there[0], key=there[1])


def side(screen: Screen, part: figures.Part, name: str) -> Figure | tuple[str, ...]:
    """A, B or their difference, below where it comes from; A alone where there is nothing to compare it with."""
    view, alt = screen.view, f"{name}: {screen.said}"
    if screen.b is not None and screen.comparison is not None:
        st.markdown(heading(part, view.selection, screen.b.selection, screen.comparison))
        drawn = matrix(view, screen.comparison, part, screen.picked, alt=alt, key="compare")
        if part == "second":
            screen.place_of_verdict.append(st.container())
        return drawn
    if part == "first":
        pattern = view.pattern()
        st.markdown(f"**A** · {place(pattern).lower()}")
        matrix(view, compare(pattern, pattern), part, screen.picked, alt=alt, key="compare")
        return ("compare_first",)
    return ()


def zoom(screen: Screen) -> None:
    """Buttons for a smaller or larger part, and what the pictures leave out."""
    if screen.comparison is not None:
        zoom_buttons(screen.comparison, screen.view.selection.of(PartnerB).zoom, key="compare")
        st.caption(notes(screen.view, screen.comparison))


def _amount(change: Change) -> str:
    """From what to what, and by how much where both would be written alike."""
    first, second = number_text(change.first), number_text(change.second)
    return f"{first} → {second}" if first != second else f"{first}, {signed_text(change.difference)}"


def largest_changes(screen: Screen) -> None:
    """The cells that differ most; a click selects."""
    if (comparison := screen.comparison) is None:
        return
    if not (changes := comparison.largest(MOST_CHANGES)):
        st.markdown("No cell differs between A and B.")
        return
    queries, keys = comparison.queries, comparison.keys
    query_labels, key_labels = entry_labels(queries), entry_labels(keys)
    at = queries.index(screen.picked[0]), keys.index(screen.picked[1])

    def pick_cell(row: int) -> None:
        change = changes[row]
        pick([int(queries.positions(0)[change.query]), int(keys.positions(0)[change.key])])

    st.markdown("**Largest changes, A → B**")
    ranked_list(
        [
            ranked.Row(
                text=query_labels[change.query],
                key=key_labels[change.key],
                amount=_amount(change),
                length=abs(change.difference / changes[0].difference),
                picked=(change.query, change.key) == at,
            )
            for change in changes
        ],
        name="Largest changes from A to B",
        on_pick=pick_cell,
        theme=screen.view.theme,
        key="changes",
    )


def changed_rows(screen: Screen) -> None:
    """The queries whose rows differ most; a click selects."""
    if (comparison := screen.comparison) is None:
        return
    change = comparison.row_change
    if not (order := most_changed(comparison)):
        return
    labels, positions = entry_labels(comparison.queries), comparison.queries.positions(0)
    selected = comparison.queries.index(screen.view.query)
    st.markdown("**Queries whose attention differs most**")
    ranked_list(
        [
            ranked.Row(
                text=labels[row],
                amount=number_text(float(change[row])),
                length=float(change[row] / change[order[0]]),
                picked=row == selected,
            )
            for row in order
        ],
        name="Queries by how much of their attention differs",
        on_pick=lambda row: state.change(query=int(positions[order[row]]), key=None),
        theme=screen.view.theme,
        key="changed_rows",
    )
    st.caption(rows_note(comparison))


def most_changed(comparison: Comparison) -> list[int]:
    """Rows of the queries that differ at all, largest difference first."""
    change = np.nan_to_num(comparison.row_change)
    return [int(row) for row in np.argsort(-change, kind="stable")[:MOST_CHANGES] if change[row] > 0]


def rows_note(comparison: Comparison) -> str:
    """Explains a row's number; a share only if weights sum to 1."""
    is_share = ": the share of its attention that goes elsewhere in B" * (
        comparison.first.measure == "weights" and comparison.rows_are_whole
    )
    return f"Half the sum of a row's differences{is_share}, including keys without a partner."


def verdict_of_b(screen: Screen) -> None:
    """The verdict on B if it is another sentence or model."""
    b = screen.b
    if b is not None and screen.place_of_verdict and b.selection.source != screen.view.selection.source:
        with screen.place_of_verdict[0]:
            verdict.show_of_b(b.selection)


def _csv(screen: Screen) -> bytes:
    if screen.comparison is not None:
        return screen.comparison.csv()
    return screen.view.pattern().csv(scores=screen.view.selection.show == "scores")


def _about(screen: Screen) -> str:
    if screen.b is None or screen.comparison is None:
        return ""
    return f"B: {side_b(screen.view.selection, screen.b.selection, screen.comparison)}"


def _picture(part: figures.Part, name: str, of: str = "") -> Picture:
    return Picture(
        f"compare_{part}",
        name,
        lambda view: f"cell colour: {measured(view)}{of}",
        partial(side, part=part, name=name),
    )


PART = Part(
    name="Side by side",
    address="compare",
    question="What changes with another sentence, head, layer or model?",
    asks=("sentence", "head", "rows"),
    sheets=(
        Sheet(
            screen=screen_of,
            finding=lambda screen: screen.said,
            rows=(
                Row(
                    _picture("first", "Matrix A"),
                    _picture("second", "Matrix B"),
                    _picture("difference", "B minus A", " of B minus that of A"),
                    gap="small",
                ),
                zoom,
                Row(largest_changes, changed_rows),
                verdict_of_b,
            ),
            numbers="Comparison",
            csv=_csv,
            about=_about,
        ),
    ),
)
