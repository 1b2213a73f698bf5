"""A list of heads ranked by a number, with its interval."""

from typing import Any

import numpy as np

from attnviz.figures.numbers import cell_text
from attnviz.records import Head
from ui.choice import state
from ui.components.ranked_list import Row, ranked_list
from ui.rooms.many_texts.profiles.screen import Number, Screen


def ranked(
    screen: Screen,
    shown: list[Head],
    heads: list[Head],
    number: Number,
    *,
    key: str,
    largest: float | None = None,
) -> None:
    """Heads with their numbers; bars are shares of ``largest``, or of the largest number shown."""
    means = {head: float(number.means[heads.index(head)]) for head in shown}
    largest = largest or max((abs(mean) for mean in means.values()), default=0.0) or 1.0
    ranked_list(
        [
            Row(
                text=head.title,
                amount=with_interval(number, heads.index(head)),
                length=means[head] / largest,
                picked=head == screen.head,
            )
            for head in shown
        ],
        name=f"Heads, ranked by {number.title}; select one",
        on_pick=lambda row: pick([shown[row].layer, shown[row].head]),
        theme=screen.view.theme,
        key=key,
        scrolls=True,
    )


def with_interval(number: Number, at: int) -> str:
    """A head's number with its interval."""
    mean = cell_text(float(number.means[at]))
    if number.ends is None or not np.isfinite(number.ends[0][at]):
        return mean
    low, high = (cell_text(float(end[at])) for end in number.ends)
    return f"{mean} ({low} to {high})"


def pick(clicked: Any) -> None:
    """Selects the head that was clicked, [layer, head]."""
    match clicked:
        case [int(layer), int(head)]:
            state.change(layer=layer, head=head)
