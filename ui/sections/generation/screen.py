"""What a decoder writes, and the step that is shown."""

from dataclasses import dataclass

import streamlit as st

from attnviz.model.continuation import Continuation
from attnviz.model.trace import Trace
from attnviz.records import AttentionPattern
from ui.choice import state, widgets
from ui.page.view import View
from ui.sections.own_run import OwnRun
from ui.words.literal import literal
from ui.work import cache, experiments
from ui.work.jobs import TELLS_PROGRESS, Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen(OwnRun):
    """A continuation, with the attention of every step."""

    found: Continuation
    trace: Trace
    """Of all tokens; the row of a token is what was read when the next one was written."""

    @property
    def step(self) -> int:
        """The step that is shown, from 0."""
        return min(self.view.selection.generation.step, len(self.found.written)) - 1

    @property
    def query(self) -> int:
        """Position of the token whose query wrote the step's token."""
        return self.found.n_read + self.step - 1

    @property
    def pattern(self) -> AttentionPattern:
        """The attention of the selected head, all tokens."""
        return self.trace.pattern(*self.view.selection.place)


def controls() -> None:
    """How much is written, and how."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="write_controls"):
        st.number_input(**widgets.field("write_tokens"), width=150)
        st.number_input(**widgets.field("write_temperature"), width=150)
        st.number_input(**widgets.field("seed"), width=150)


def can_write(view: View) -> bool:
    """Whether the model is a decoder with a language head, and no bundle is shown."""
    selection = view.selection
    if selection.bundle or view.trace.kinds != ("decoder",):
        return False
    return cache.model(selection.source.model).head is not None


def without_writing(view: View) -> None:
    """What the page is for, where the model does not write."""
    st.markdown(
        f"**{literal(view.selection.model)} cannot write.** Only a decoder with a language head can, such as GPT-2: it writes token by "
        "token. With one, this page shows up to 50 tokens after your sentence, what else it could have written, and what each head "
        "read at every step. “Your own model”, below the menu, says how to add one."
    )


def writing(view: View) -> Job:
    """The job in which the model writes."""
    selection = view.selection
    chosen = selection.generation
    named = {
        "n_tokens": chosen.tokens,
        "temperature": chosen.temperature,
        "seed": selection.seed,
        **TELLS_PROGRESS,
    }
    run = OwnRun(view=view)
    key = (chosen.tokens, chosen.temperature, selection.seed if chosen.temperature else 0)
    given = run.model, view.trace.tokens
    return run.job("writing", key, lambda: [(experiments.write, given, named)])


def show(step: int) -> None:
    """Selects a step, from 0."""
    state.change(write_step=step + 1)
