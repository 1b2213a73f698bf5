"""What is shown of all heads: their numbers, their labels, and which are not dimmed."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import streamlit as st

from attnviz import heads
from attnviz.figures.numbers import number_text, share_text
from attnviz.heads import LABELS, PROBES, STATISTICS, HeadNumber
from attnviz.records import Head
from ui.choice import state
from ui.rooms.all_heads.choices import GridSettings
from ui.runtime import head_cache
from ui.session import of_session
from ui.shell.head_names import known_names, known_probes
from ui.shell.view import View
from ui.words.head_names import HeadNames

PICTURES = "pictures"
NUMBERS: Mapping[str, HeadNumber] = {**STATISTICS, **PROBES}
"""A head's statistics by name: on this text, and on random tokens."""


OfHeads = Mapping[str, np.ndarray]  # by name, something of every head [layer, head]


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What is shown of all heads."""

    view: View
    cells: head_cache.Cells
    numbers: OfHeads
    labels: OfHeads
    names: HeadNames | None
    """The heads' names; None until they are known."""

    @property
    def shown(self) -> str:
        """Pictures, or the number that the grid is coloured by; pictures if the heads have no such number."""
        return (
            self.view.selection.of(GridSettings).grid
            if self.view.selection.of(GridSettings).grid in self.numbers
            else PICTURES
        )

    @property
    def heads(self) -> tuple[Head, ...]:
        """Every head, layer by layer."""
        return self.view.trace.heads(self.view.kind)

    def amount_text(self, name: str, number: float) -> str:
        """A number of this name, for a sentence."""
        is_distance = NUMBERS[name].unit == "distance"
        return f"{number_text(number)} {self.view.selection.unit}" if is_distance else share_text(number)

    def reading(self, name: str, layer: int, head: int) -> str:
        """A number of a head as its cell shows it, to three digits."""
        number = float(self.numbers[name][layer, head])
        unit = f" {self.view.selection.unit}" * (NUMBERS[name].unit == "distance")
        return f"{number_text(number)}{unit}" if np.isfinite(number) else "none"

    def borne(self, layer: int, head: int) -> list[str]:
        """The labels of a head."""
        return [label for label, bears in self.labels.items() if bears[layer, head]]

    @property
    def is_kept(self) -> np.ndarray:
        """Which heads match the pattern and have a number in the selected range, [layer, head].

        False where a layer has no such head.
        """
        selection = self.view.selection
        keep = np.zeros(self.view.trace.shape(self.view.kind), dtype=bool)
        keep[tuple(np.transpose(self.heads))] = True
        if not self.numbers:
            return keep
        if selection.of(GridSettings).label == "none":
            keep &= ~np.any(list(self.labels.values()), axis=0)
        elif selection.of(GridSettings).label != "all":
            keep &= self.labels.get(LABELS[selection.of(GridSettings).label], np.zeros_like(keep))
        if self.shown != PICTURES:
            low = -np.inf if selection.of(GridSettings).lowest is None else selection.of(GridSettings).lowest
            high = (
                np.inf if selection.of(GridSettings).highest is None else selection.of(GridSettings).highest
            )
            keep &= ~((self.numbers[self.shown] < low) | (self.numbers[self.shown] > high))
        return keep


@dataclass(slots=True)
class NumbersRead:
    """The heads whose numbers this visitor has waited for."""

    cells: head_cache.Cells | None = None


def within(title: str) -> str:
    """A title as written within a sentence."""
    return title[0].lower() + title[1:]


def pick(layer: int, head: int) -> None:
    """Selects a head, here and on every page."""
    state.change(layer=layer, head=head)


def screen_of(view: View) -> Screen:
    """The numbers and labels of all heads; empty if pictures can be shown before they are computed."""
    measure = "weights" if view.measure == "rollout" else view.measure  # rollout has no matrix for a head
    selection = view.selection
    cells = head_cache.Cells(
        source=selection.source,
        kind=view.kind,
        measure=measure,
        rows=head_cache.spans(view.queries),
        columns=head_cache.spans(view.keys),
    )
    names, probes = known_names(view), known_probes(view)
    if selection.of(GridSettings).grid == PICTURES and not is_read(cells):
        return Screen(view=view, cells=cells, numbers={}, labels={}, names=names)
    numbers = read(cells)
    labels = heads.labels(
        numbers,
        near=selection.of(GridSettings).near,
        delimiter=selection.of(GridSettings).delimiter,
        broad=selection.of(GridSettings).broad,
    )
    on_random = {} if probes is None else probes.means
    return Screen(view=view, cells=cells, numbers={**numbers, **on_random}, labels=labels, names=names)


def is_read(cells: head_cache.Cells) -> bool:
    """Whether this visitor has already waited for these heads' numbers; heads without any weight have none."""
    return of_session(NumbersRead).cells == cells


def read(cells: head_cache.Cells) -> OfHeads:
    """The numbers of all heads, which take longer than their pictures."""
    with st.spinner("Reading all heads …", show_time=True):
        numbers = head_cache.statistics(cells)
    of_session(NumbersRead).cells = cells
    return numbers
