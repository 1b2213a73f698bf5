"""Beside the stage: all heads as small pictures, with their names."""

from collections.abc import Mapping

import numpy as np
import streamlit as st
from jaxtyping import Bool

from attnviz.heads import labels
from attnviz.records import Axis, Head, by_layer
from ui.choice import state
from ui.components.head_rail import head_rail
from ui.runtime import head_cache
from ui.shell.head_names import known_names
from ui.stage.screen import Screen, is_staged
from ui.words.head_names import attends_words, called_words, head_words
from ui.words.literal import literal


def heads(screen: Screen) -> None:
    """All heads; hovering over a head previews it, a click selects it."""
    view = screen.view
    names, on_text = known_names(view), _labels(screen)

    def text(head: Head) -> str:
        attends = attends_words(on_text, head)
        sentence = f"{head.title}: attends {attends} on this text" if attends else head.title
        called = "" if names is None else called_words(names, head)
        return sentence if names is None or not called else f"{sentence}; {names.briefly}: {called}"

    head_rail(
        [[text(Head(*head)) for head in of_layer] for of_layer in by_layer(view.trace.heads(view.kind))],
        picked=None if is_staged(screen.view) else view.selection.place,
        clips=view.selection.clip,
        on_pick=lambda layer, head: state.change(layer=layer, head=head),
        theme=view.theme,
    )


def head_name(screen: Screen) -> None:
    """The selected head's name, and what it was measured on; nothing for rollout, which combines all heads."""
    if screen.pattern.head is None:
        return
    place, of_text = screen.view.selection.place, _labels(screen)
    attends = attends_words(of_text, place)
    if words := head_words(attends, known_names(screen.view), place, knows_text=bool(of_text)):
        st.caption(literal(words), width="content")


def _labels(screen: Screen) -> Mapping[str, Bool[np.ndarray, "layer head"]]:
    """The known patterns that heads match on all tokens of the text; none if the stage does not show the heads."""
    if not is_staged(screen.view):
        return {}
    view = screen.view
    sides = view.trace.query_tokens(view.kind), view.trace.key_tokens(view.kind)
    rows, columns = (head_cache.spans(Axis.of(side)) for side in sides)
    cells = head_cache.Cells(
        source=view.selection.source, kind=view.kind, measure="weights", rows=rows, columns=columns
    )
    return labels(head_cache.statistics(cells))
