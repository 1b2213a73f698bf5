"""What a decoder generates: the model's own text and its branches, and the step that is shown."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from attnviz.model.continuation import Continuation
from attnviz.records import AttentionPattern
from ui.choice import state, widgets
from ui.choice.fields import Branch
from ui.rooms.cause.own_run import OwnRun, check_can_run
from ui.rooms.generate import jobs
from ui.rooms.generate.choices import GenerationSettings
from ui.runtime import cache
from ui.runtime.jobs import TELLS_PROGRESS, Job
from ui.shell.view import View
from ui.shell.waiting import REFUSALS


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One text: the model's own, or a branch."""

    number: int
    """0 for the model's own text."""
    branch: Branch
    work: Job
    """The job that generates it."""

    @property
    def name(self) -> str:
        """Name on screen."""
        return f"Branch {self.number}" if self.number else "Model's own text"

    @property
    def is_refused(self) -> bool:
        """Whether it cannot be generated, for a reason given in `Continuation`."""
        return isinstance(self.work.error, REFUSALS)

    @property
    def continuation(self) -> Continuation:
        """The continuation, once generated."""
        continuation: Continuation = self.work.results[0]
        return continuation


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen(OwnRun):
    """A text with the attention of every step, and the other texts."""

    text: Text
    """The text on screen."""
    texts: tuple[Text, ...]
    """All texts, including the one on screen."""

    @property
    def continuation(self) -> Continuation:
        """The continuation on screen."""
        return self.text.continuation

    @property
    def step(self) -> int:
        """The step on screen, from 0."""
        return min(self.view.selection.of(GenerationSettings).step, len(self.continuation.written)) - 1

    @property
    def query(self) -> int:
        """Position of the token whose query generated the step's token."""
        return self.continuation.n_read + self.step - 1

    @property
    def pattern(self) -> AttentionPattern:
        """The selected head's attention, all tokens."""
        return self.pattern_of(self.text)

    @property
    def beside(self) -> Text | None:
        """The text to compare with; None for none."""
        number = self.view.selection.of(GenerationSettings).beside
        others = (text for text in self.texts if text.number == number and text is not self.text)
        return next(others, None)

    def pattern_of(self, text: Text) -> AttentionPattern:
        """The selected head's attention in a text, all tokens."""
        return text.continuation.trace.pattern(*self.view.selection.place)


def controls() -> None:
    """The controls for how much is generated, and how."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="write_controls"):
        st.number_input(**widgets.field("write_tokens"), width=150)
        st.number_input(**widgets.field("write_temperature"), width=150)
        st.number_input(**widgets.field("seed"), width=150)


def can_write(view: View) -> bool:
    """Whether the model is a decoder with a language head.

    Raises:
        SelectionError: a bundle is open, which cannot be run again here.
    """
    check_can_run(view, "A continuation was asked for")
    return view.trace.kinds == ("decoder",) and cache.model(view.selection.source.model).head is not None


def texts_of(view: View) -> tuple[Text, ...]:
    """The model's own text and the branches."""
    branches = (Branch(), *view.selection.of(GenerationSettings).branches)
    return tuple(
        Text(number=number, branch=branch, work=_writing(view, branch))
        for number, branch in enumerate(branches)
    )


def shown(view: View, texts: Sequence[Text]) -> Text:
    """The text on screen; the last one if the selected number is too large."""
    return texts[min(view.selection.of(GenerationSettings).branch, len(texts) - 1)]


def _writing(view: View, branch: Branch) -> Job:
    """The job that generates one text, at least up to its last pick."""
    selection = view.selection
    chosen = selection.of(GenerationSettings)
    n_tokens = max([chosen.tokens, *(step for step, _ in branch.picks)])
    named = {
        "n_tokens": n_tokens,
        "temperature": chosen.temperature,
        "seed": selection.seed,
        "picks": {step - 1: token for step, token in branch.picks},
        **TELLS_PROGRESS,
    }
    run = OwnRun(view=view)
    key = (n_tokens, chosen.temperature, selection.seed if chosen.temperature else 0, branch)
    given = run.model, view.trace.tokens
    return run.job("writing", key, lambda: [(jobs.write, given, named)])


def show(step: int) -> None:
    """Selects a step, from 0."""
    state.change(write_step=step + 1)
