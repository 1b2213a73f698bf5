"""The answer after each layer: as a grid of layers and tokens, as a list for the selected token, in words, and of chosen tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st
from plotly.graph_objects import Figure

from attnviz.effects import lens
from attnviz.effects.lens import FollowedTokens, LayerSimilarities, Lens
from attnviz.effects.outcome import Outcome, TokenAnswer
from attnviz.figures.labels import isolated
from attnviz.figures.layer_grid import runs_across
from attnviz.figures.lens import draw_followed, draw_layer_similarities, draw_lens
from attnviz.figures.numbers import number_text, share_text
from attnviz.records import Axis, Tokens
from ui.choice import state
from ui.components.ranked_list import Row, ranked_list
from ui.rooms.cause import outcome
from ui.rooms.cause.own_run import OwnRun, check_can_run
from ui.runtime import cache
from ui.runtime.jobs import Job
from ui.shell.chart import chart, picks
from ui.shell.language_model import offer_language_model
from ui.shell.view import View
from ui.shell.waiting import is_there
from ui.words.findings import name
from ui.words.literal import literal, quoted

HALF = 0.5
"""Cosine from which a vector counts as similar to the last one: an angle of 60 degrees."""
MOST_LISTED = 12
"""Most layers listed beside the grid; a longer list scrolls by itself."""


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
        return has_head(self.view)

    @property
    def tokens(self) -> Tokens:
        """The tokens of these hidden states; in an encoder-decoder model, the decoder's."""
        return self.view.trace.last_tokens

    @property
    def n_tokens(self) -> int:
        """Cost of one run, in tokens of the bundled model."""
        return self.counted(len(self.tokens))

    @property
    def answers(self) -> Lens | LayerSimilarities:
        """The answers, or without a language head the similarities with the last layer, once `lens_job` has finished."""
        answers: Lens | LayerSimilarities = self.lens_job().results[0]
        return answers

    def lens_job(self) -> Job:
        """The job that applies the language head to every layer's states."""
        read_out = lens.lens if self.has_head else lens.layer_similarities
        return self.job("lens", (), lambda: [self.call(read_out)])

    def followed_job(self, answer: TokenAnswer) -> Job:
        """The job that follows the tokens of an answer through the layers."""
        tokens = tuple(token for token in (answer.token, answer.against) if token is not None)
        at = answer.place(len(self.tokens))
        return self.job("followed", (at, tokens), lambda: [self.call(lens.follow_tokens, at, tokens)])


def has_head(view: View) -> bool:
    """Whether the model has a language head; that of an opened bundle, which is refused, may not be here."""
    return bool(view.selection.bundle) or cache.model(view.selection.source.model).language_head is not None


def controls(view: View) -> None:
    """The controls for what is measured, of a model that answers."""
    check_can_run(view, "The hidden states after each layer were asked for")
    if has_head(view):
        outcome.controls(view, outcome.outcome_of(view))


def screen_of(view: View) -> Screen | None:
    """The answers after each layer; None until they are known."""
    screen = Screen(view=view, outcome=outcome.outcome_of(view))
    there = is_there(screen.lens_job(), screen.n_tokens, "Applying the lens to each layer", key="lens_act")
    return screen if there else None


def without_head(screen: Screen) -> None:
    """What is shown instead of answers, and a model that answers in one click."""
    if not screen.has_head:
        offer_language_model(
            screen.view.selection,
            "has no language head, so it predicts no tokens: each cell compares a layer's vector with the last layer's.",
            key="use_language_model",
        )


def finding(screen: Screen) -> str:
    """From which layer on the selected token has its final answer, or its final direction, as Markdown."""
    at, answers = screen.view.last_query, screen.answers
    token = literal(name(Axis.of(screen.tokens), at))
    if isinstance(answers, LayerSimilarities):
        similar = answers.similarities[:, at]
        sentence = f"The vectors of {token} after layer 0 and after the last have a cosine of {number_text(float(similar[0]))}"
        first, last = int(np.argmax(similar >= HALF)), len(similar) - 1
        if not first:  # it is similar at once, or never
            return sentence
        if first == last:
            return f"{sentence}; before the last layer none reaches {HALF}"
        return f"{sentence}; the first layer to reach {HALF} is {first}"
    where = "After" if "decoder" in screen.view.trace.kinds else "At"  # a decoder predicts the next token
    probability = share_text(float(answers.answer_probabilities[-1, at]))
    sentence = f"{where} {token} the model predicts {quoted(answers.answers[at])} ({probability})"
    since, last = int(answers.settled[at]), len(answers.answer_ranks) - 1
    if since == last:
        return f"{sentence}, which comes first only after the last layer, {last}"
    return f"{sentence}, which comes first from layer {since} on"


