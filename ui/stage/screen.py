"""What the first screen shows: one head on a text, its selected query and key, and their finding."""

from dataclasses import dataclass

import numpy as np

from attnviz.records import AttentionPattern
from ui.choice import state
from ui.components.token_strip import token_strip
from ui.runtime import cache
from ui.shell.gap import masked_position, what_stands_here
from ui.shell.navigation import link_to
from ui.shell.view import View
from ui.words.findings import (
    finding,
    special_note,
    strongest_key,
)
from ui.words.headline import headline_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """One head on a text."""

    view: View
    weights: np.ndarray
    """Of every query on every key, before rows and columns are selected."""
    pattern: AttentionPattern
    """The matrix as drawn; its rows may be renormalised after special tokens are hidden."""
    query: int
    """Position of the selected query."""
    key: int
    """Position of the selected key."""
    finding: str
    """The finding of the selected pair."""
    headline: str
    """The main finding about the selected query."""
    special_note: str
    """What a large weight of a special token does not mean, with a trailing space; empty if there is no such weight."""

    @classmethod
    def of(cls, view: View) -> "Screen":
        """The screen of a view."""
        pattern = view.pattern()
        selection = view.selection
        key = strongest_key(pattern, view.query) if selection.key is None else selection.key
        return cls(
            view=view,
            weights=cache.pattern(selection.source, *selection.place, view.kind, "weights").weights,
            pattern=pattern,
            query=view.query,
            key=key,
            finding=finding(pattern, view.query, key),
            headline=headline_words(pattern, view.query, key),
            special_note=_special_note(view, pattern, key),
        )


def _special_note(view: View, pattern: AttentionPattern, key: int) -> str:
    row = pattern.queries.index(view.query)
    if pattern.measure != "weights" or row is None or "norms" not in view.trace.measures(view.kind):
        return ""
    place = view.selection.place
    norms = cache.pattern(view.selection.source, *place, view.kind, "norms").arranged(
        pattern.queries, pattern.keys
    )
    return special_note(pattern, norms, view.query, key)


def tokens(screen: Screen) -> None:
    """The tokens as chips, with `masked_link`."""
    view, query, key = screen.view, screen.query, screen.key
    selection, kind, theme = view.selection, view.kind, view.theme
    token_strip(
        view.query_tokens,
        query=query,
        key=key,
        weights=screen.weights[query] if kind != "cross" else None,
        mask_label=cache.mask_label(selection.source) if kind == "encoder" else None,
        on_pick=lambda position: state.change(query=position, key=None),
        on_mask=state.mask,
        theme=theme,
    )
    masked_link(screen)


def masked_link(screen: Screen) -> None:
    """If a token is masked, what would stand there, and the link that compares with the unmasked text."""
    selection = screen.view.selection
    if selection.masked and not selection.bundle:
        what_stands_here(screen.view, masked_position(selection, screen.query), key="stands_here")
        link_to(
            "Side by side",
            label="Compare with the unmasked text",
            selection=selection.but(masked=(), other_masked=selection.masked),
            help="Shows what masking changes: A is the unmasked text, B the masked one.",
        )
