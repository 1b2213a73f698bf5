"""What the page Lens shows of a text: the jobs that compute it, and the tokens that it is about."""

from dataclasses import dataclass

from attnviz.records import Tokens
from ui.page.view import View
from ui.sections.own_run import OwnRun, check_can_run
from ui.work import experiments
from ui.work.jobs import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen(OwnRun):
    """A text whose hidden states are looked through."""

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
        return self.job("lens", (), lambda: [(experiments.lens, self.given, {})])

    def direct(self) -> Job:
        """The job that takes the answer at the selected token apart."""
        at = self.view.last_query
        return self.job("direct", (at,), lambda: [(experiments.direct_effects, (*self.given, at), {})])


def look(view: View) -> Screen:
    """The text on screen.

    Raises:
        SelectionError: an opened bundle, which holds no hidden states.
    """
    check_can_run(view, "The hidden states after each layer were asked for")
    return Screen(view=view)
