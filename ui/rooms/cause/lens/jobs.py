"""What each layer would answer and what each part adds to the answer, in worker processes."""

from collections.abc import Sequence

from attnviz.effects import lens as logit_lens
from attnviz.effects.logit_attribution import DirectEffects, DirectParts, attribute_state, attribute_token
from attnviz.effects.outcome import TokenAnswer, outcome_from, own_answer
from attnviz.effects.prompts import PromptPair, outcome_of_pair, prepared
from attnviz.errors import (
    SelectionError,
    UnsupportedArchitectureError,
)
from attnviz.model.model import Model
from attnviz.model.trace import Trace
from attnviz.records import Progress
from ui.runtime import with_model


def lens(name: str, trace: Trace) -> logit_lens.Lens | logit_lens.LayerSimilarities:
    """The model's answer after each layer; without a language head, the similarity of each layer's vectors to the last."""
    model = with_model.own(name)
    read_out = logit_lens.layer_similarities if model.head is None else logit_lens.lens
    return read_out(model, trace)


def follow(name: str, trace: Trace, position: int, tokens: Sequence[str]) -> logit_lens.FollowedTokens:
    """How likely some tokens are after each layer, as `attnviz.effects.lens.follow_tokens`."""
    return logit_lens.follow_tokens(with_model.own(name), trace, position, tokens)


def direct_effects(
    name: str, trace: Trace, position: int, outcome: str
) -> tuple[TokenAnswer | None, DirectEffects]:
    """What each part of the model adds to the outcome if that is an answer, and otherwise to the model's own answer at a token.

    With None as the answer, what each part adds to the length of the last hidden state: if there is no language head, if it
    is not linear (BERT's), or if the vocabulary has no entry for the model's own answer.
    """
    model = with_model.own(name)
    if model.head is not None:
        asked = outcome_from(outcome) if outcome else None
        answer = asked if isinstance(asked, TokenAnswer) else own_answer(model, trace, position)
        assert answer is not None  # there is a language head and a position
        position = answer.place(len(trace.last_tokens))
        try:
            return answer, attribute_token(model, trace, position, answer.token, against=answer.against)
        except (SelectionError, UnsupportedArchitectureError) as error:
            if answer is asked and isinstance(error, SelectionError):
                raise
            # attributing the state raises the reason if that is impossible, too
    return None, attribute_state(model, trace, position)


def attribute_pair(model: Model, pair: PromptPair, *, progress: Progress) -> DirectParts:
    """What each part adds directly to the outcome of the clean prompt."""
    clean, _, _ = prepared(model, pair)
    answer = outcome_of_pair(model, clean, pair)
    progress(0.5)
    return attribute_token(model, clean, answer.position, answer.token, against=answer.against)