def grid(screen: Screen) -> Figure:
    """Each layer at each token."""
    answers, across = screen.answers, runs_across(screen.view.trace.n_layers(screen.view.kind))
    picked, theme = screen.view.last_query, screen.view.theme
    if isinstance(answers, Lens):
        drawn: Figure = draw_lens(answers, picked=picked, theme=theme)
        caption = "Most likely token after each layer, at each token"
    else:
        drawn = draw_layer_similarities(answers, picked=picked, theme=theme)
        caption = "Similarity of each layer's vector with the last, at each token"
    with st.container(key="lens_grid_room" + "_across" * across):
        chart(
            drawn,
            key="lens_grid",
            alt=caption,
            on_pick=picks("layer", "query"),
            name=f"{caption}; select one",
        )
    st.caption(note(answers))
    return drawn


def of_token(screen: Screen) -> None:
    """The selected token, layer by layer."""
    at, answers = screen.view.last_query, screen.answers
    labels: Sequence[str] = ()
    if isinstance(answers, Lens):
        numbers = answers.probabilities[:, at, 0]
        labels = [f": {isolated(of_layer[at][0])}" for of_layer in answers.labels]
    else:
        numbers = answers.similarities[:, at]
    st.markdown(f"**{literal(name(Axis.of(screen.tokens), at))}, layer by layer**")
    ranked_list(
        [
            Row(
                text=f"Layer {layer}{labels[layer] if labels else ''}",
                amount=number_text(float(number)),
                length=max(float(number), 0.0),
                picked=layer == screen.view.selection.layer,
            )
            for layer, number in enumerate(numbers)
        ],
        name="Layers; select one",
        on_pick=lambda row: state.change(layer=row),
        theme=screen.view.theme,
        key="lens_layers",
        is_ranked=False,
        scrolls=len(numbers) > MOST_LISTED,
    )


def note(answers: Lens | LayerSimilarities) -> str:
    """How the numbers are computed, what they are relative to, and what they do not mean; only answers are the logit lens."""
    if isinstance(answers, Lens):
        return (
            "The vector after each layer, sent through the model's last norm where it has one, and through its language head "
            "(the logit lens, nostalgebraist 2020). The head was trained to read the last layer alone: what an early layer "
            "answers tells what its vector has in common with the last one, not what the layer “thinks”."
            + " Cells leave out the space before a word, and the end of a long one; hover over a cell or tap it for both."
            * runs_across(len(answers.labels))
        )
    return (
        "This model has no language head, so there is no answer to look at, and this is not the logit lens: cells hold the cosine of "
        "the vector after each layer, sent through the model's last norm where it has one, and the last hidden state. A low cosine "
        "does not mean that the layer does nothing; its work may lie in another direction."
    )


def followed(screen: Screen) -> Figure | tuple[str, ...]:
    """Difference, probability and rank of the chosen tokens after each layer, and which is ahead from when on."""
    if not screen.has_head or screen.answer is None:
        return ()
    work = screen.followed_job(screen.answer)
    if not is_there(work, screen.n_tokens, "Following the chosen tokens", key="followed_act"):
        return ()
    tokens: FollowedTokens = work.results[0]
    st.markdown(f"**{followed_finding(tokens)}**")
    drawn: Figure = draw_followed(tokens, picked=screen.view.selection.layer, theme=screen.view.theme)
    chart(
        drawn,
        key="lens_followed",
        alt="How likely the chosen tokens are after each layer, their ranks, and the difference of their logits where there are two",
        on_pick=picks("layer"),
        name="Layers; select one",
    )
    st.caption(
        "Each layer’s vector through the model’s last norm and language head, as above, for the tokens of the outcome. Rank 1 is the most "
        "likely token of the whole vocabulary."
    )
    return drawn


def followed_finding(tokens: FollowedTokens) -> str:
    """From which layer on the first token is ahead of the second, and of all, as Markdown."""
    names, ranks, sentences = [quoted(label) for label in tokens.labels], tokens.ranks[:, 0], []
    if tokens.differences is not None:
        sentences.append(f"{names[0]} {_since(tokens.differences > 0, f'ahead of {names[1]}')}")
    who = "it" if sentences else names[0]
    is_first = ranks[-1] == 1
    ends = _since(ranks == 1, "the most likely token") if is_first else f"ends at rank {ranks[-1]:,}"
    return "; ".join([*sentences, f"{who} {ends}"])


def _since(holds: np.ndarray | Sequence[bool], what: str) -> str:
    """From which layer on something holds in every layer."""
    fails, last = np.flatnonzero(~np.asarray(holds)), len(holds) - 1
    since = int(fails[-1]) + 1 if fails.size else 0
    if since > last:
        return f"is not {what} after the last layer"
    if since == 0:
        return f"is {what} after every layer"
    return (
        f"is {what} only after the last layer, {last}"
        if since == last
        else f"is {what} from layer {since} on"
    )
