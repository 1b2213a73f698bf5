"""What the page Lens shows of a text: its jobs and its tokens."""

from dataclasses import dataclass

from attnviz.effects.outcome import Outcome, TokenAnswer
from attnviz.records import Tokens
from ui.rooms.cause.lens import jobs
from ui.rooms.cause.own_run import OwnRun, check_can_run
from ui.runtime import cache
from ui.runtime.jobs import Job
from ui.shell.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen(OwnRun):
    """A text whose hidden states are shown."""

    outcome: Outcome

    @property
    def answer(self) -> TokenAnswer | None:
        """The outcome of the experiments if that is an answer; None otherwise."""
        return self.outcome if isinstance(self.outcome, TokenAnswer) else None

    @property
    def has_head(self) -> bool:
        """Whether the model has a language head."""
        return cache.model(self.view.selection.source.model).head is not None

    @property
    def tokens(self) -> Tokens:
        """The tokens of these hidden states; in an encoder-decoder model, the decoder's."""
        return self.view.trace.last_tokens

    @property
    def predicts_next(self) -> bool:
        """Whether the head predicts the next token, as a decoder's does, and not the one at its position."""
        return "decoder" in self.view.trace.kinds

    def lens(self) -> Job:
        """The job that applies the language head to every layer's states."""
        return self.job("lens", (), lambda: [(jobs.lens, self.given, {})])

    def followed(self, answer: TokenAnswer) -> Job:
        """The job that follows the tokens of an answer through the layers."""
        tokens = tuple(token for token in (answer.token, answer.against) if token is not None)
        at = answer.place(len(self.tokens))
        return self.job("followed", (at, tokens), lambda: [(jobs.follow, (*self.given, at, tokens), {})])

    def direct(self) -> Job:
        """The job that attributes the answer: the outcome, or the model's own answer at the selected token."""
        at, chosen = self.view.last_query, "" if self.answer is None else str(self.answer)
        key = (chosen or at,)
        return self.job("direct", key, lambda: [(jobs.direct_effects, (*self.given, at, chosen), {})])


def screen_of(view: View, chosen: Outcome) -> Screen:
    """The text on screen.

    Raises:
        SelectionError: a bundle is open, which holds no hidden states.
    """
    check_can_run(view, "The hidden states after each layer were asked for")
    return Screen(view=view, outcome=chosen)
