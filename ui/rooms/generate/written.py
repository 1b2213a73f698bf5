"""What a decoder writes: the model's own text and its branches, each a job, and the step of one that is shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import streamlit as st

from attnviz.model.continuation import Continuation, generate
from attnviz.records import SPACE, AttentionPattern
from ui.choice import widgets
from ui.choice.fields import Branch, Branches, Number
from ui.choice.selection import choices
from ui.rooms.cause.own_run import OwnRun, check_can_run
from ui.runtime import cache, with_model
from ui.runtime.jobs import TELLS_PROGRESS, Job
from ui.shell.export.recipe import call, named, trace_lines
from ui.shell.language_model import offer_language_model
from ui.shell.view import View
from ui.shell.waiting import REFUSALS, show_jobs
from ui.words.literal import literal

MOST_WRITTEN = 50
"""Most tokens that a page generates."""
MOST_BRANCHES = 6
"""Most branches of a text, besides the model's own continuation."""


@choices
@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationSettings:
    """What a decoder generates after the sentence, and the step that is shown."""

    PREFIX: ClassVar = "write_"

    tokens: Annotated[
        int,
        Number(1, MOST_WRITTEN, title="Tokens", help="Writes at most this many tokens after the sentence."),
    ] = 20
    temperature: Annotated[
        float,
        Number(
            0,
            2,
            step=0.1,
            title="Temperature",
            help="Draws each token with the random seed; a higher temperature makes the probabilities more even, 0 writes the "
            "most likely token.",
        ),
    ] = 0.0
    step: Annotated[
        int, Number(1, MOST_WRITTEN, title="Step", help="Shows what was read when this token was written.")
    ] = 1
    branches: Annotated[
        tuple[Branch, ...],
        Branches(
            most=MOST_BRANCHES, help="Writes further texts, with these tokens in place of the model's own."
        ),
    ] = ()
    branch: Annotated[
        int, Number(0, MOST_BRANCHES, help="Shows this branch; 0 is the text as the model writes it.")
    ] = 0
    beside: Annotated[
        int | None,
        Number(
            0,
            MOST_BRANCHES,
            title="Compare with",
            help="Compares the attention of the selected head with that in another text.",
        ),
    ] = None
    """Number of the branch to compare with; None for none."""


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

    @property
    def ids(self) -> list[int]:
        """Ids of the generated tokens."""
        ids: list[int] = self.continuation.tokens.ids[self.continuation.n_read :].tolist()
        return ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen(OwnRun):
    """A text with the attention of every step, and the other texts."""

    text: Text
    """The text on screen."""
    texts: tuple[Text, ...]
    """All texts, including the one on screen."""

    @property
    def chosen(self) -> GenerationSettings:
        """What is selected on this page."""
        return self.view.selection.of(GenerationSettings)

    @property
    def continuation(self) -> Continuation:
        """The continuation on screen."""
        return self.text.continuation

    @property
    def step(self) -> int:
        """The step on screen, from 0."""
        return min(self.chosen.step, len(self.continuation.written)) - 1

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
        others = (text for text in self.texts if text.number == self.chosen.beside and text is not self.text)
        return next(others, None)

    def pattern_of(self, text: Text) -> AttentionPattern:
        """The selected head's attention in a text, all tokens."""
        return text.continuation.trace.pattern(*self.view.selection.place)


def can_write(view: View) -> bool:
    """Whether the model is a decoder with a language head; that of an opened bundle, which is refused, may not be here."""
    if view.selection.bundle:
        return True
    return (
        view.trace.kinds == ("decoder",)
        and cache.model(view.selection.source.model).language_head is not None
    )


def offer_writer(view: View) -> None:
    """What the page is for, shown if the model does not generate text."""
    offer_language_model(
        view.selection,
        "cannot write: only a decoder with a language head can. With one, this page shows up to 50 tokens after your sentence, "
        "what else it could have written, and what each head read at every step.",
        key="use_language_model",
    )


def controls(view: View) -> None:
    """The controls for how much is generated, and how."""
    check_can_run(view, "A continuation was asked for")
    for field in ("write_tokens", "write_temperature", "seed"):
        st.number_input(**widgets.field(field), width=150)


def screen_of(view: View) -> Screen | None:
    """The selected text, or the last one; None until it is complete, while it is shown as far as generated."""
    chosen = view.selection.of(GenerationSettings)
    branches = (Branch(), *chosen.branches)
    texts = [
        Text(number=at, branch=branch, work=_writing(view, branch)) for at, branch in enumerate(branches)
    ]
    text = texts[min(chosen.branch, len(texts) - 1)]
    if not are_there(view, text, texts):
        return None
    return Screen(view=view, text=text, texts=tuple(each for each in texts if each.work.finished))


def _writing(view: View, branch: Branch) -> Job:
    """The job that generates one text, at least up to its last pick."""
    selection, chosen, run = view.selection, view.selection.of(GenerationSettings), OwnRun(view=view)
    n_tokens = max([chosen.tokens, *(step for step, _ in branch.picks)])
    settings = {
        "n_tokens": n_tokens,
        "temperature": chosen.temperature,
        "seed": selection.seed,
        "picks": {step - 1: token for step, token in branch.picks},
        **TELLS_PROGRESS,
    }
    key = (n_tokens, chosen.temperature, selection.seed if chosen.temperature else 0, branch)
    given = generate, run.model, view.trace.tokens
    return run.job("writing", key, lambda: [(with_model.call, given, settings)])


def are_there(view: View, text: Text, texts: Sequence[Text]) -> bool:
    """Whether the text on screen is complete; incomplete texts are shown as far as generated, token by token.

    Raises:
        AttnvizError: the text on screen cannot be generated.
    """
    for refused in texts:
        if refused.is_refused and refused.work.error is not None:
            if refused is text:
                raise refused.work.error
            st.caption(literal(f"{refused.name}: {refused.work.error}"))
    waiting = [text for text in texts if not (text.work.finished or text.is_refused)]
    if waiting:
        being_written = text if text in waiting else waiting[0]

        def tokens_so_far() -> None:
            told = (token.label for token in being_written.work.told())
            st.markdown(running_text(view.trace.tokens.text, [*told]))

        show_jobs(
            [text.work for text in waiting],
            lambda: "Writing …",
            lambda: "Cancelled: writing.",
            key="write_act",
            result=tokens_so_far,
            is_page_without=True,
        )
    return text.work.finished


def running_text(read: str, labels: Sequence[str]) -> str:
    """The text with its continuation, which is bold, as Markdown."""
    written = "".join(labels).replace(SPACE, " ")
    apart = " " * written[:1].isspace()
    return f"{literal(read)}{apart}**{literal(written.strip())}**" if written.strip() else literal(read)


def generation_lines(screen: Screen) -> str:
    """Python that continues the sentence, and draws the selected head over all of it."""
    view, chosen, picks = screen.view, screen.chosen, screen.continuation.picks
    given: dict[str, object] = {"n_tokens": chosen.tokens}
    if chosen.temperature:
        given |= {"temperature": chosen.temperature, "seed": view.selection.seed}
    if picks:
        given |= {"n_tokens": max(chosen.tokens, *(step + 1 for step in picks)), "picks": dict(picks)}
    return "\n".join(
        [
            "import attnviz",
            "from attnviz.model.continuation import generate",
            *trace_lines(view),
            f"continuation = generate(model, trace.tokens, {named(given)})",
            "print(continuation.written)",
            f"attnviz.figures.draw_heatmap(continuation.trace, {call(*view.selection.place)}).show()",
            "",
        ]
    )
