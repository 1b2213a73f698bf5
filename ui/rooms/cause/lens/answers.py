"""The answer after each layer: as a grid of layers and tokens, as a list for the selected token, and in words."""

from typing import Any

import streamlit as st
from plotly.graph_objects import Figure

from attnviz.effects.lens import LayerSimilarities, Lens
from attnviz.figures.labels import isolated
from attnviz.figures.layer_grid import runs_across
from attnviz.figures.lens import draw_layer_similarities, draw_lens
from attnviz.figures.numbers import number_text, share_text
from attnviz.records import Axis
from ui.choice import state
from ui.components.ranked_list import Row, ranked_list
from ui.rooms.cause.lens.facts import HALF, Rise, rise, settled
from ui.rooms.cause.lens.screen import Screen
from ui.shell.chart import chart
from ui.words.findings import name
from ui.words.literal import literal, quoted

MOST_LISTED = 12
"""Most layers listed beside the grid; a longer list scrolls by itself."""


def finding(screen: Screen, answers: Lens | LayerSimilarities) -> str:
    """From which layer on the selected token has its final answer, or its final direction, as Markdown."""
    at = screen.view.last_query
    token = literal(name(Axis.of(screen.tokens), at))
    if isinstance(answers, LayerSimilarities):
        return f"**{similar_to_last(rise(answers, at), token)}**"
    own = settled(answers, at)
    sentence = _predicted(screen, token, quoted(own.answer), share_text(own.probability))
    if own.layer == own.last:
        return f"**{sentence}, which comes first only after the last layer, {own.last}**"
    return f"**{sentence}, which comes first from layer {own.layer} on**"


def similar_to_last(facts: Rise, token: str) -> str:
    """How similar a token's first vector is to its last, and from which layer on its vectors are similar."""
    sentence = (
        f"The vectors of {token} after layer 0 and after the last have a cosine of {number_text(facts.first)}"
    )
    if facts.layer is None:
        return sentence
    if facts.is_last:
        return f"{sentence}; before the last layer none reaches {HALF}"
    return f"{sentence}; the first layer to reach {HALF} is {facts.layer}"


def grid(screen: Screen, answers: Lens | LayerSimilarities) -> Figure:
    """Draws each layer at each token; returns the figure."""
    if isinstance(answers, Lens):
        drawn: Figure = draw_lens(
            answers, screen.tokens, picked=screen.view.last_query, theme=screen.view.theme
        )
        caption = "Most likely token after each layer, at each token"
    else:
        drawn = draw_layer_similarities(
            answers, screen.tokens, picked=screen.view.last_query, theme=screen.view.theme
        )
        caption = "Similarity of each layer's vector with the last, at each token"
    chart(drawn, key="lens_grid", alt=caption, on_pick=_pick, name=f"{caption}; select one")
    return drawn


def of_token(screen: Screen, answers: Lens | LayerSimilarities) -> None:
    """The selected token, layer by layer."""
    at = screen.view.last_query
    st.markdown(f"**{literal(name(Axis.of(screen.tokens), at))}, layer by layer**")
    layers = range(len(answers.answer_ranks) if isinstance(answers, Lens) else len(answers.similarities))
    ranked_list(
        [
            Row(
                text=f"Layer {layer}: {isolated(answers.labels[layer][at][0])}"
                if isinstance(answers, Lens)
                else f"Layer {layer}",
                amount=number_text(number := _number(answers, layer, at)),
                length=max(number, 0.0),
                picked=layer == screen.view.selection.layer,
            )
            for layer in layers
        ],
        name="Layers; select one",
        on_pick=lambda row: state.change(layer=row),
        theme=screen.view.theme,
        key="lens_layers",
        is_ranked=False,
        scrolls=len(layers) > MOST_LISTED,
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


def terms_of(answers: Lens | LayerSimilarities) -> tuple[str, ...]:
    """The glossary terms for what is shown; similarities are not the logit lens."""
    return ("Logit lens",) if isinstance(answers, Lens) else ("Cosine similarity",)


def _number(answers: Lens | LayerSimilarities, layer: int, at: int) -> float:
    return float(
        answers.probabilities[layer, at, 0] if isinstance(answers, Lens) else answers.similarities[layer, at]
    )


def _predicted(screen: Screen, token: str, answer: str, probability: str) -> str:
    """What the model predicts, and where: a masked language model at the token, a decoder after it."""
    where = "After" if screen.predicts_next else "At"
    return f"{where} {token} the model predicts {answer} ({probability})"


def _pick(clicked: Any) -> None:
    match clicked:
        case [int(layer), int(token)]:
            state.change(layer=layer, query=token)
