"""What a page draws: the selection as actually shown, its trace, and the resulting rows and columns."""

from dataclasses import dataclass, replace
from functools import cached_property

from attnviz.figures.heatmap import measure_of
from attnviz.figures.theme import ThemeName
from attnviz.heads.facts import colour_end
from attnviz.model.trace import Trace
from attnviz.records import MIXINGS, OF_LAYER, AttentionPattern, Axis, Kind, Measure, Mixing, Tokens
from attnviz.viewer import tiles
from ui.choice.selection import Selection
from ui.part import Part
from ui.runtime import cache
from ui.shell.navigation import Places
from ui.words.findings import strongest_key


@dataclass(frozen=True, kw_only=True)  # without slots, for what is computed once
class View:
    """What a page draws: the selection as actually shown, and its trace."""

    part: Part
    """What it is drawn in."""
    selection: Selection
    query: int
    """Position of the selected query."""
    trace: Trace
    kind: Kind
    theme: ThemeName
    places: Places
    """Where the page's heading is filled in later."""

    @property
    def view(self) -> "View":
        """Itself, for a part whose screen is no more than its view."""
        return self

    @cached_property
    def query_tokens(self) -> Tokens:
        """The tokens of the text that the queries belong to."""
        return self.trace.query_tokens(self.kind)

    @cached_property
    def key_tokens(self) -> Tokens:
        """The tokens of the text that the keys belong to."""
        return self.trace.key_tokens(self.kind)

    @property
    def last_query(self) -> int:
        """Position of the selected token in `Trace.last_tokens`; the last position if the token is in the encoder's text."""
        return min(self.query, len(self.trace.last_tokens) - 1)

    @cached_property
    def key(self) -> int:
        """Position of the selected key: the strongest of the query's where none is selected."""
        if (chosen := self.selection.key) is not None:
            return chosen
        if self.trace.is_long(self.kind):
            return tiles.strongest_key(self.trace, self.kind, *self.selection.place, self.query)
        return strongest_key(self.pattern(), self.query)

    @cached_property
    def measure(self) -> Measure | Mixing:
        """What cells hold; weights in place of scores, which only the matrix of one head can show."""
        return measure_of(self.selection.show)

    @property
    def is_of_layer(self) -> bool:
        """Whether cells hold what has no number for a head: rollout, ALTI or value zeroing."""
        return self.measure in OF_LAYER

    @property
    def is_there(self) -> bool:
        """Whether the selected matrix is known, or comes at once; what takes the model may be a job that has not finished."""
        measure, selection = self.measure, self.selection
        return measure not in MIXINGS or cache.is_mixed(selection.source, selection.layer, self.kind, measure)

    @property
    def measure_of_heads(self) -> Measure:
        """What heads are compared by: weights, in place of what is of all heads of a layer together."""
        return "norms" if self.measure == "norms" else "weights"

    @cached_property
    def measures(self) -> tuple[Measure | Mixing, ...]:
        """What cells can hold of this text, besides scores."""
        return *self.trace.measures(self.kind), *cache.mixings(self.selection.source)

    @property
    def queries(self) -> Axis:
        """The rows as selected: tokens or words, perhaps without special ones or of one sentence."""
        return self._axes[0]

    @property
    def keys(self) -> Axis:
        """The columns as selected."""
        return self._axes[1]

    @cached_property
    def _axes(self) -> tuple[Axis, Axis]:
        return self.axes_of(self.trace)

    @cached_property
    def hides_special(self) -> bool:
        """Whether special tokens are left out; not if nothing would remain."""
        tokens = self.query_tokens, self.key_tokens
        return self.selection.special != "shown" and not any(token.is_special.all() for token in tokens)

    @cached_property
    def hides_first(self) -> bool:
        """Whether the first token is left out; not if nothing would remain."""
        return self.selection.without_first and all(
            len(entry.without_first()) for entry in self._entries(self.trace)
        )

    def axes_of(self, trace: Trace) -> tuple[Axis, Axis]:
        """Rows and columns of a trace, selected as on this screen."""
        queries, keys = self._entries(trace)
        if self.hides_first:
            queries, keys = queries.without_first(), keys.without_first()
        if self.selection.sentences != "all" and trace.tokens.text_pair is not None:
            of_query, of_key = ("AB".index(side) for side in self.selection.sentences.split(" → "))
            queries, keys = queries.of_segment(of_query), keys.of_segment(of_key)
        return queries, keys

    def _entries(self, trace: Trace) -> tuple[Axis, Axis]:
        """Tokens or words of a trace, perhaps without special ones."""
        queries, keys = trace.axes(self.kind, self.selection.unit)
        return (queries.without_special(), keys.without_special()) if self.hides_special else (queries, keys)

    @property
    def is_renormalised(self) -> bool:
        """Whether rows sum to 1 again after tokens are hidden."""
        return self.selection.special == "renormalised" and (self.hides_special or self.hides_first)

    def pattern(
        self, layer: int | None = None, head: int | None = None, *, together: bool = False
    ) -> AttentionPattern:
        """The matrix of the selected head, or of another, with rows and columns as selected.

        Args:
            together: all heads of the layer as one, instead of one head.
        """
        layer = self.selection.layer if layer is None else layer
        head = self.selection.head if head is None else head
        of_all = together or self.is_of_layer
        whole = cache.pattern(self.selection.source, layer, None if of_all else head, self.kind, self.measure)
        # The matrix may come from an earlier trace of the same text, made for another visitor or cached longer.
        queries, keys = (
            axis if axis.tokens is its.tokens else replace(axis, tokens=its.tokens)
            for axis, its in ((self.queries, whole.queries), (self.keys, whole.keys))
        )
        return whole.arranged(queries, keys, renormalise=self.is_renormalised)

    def colour_end(self, pattern: AttentionPattern) -> float | None:
        """Where the colours of a matrix end; None for its largest cell."""
        selection = self.selection
        is_clipped = selection.clip and selection.colour == "linear" and selection.show != "scores"
        return colour_end(pattern) if is_clipped else None


SPECIAL_HIDDEN = "Special tokens are hidden."
FIRST_HIDDEN = "The first token is hidden."
RENORMALISED = "Each row is divided by what remains, so that it sums to 1."
PIECES_MERGED = "Word pieces are merged: columns are summed, rows averaged."


def hidden_note(view: View) -> str:
    """What the selected rows and columns leave out or merge, in a sentence or two; empty for nothing."""
    selection, notes = view.selection, []
    if selection.unit == "words":
        notes.append(PIECES_MERGED)
    if view.hides_special:
        notes.append(SPECIAL_HIDDEN)
    elif selection.special != "shown":
        notes.append("Special tokens are shown: without them nothing would be left.")
    if view.hides_first:
        notes.append(FIRST_HIDDEN)
    elif selection.without_first:
        notes.append("The first token is shown: without it nothing would be left.")
    if selection.sentences != "all":
        of_query, of_key = ({"A": "first", "B": "second"}[side] for side in selection.sentences.split(" → "))
        notes.append(f"Only queries of the {of_query} sentence and keys of the {of_key} are shown.")
    return " ".join(notes)
