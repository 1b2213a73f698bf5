"""The grid of all heads: pictures or numbers, with its finding."""

from collections.abc import Mapping
from functools import partial

import streamlit as st

from attnviz.figures.heatmap import MEASURE_NAMES
from attnviz.figures.numbers import number_text
from attnviz.figures.thumbnails import MOST_PIXELS
from attnviz.heads import PROBES
from attnviz.heads.facts import extremes
from attnviz.heads.head_statistics import Matched, matched
from attnviz.records import Head, by_layer
from ui.components.head_grid import head_grid
from ui.rooms.all_heads.choices import GridSettings
from ui.rooms.all_heads.screen import NUMBERS, PICTURES, Screen, pick, within
from ui.runtime import head_cache
from ui.shell.view import RENORMALISED, hidden_note
from ui.words.findings import MARKS, extremes_words
from ui.words.head_names import attending, attends_words, mark_of, marks_note, with_names
from ui.words.literal import literal


def finding(screen: Screen) -> str:
    """What the grid shows overall, and for the selected head."""
    if screen.shown == PICTURES:
        place = screen.view.selection.place
        words = attending(screen.view.keys.tokens)
        attends = attends_words(screen.labels, words, place)
        own = f"attends {attends}" if attends else "matches none"
        return f"{matched_words(matched(screen.labels), words, len(screen.heads))}; {place.words} {own}"
    amount = partial(screen.amount_text, screen.shown)
    numbers = extremes(screen.numbers[screen.shown], amount)
    return extremes_words(NUMBERS[screen.shown].title, numbers, amount)


def matched_words(matched: Matched, words: Mapping[str, str], n_heads: int) -> str:
    """How many heads match a known pattern, and how they attend."""
    sentence = f"{matched.n_matched} of {n_heads} heads match a known pattern"
    listed = ", ".join(
        f"{count} attend{'s' * (count == 1)} {words[label]}" for label, count in matched.counts
    )
    return f"{sentence}: {listed}" if listed else sentence


def grid(screen: Screen) -> None:
    """All heads, each with its marks."""
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
                common=selection.of(GridSettings).common_scale,
                colour=selection.colour,
                theme=view.theme,
            )

    def text(layer: int, head: int) -> str:
        if largest is None:
            sentence = f"{within(NUMBERS[screen.shown].title)} {screen.reading(screen.shown, layer, head)}"
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
        on_pick=pick,
        theme=view.theme,
        pictures=pictures,
        numbers=None if pictures else screen.numbers[screen.shown],
        marks=marks,
        dimmed=~screen.is_kept,
    )


def notes(screen: Screen) -> None:
    """What the grid shows and hides, and what its marks mean."""
    view, selection = screen.view, screen.view.selection
    sentences = []
    if screen.shown == PICTURES:
        own = "the largest of all heads" if selection.of(GridSettings).common_scale else "its own largest"
        sentences.append(f"Each picture goes from 0 to {own}.")
        if max(len(view.queries), len(view.keys)) > MOST_PIXELS:
            sentences.append("Each pixel is the largest value in its block.")
        if view.is_renormalised:
            sentences.append(RENORMALISED)
    else:
        number = NUMBERS[screen.shown]
        sentences.append(f"{number.help} Source: {number.source}.")
    if screen.shown != selection.of(GridSettings).grid:
        asked = selection.of(GridSettings).grid
        why = "not known yet" if asked in PROBES else "there is none for this text"
        sentences.append(f"{NUMBERS[asked].title}: {why}, so pictures are shown.")
    if view.measure == "rollout":
        sentences.append("Rollout combines all heads; weights are shown.")
    marks = " · ".join(f"{MARKS[label]} {label}" for label in screen.labels or MARKS)
    sentences.append(
        f"Marks from this text: {marks} (after Clark et al. 2019, arXiv:1906.04341, section 3 and figure 6; thresholds under More)."
    )
    if note := marks_note(screen.names):
        sentences.append(note)
    st.caption(literal(" ".join([*sentences, hidden_note(view)])))
