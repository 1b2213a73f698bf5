"""Step 3: what the model fills in, if it has a language head and there is something to fill in."""

from dataclasses import dataclass
from typing import Literal

import streamlit as st

from attnviz.figures.labels import isolated
from attnviz.figures.numbers import share_text
from attnviz.model.catalogue import BERT, SMOLLM2, locate, offer
from ui.choice.presets import DOOR_MASK
from ui.choice.selection import Selection
from ui.runtime import cache
from ui.shell import downloads
from ui.shell.language_model import offer_language_model
from ui.shell.view import View
from ui.words.findings import name
from ui.words.literal import literal, quoted


def blank(selection: Selection, query: int) -> int:
    """The query's position if it is a mask token or there is none, otherwise the first mask token's."""
    label = cache.mask_label(selection.source)
    masked = [at for at, text in enumerate(cache.trace(selection.source).tokens.labels) if text == label]
    return query if not masked or query in masked else masked[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A model's predictions for the blank, or why there are none."""

    state: Literal["no head", "nothing masked", "masked", "next"]
    """``masked``: predictions for a mask token; ``next``: a causal model's predictions for the next token."""
    position: int
    """Position of the mask token, or of the token before the predicted one."""
    tokens: tuple[tuple[str, float], ...]
    """The likeliest tokens and their probabilities, likeliest first; none if nothing is filled in."""


def filled(selection: Selection, query: int) -> Filled:
    """What a selection's model fills in at the mask token, or after the query if it is causal."""
    source, trace = selection.source, cache.trace(selection.source)
    at = blank(selection, query)
    predicted = cache.predictions(source, trace, at)
    if predicted is None:
        return Filled(state="no head", position=at, tokens=())
    if "encoder" in trace.kinds and trace.tokens.labels[at] != cache.mask_label(source):
        return Filled(state="nothing masked", position=at, tokens=())
    return Filled(
        state="masked" if "encoder" in trace.kinds else "next",
        position=at,
        tokens=tuple(zip(predicted.labels, map(float, predicted.probabilities), strict=True)),
    )


def answer(view: View) -> None:
    """The five likeliest tokens at the mask token, or what is missing: a mask token or a language head."""
    st.subheader("3. What does the model fill in?", anchor=False)
    source = view.selection.source
    prediction = filled(view.selection, view.query)
    match prediction.state:
        case "no head":
            offer_language_model(
                view.selection,
                "has no language head, the part that turns a vector back into tokens, which this step needs. "
                f"{SMOLLM2} predicts the token that follows, bert-base-uncased the one in place of \\[MASK\\].",
                key="use_language_model",
            )
            _offer_bert()
        case "nothing masked":
            st.markdown(
                f"There is no {quoted(cache.mask_label(source) or 'mask token')} in this sentence. Mask a token with its "
                "chip above, and the model has to fill it in."
            )
        case "masked" | "next":
            where = "After" if prediction.state == "next" else "At"
            listed = ", ".join(
                f"**{literal(isolated(word))}** {share_text(probability)}"
                for word, probability in prediction.tokens
            )
            st.markdown(f"{where} {literal(name(view.queries, prediction.position))}: {listed}.")


def _offer_bert() -> None:
    """If BERT's weights are not on disk: what the download is for, how long it takes, and the button."""
    bert, head = offer(BERT), DOOR_MASK.head
    if locate(bert) is not None or head is None:
        return
    effort = downloads.effort(bert)
    st.markdown(
        f"With {BERT}{f' ({effort})' * bool(effort)} this page reads “{literal(DOOR_MASK.text)}” in layer {head.layer}, head "
        f"{head.head}, the experiment of most articles, and this step shows which word the model fills in."
    )
    with st.expander("Download bert-base-uncased"):
        downloads.panel(bert)
