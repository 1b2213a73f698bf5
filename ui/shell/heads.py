"""All heads as a grid and some of them as a ranking, with what each is called; a click selects a head on every page."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import streamlit as st
from jaxtyping import Float

from attnviz.records import Head, by_layer
from ui.choice import state
from ui.components.head_grid import head_grid
from ui.components.ranked_list import Row, ranked_list
from ui.shell.head_names import known_names
from ui.shell.view import View
from ui.words.head_names import marks_note, marks_of, with_names
from ui.words.literal import literal


def pick_head(layer: int, head: int) -> None:
    """Selects a head, here and on every page."""
    state.change(layer=layer, head=head)


def named_heads(
    view: View,
    numbers: Float[np.ndarray, "layer head"],
    text: Callable[[Head], str],
    *,
    name: str,
    key: str = "head_grid",
    signed: bool = False,
    notes: Sequence[str] = (),
    heads: Sequence[Head] = (),
) -> None:
    """All heads, each with its number and names, and below them notes and what the marks of names mean.

    Args:
        text: of a head in the line below the grid; its names are added.
        heads: of the numbers, if these are not of the kind of attention on screen.
    """
    names, heads = known_names(view), heads or view.trace.heads(view.kind)
    head_grid(
        [[with_names(text(head), names, head) for head in of_layer] for of_layer in by_layer(heads)],
        name=name,
        picked=view.selection.place,
        on_pick=pick_head,
        theme=view.theme,
        numbers=numbers,
        signed=signed,
        marks=marks_of(names, heads),
        key=key,
    )
    if note := " ".join([*notes, *([] if names is None else [marks_note(names)])]):
        st.caption(literal(note))


def ranked_heads(
    view: View,
    heads: Iterable[tuple[Head, str, float]],
    *,
    name: str,
    key: str,
    text: Callable[[Head], str] = lambda head: head.title,
    marks_selected: bool = True,
    **named: Any,
) -> None:
    """Heads, each with its number as text and the length of its bar; a click selects.

    Args:
        text: a head's name in the list.
        marks_selected: whether the selected head's row is marked.
        named: as for `ranked_list`.
    """
    rows = list(heads)
    ranked_list(
        [
            Row(
                text=text(head),
                amount=amount,
                length=length,
                picked=marks_selected and head == view.selection.place,
            )
            for head, amount, length in rows
        ],
        name=name,
        on_pick=lambda row: pick_head(*rows[row][0]),
        theme=view.theme,
        key=key,
        **named,
    )


def heads_and_largest(
    view: View,
    numbers: Float[np.ndarray, "layer head"],
    text: Callable[[Head], str],
    largest: Sequence[Head],
    amount: Callable[[Head], str],
    *,
    names: tuple[str, str],
    key: str,
    short: bool = False,
    **named: Any,
) -> None:
    """All heads, each with its number from 0 up, and beside them those with the largest.

    Args:
        text: of a head in the line below the grid.
        largest: the heads of the ranking.
        amount: of a head in the ranking.
        names: of the grid and of the ranking.
        short: whether heads of the ranking have their short names.
        named: as for `named_heads`.
    """
    grid, ranking = st.columns((3, 1))
    with grid:
        named_heads(view, numbers, text, name=names[0], key=key, **named)
    most = max(float(np.nanmax(numbers, initial=0.0)), 1e-12)
    with ranking:
        ranked_heads(
            view,
            [(head, amount(head), float(numbers[head]) / most) for head in largest],
            name=names[1],
            key=f"{key}_ranking",
            text=lambda head: head.short if short else head.title,
        )
