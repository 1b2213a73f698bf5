"""What the page Lens shows of a text: the jobs that compute it, and the tokens that it is about."""

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
    """A text whose hidden states are looked through."""

    outcome: Outcome

    @property
    def answer(self) -> TokenAnswer | None:
        """The answer that is the outcome of the experiments; None where that is something else."""
        return self.outcome if isinstance(self.outcome, TokenAnswer) else None

    @property
    def has_head(self) -> bool:
        """Whether the model has a language head, which answers."""
        return cache.model(self.view.selection.source.model).head is not None

    @property
    def tokens(self) -> Tokens:
        """The tokens whose hidden states these are: of an encoder-decoder model those of the decoder."""
        return self.view.trace.last_tokens

    @property
    def predicts_next(self) -> bool:
        """Whether the head predicts the token that follows, as a decoder's does, and not the one in its place."""
        return "decoder" in self.view.trace.kinds

    def lens(self) -> Job:
        """The job that sends every layer's states through the head."""
        return self.job("lens", (), lambda: [(jobs.lens, self.given, {})])

    def followed(self, answer: TokenAnswer) -> Job:
        """The job that follows the tokens of an answer through the layers."""
        tokens = tuple(token for token in (answer.token, answer.against) if token is not None)
        at = answer.place(len(self.tokens))
        return self.job("followed", (at, tokens), lambda: [(jobs.follow, (*self.given, at, tokens), {})])

    def direct(self) -> Job:
        """The job that takes the answer apart: the outcome, or what the model itself answers at the selected token."""
        at, chosen = self.view.last_query, "" if self.answer is None else str(self.answer)
        key = (chosen or at,)
        return self.job("direct", key, lambda: [(jobs.direct_effects, (*self.given, at, chosen), {})])


def screen_of(view: View, chosen: Outcome) -> Screen:
    """The text on screen.

    Raises:
        SelectionError: an opened bundle, which holds no hidden states.
    """
    check_can_run(view, "The hidden states after each layer were asked for")
    return Screen(view=view, outcome=chosen)
