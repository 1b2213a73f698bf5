"""What the first screen shows: one head on a text, its selected query and key, and their finding."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from attnviz.figures.numbers import number_text, share_text
from attnviz.records import AttentionPattern
from ui.rooms.explore.mixing import identity_note
from ui.rooms.explore.pair import chips
from ui.runtime import cache
from ui.shell.view import RENORMALISED, View, hidden_note
from ui.words.findings import (
    MEASURE_NOTES,
    WITHOUT_NORMS,
    clipped_words,
    finding,
    name,
    special_note,
)
from ui.words.headline import headline_words

TOKENS_NOTE = "The tokens above show attention weights."
"""Said where cells hold something else."""


@dataclass(frozen=True, kw_only=True)  # without slots, for what is computed once
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

    @classmethod
    def of(cls, view: View) -> "Screen":
        """The screen of a view."""
        pattern = view.pattern()
        selection = view.selection
        return cls(
            view=view,
            weights=cache.pattern(selection.source, *selection.place, view.kind, "weights").weights,
            pattern=pattern,
            query=view.query,
            key=view.key,
        )

    @cached_property
    def finding(self) -> str:
        """The finding of the selected pair."""
        return finding(self.pattern, self.query, self.key)

    @cached_property
    def headline(self) -> str:
        """The main finding about the selected query."""
        return headline_words(self.pattern, self.query, self.key)

    @cached_property
    def special_note(self) -> str:
        """What a large weight of a special token does not mean, with a trailing space; empty if there is no such weight."""
        view, pattern = self.view, self.pattern
        row = pattern.queries.index(self.query)
        if pattern.measure != "weights" or row is None or "norms" not in view.trace.measures(view.kind):
            return ""
        norms = cache.pattern(view.selection.source, *view.selection.place, view.kind, "norms")
        return special_note(pattern, norms.arranged(pattern.queries, pattern.keys), self.query, self.key)

    def notes(self, *, has_matrix: bool = True) -> str:
        """What is left out of the matrix, and what its cells, their colours and a large one among them mean, as plain text.

        Args:
            has_matrix: whether the matrix is drawn, whose colours and labels are then explained.
        """
        view, pattern = self.view, self.pattern
        notes = [
            self.special_note.rstrip(),
            clipped_words(pattern, view.colour_end(pattern)) if has_matrix else "",
            MEASURE_NOTES[pattern.measure],
            identity_note(view),
            "" if pattern.measure == "weights" else TOKENS_NOTE,
            "" if "norms" in view.trace.measures(view.kind) else WITHOUT_NORMS,
            hidden_note(view),
            hidden_words(pattern) if has_matrix else "",
            f"{RENORMALISED} The lines of the map stay the model's weights." * pattern.is_renormalised,
        ]
        return " ".join(filter(None, notes))

    @property
    def score(self) -> str:
        """The score of the selected pair, in a sentence; empty where the query may not see the key, or no head is shown."""
        view = self.view
        if view.is_of_layer:
            return ""
        pattern = cache.pattern(view.selection.source, *view.selection.place, view.kind, "weights")
        if pattern.scores is None or not pattern.allowed[self.query, self.key]:
            return ""
        number = number_text(float(pattern.scores[self.query, self.key]))
        return f"Before the softmax, {name(pattern.queries, self.query)} scores {name(pattern.keys, self.key)} {number}."


def hidden_words(pattern: AttentionPattern) -> str:
    """Explains the percentages after the queries; empty if there are none."""
    if not pattern.hidden_weight.any() or pattern.measure == "norms":
        return ""
    share = share_text(float(pattern.hidden_weight.mean()))
    return f"The percentage after each query is its hidden attention, {share} on average."


def tokens(screen: Screen) -> None:
    """The tokens as chips."""
    chips(screen.view, screen.weights, screen.key)
