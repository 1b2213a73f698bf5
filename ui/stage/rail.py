"""Beside the stage: all heads as small pictures, with their names."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import streamlit as st
from jaxtyping import Bool

from attnviz.records import Head
from ui.choice import state
from ui.components.head_rail import head_rail
from ui.runtime import head_cache
from ui.runtime.head_cache import MOST_STAGED
from ui.shell.head_names import known_names, of_selected
from ui.shell.view import View
from ui.stage.screen import Screen
from ui.words.head_names import HeadNames, attending, attends_words, heads_said
from ui.words.literal import literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What is known of all heads, by name."""

    on_text: Mapping[str, Bool[np.ndarray, "layer head"]]
    """The known patterns that heads match on all tokens of the text; none if the stage does not show the heads."""
    words: Mapping[str, str]
    """How heads attend, by the label of a pattern."""
    known: HeadNames | None
    """Those of the model, on any text; None until they are known."""

    @classmethod
    def of(cls, view: View) -> "Names":
        """The names of a view's heads."""
        on_text = head_cache.staged(view.selection.source, view.kind).labels if view.is_staged else {}
        return cls(on_text=on_text, words=attending(view.key_tokens), known=known_names(view))

    def attends(self, head: Head) -> str:
        """How a head attends on the text; empty if it matches no pattern."""
        return attends_words(self.on_text, self.words, head)


def heads(screen: Screen, names: Names) -> None:
    """All heads; hovering over a head previews it, a click selects it."""
    view = screen.view
    head_rail(
        heads_said(view.trace.heads(view.kind), names.on_text, names.words, names.known),
        picked=None if view.is_staged else view.selection.place,
        clips=view.selection.clip,
        on_pick=lambda layer, head: state.change(layer=layer, head=head),
        theme=view.theme,
    )
    if not view.is_staged:
        st.caption(f"Pictures for up to {MOST_STAGED} tokens; “All heads” draws them for any text.")


def head_name(screen: Screen, names: Names) -> None:
    """The selected head's name, and what it was measured on; nothing for rollout, which combines all heads."""
    if screen.pattern.head is None:
        return
    place = screen.view.selection.place
    words = of_selected(screen.view, names.known, names.attends(place), knows_text=bool(names.on_text))
    if words:
        st.caption(literal(words), width="content")
