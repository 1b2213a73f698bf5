"""Does this row matter? It is shuffled among its keys where the visitor asks, and the change of the outcome is told."""

from dataclasses import dataclass

import streamlit as st

from attnviz.effects.row_shuffle import shuffled_row
from ui.rooms.cause.own_run import OwnRun
from ui.runtime.jobs import TELLS_PROGRESS, Job
from ui.shell.view import View
from ui.shell.waiting import is_asked, is_there
from ui.words.literal import literal
from ui.words.shuffled_rows import row_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Shuffle(OwnRun):
    """The row of the selected query in the selected head, shuffled."""

    @property
    def keeps_special(self) -> bool:
        """Whether special tokens keep their weights: where the visitor has hidden them."""
        return self.view.selection.special == "hidden"

    @property
    def row(self) -> tuple[object, ...]:
        """Names the row."""
        return self.view.kind, *self.view.selection.place, self.view.query, self.keeps_special

    def row_job(self) -> Job:
        """The job that shuffles the row."""
        place, query = self.view.selection.place, self.view.query
        named = {"kind": self.view.kind, "keeps_special": self.keeps_special, **TELLS_PROGRESS}
        return self.job("shuffled_row", self.row, lambda: [self.call(shuffled_row, *place, query, **named)])


def row_matters(view: View) -> None:
    """The button, and once asked what shuffling the row changes; neither where the text cannot be run again with its own row changed."""
    if view.selection.bundle or (view.kind == "encoder" and view.trace.target_tokens is not None):
        return
    shuffle = Shuffle(view=view)
    if not is_asked(
        shuffle.request("Does this row matter?", "shuffled_row", *shuffle.row), key="row_matters"
    ):
        return
    work = shuffle.row_job()
    if is_there(work, None, "Shuffling this row", key="row_matters"):
        st.caption(literal(row_words(work.results[0], keeps_special=shuffle.keeps_special)))
