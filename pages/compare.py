"""What differs? Two heads, layers, sentences or models on common axes: A is what is selected, B the other."""

from functools import partial

import streamlit as st

from attnviz.heads.comparison import compare, comparison_csv
from ui.rooms.compare.controls import controls, partners
from ui.rooms.compare.largest import changed_rows, largest_changes
from ui.rooms.compare.partner import view_of_b, with_b
from ui.rooms.compare.words import heading, notes, side_b, summary
from ui.rooms.compare.zoom import PARTS, figures, matrix, zoom_buttons
from ui.shell import errors, verdict
from ui.shell.export.take import take
from ui.shell.frame import frame_around
from ui.shell.gap import masked_position, what_stands_here
from ui.words import findings as words
from ui.words.findings import place, strongest_key
from ui.words.literal import literal

with frame_around("Side by side") as view:  # whose link says what B really is
    numbers = view.pattern()
    key = strongest_key(numbers, view.query) if view.selection.key is None else view.selection.key
    picked = view.query, key
    shown = with_b(view, key)
    finding_place, controls_place = st.container(key="finding"), st.container()
    b = view_of_b(view, shown)
comparison = None
if b is not None:
    with errors.explained(key="cut_compared"):
        comparison = compare(view.pattern(), b.pattern())
with controls_place:
    controls(view, shown, b, key, picked if comparison is None else partners(comparison, picked))
    masked = next((side for side in (b, view) if side is not None and side.selection.masked), None)
    if masked is not None:
        what_stands_here(masked, masked_position(masked.selection, masked.query), key="stands_here")
columns = st.columns(3, gap="small")
if b is None or comparison is None:  # why has been said; A stays
    sentence = literal(words.finding(numbers, *picked))
    finding_place.markdown(f"**{sentence}**")
    with columns[0]:
        st.markdown(f"**A** · {place(numbers).lower()}")
        matrix(
            view,
            compare(view.pattern(), view.pattern()),
            "first",
            picked,
            alt=f"{PARTS['first']}: {sentence}",
            key="compare",
        )
    take(view, {"compare_first": PARTS["first"]})
else:
    sentence = summary(comparison, picked, view.selection, b.selection)
    finding_place.markdown(f"**{sentence}**")
    for column, part in zip(columns, PARTS, strict=True):
        with column:
            st.markdown(heading(part, view.selection, b.selection, comparison))
            matrix(view, comparison, part, picked, alt=f"{PARTS[part]}: {sentence}", key="compare")
    verdict_of_b = columns[1].container()
    zoom_buttons(comparison, view.selection.b.zoom, key="compare")
    st.caption(notes(view, comparison))
    left, right = st.columns(2, gap="medium")
    with left:
        largest_changes(view, comparison, picked)
    with right:
        changed_rows(view, comparison, view.query)
    pictures = {f"compare_{part}": written for part, written in PARTS.items()}
    take(
        view,
        pictures,
        csv=partial(comparison_csv, comparison),
        numbers="Comparison",
        drawn=partial(figures, view, comparison, picked),
        about=f"B: {side_b(view.selection, b.selection, comparison)}",
    )
verdict.show(view)
if b is not None and comparison is not None and b.selection.source != view.selection.source:
    with verdict_of_b:
        verdict.show_of_b(b.selection)
