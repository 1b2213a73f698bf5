"""What is shown of all heads: their settings, their numbers, their labels, and which are not dimmed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import streamlit as st

from attnviz import heads
from attnviz.figures.numbers import number_text, share_text
from attnviz.heads import BROAD, DELIMITER, LABELS, NEAR, PROBES, STATISTICS, HeadNumber
from attnviz.records import Head
from ui.choice.fields import Number, Switch, Word
from ui.choice.selection import choices
from ui.runtime import head_cache
from ui.session import of_session
from ui.shell.head_names import known_names, known_probes
from ui.shell.view import View
from ui.words.findings import MARKS
from ui.words.head_names import HeadNames

PICTURES = "pictures"
NUMBERS: Mapping[str, HeadNumber] = {**STATISTICS, **PROBES}
"""A head's statistics by name: on this text, and on random tokens."""
OfHeads = Mapping[str, np.ndarray]  # by name, something of every head [layer, head]


@choices
@dataclass(frozen=True, slots=True, kw_only=True)
class GridSettings:
    """The grid of all heads: what it shows, and which heads it dims."""

    grid: Annotated[
        str,
        Word(
            ("pictures", *STATISTICS, *PROBES),
            names={"pictures": "Pictures"}
            | {name: number.title for name, number in {**STATISTICS, **PROBES}.items()},
            title="Show",
            help="Shows each head's matrix as a small picture, or one number of each head as a colour.",
        ),
    ] = "pictures"
    """Pictures, or one of `attnviz.heads.STATISTICS` or `attnviz.heads.PROBES`."""
    copying: Annotated[
        bool,
        Switch(
            title="Copying scores",
            help="Finds, from the model’s parameters alone, which heads raise the logits of the tokens that they attend to.",
        ),
    ] = False
    """Whether the copying score of every head is shown."""
    common_scale: Annotated[
        bool,
        Switch(
            title="One scale for all heads",
            help="Gives the strongest tone to the largest weight of all heads, instead of each head's own.",
        ),
    ] = False
    label: Annotated[
        str,
        Word(
            ("all", *LABELS, "none"),
            names={
                "all": "All heads",
                "none": "Heads without a pattern",
                **{name: f"{MARKS[label]}  {label}" for name, label in LABELS.items()},
            },
            title="Highlight",
            help="Dims the heads that do not match this pattern.",
        ),
    ] = "all"
    """Pattern of the heads that are not dimmed: one of `attnviz.heads.LABELS`, all or none."""
    lowest: Annotated[float | None, Number(help="Dims the heads whose number is smaller.")] = None
    highest: Annotated[float | None, Number(help="Dims the heads whose number is larger.")] = None
    near: Annotated[
        float,
        Number(
            0,
            1,
            step=0.05,
            title="Previous, next, self: weight above",
            help="A head whose number is larger matches the pattern.",
        ),
    ] = NEAR
    delimiter: Annotated[
        float,
        Number(
            0,
            1,
            step=0.05,
            title=r"\[CLS\], \[SEP\], punctuation: weight above",
            help="A head whose number is larger matches the pattern.",
        ),
    ] = DELIMITER
    broad: Annotated[
        float,
        Number(
            0,
            1,
            step=0.05,
            title="Broad: entropy, as a share of ln n, above",
            help="A head whose number is larger matches the pattern.",
        ),
    ] = BROAD


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
    def settings(self) -> GridSettings:
        """What the visitor has chosen."""
        return self.view.selection.of(GridSettings)

    @property
    def shown(self) -> str:
        """Pictures, or the number that the grid is coloured by; pictures if the heads have no such number."""
        return self.settings.grid if self.settings.grid in self.numbers else PICTURES

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
        settings = self.settings
        keep = np.zeros(self.view.trace.shape(self.view.kind), dtype=bool)
        keep[tuple(np.transpose(self.heads))] = True
        if not self.numbers:
            return keep
        if settings.label == "none":
            keep &= ~np.any(list(self.labels.values()), axis=0)
        elif settings.label != "all":
            keep &= self.labels.get(LABELS[settings.label], np.zeros_like(keep))
        if self.shown != PICTURES:
            numbers = self.numbers[self.shown]
            low = -np.inf if settings.lowest is None else settings.lowest
            high = np.inf if settings.highest is None else settings.highest
            keep &= ~((numbers < low) | (numbers > high))
        return keep


@dataclass(slots=True)
class NumbersRead:
    """The heads whose numbers this visitor has waited for."""

    cells: head_cache.Cells | None = None


def screen_of(view: View) -> Screen:
    """The numbers and labels of all heads; empty if pictures can be shown before they are computed."""
    settings = view.selection.of(GridSettings)
    cells = head_cache.Cells(
        source=view.selection.source,
        kind=view.kind,
        measure=view.measure_of_heads,
        rows=head_cache.spans(view.queries),
        columns=head_cache.spans(view.keys),
    )
    names, probes = known_names(view), known_probes(view)
    if settings.grid == PICTURES and not is_read(cells):
        return Screen(view=view, cells=cells, numbers={}, labels={}, names=names)
    numbers = read(cells)
    labels = heads.labels(numbers, near=settings.near, delimiter=settings.delimiter, broad=settings.broad)
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
