"""One step of generation: what the head attended to, and which tokens were likely."""

from collections.abc import Sequence

import streamlit as st
from plotly.graph_objects import Figure

from attnviz.figures import draw_pattern
from attnviz.figures.numbers import counted, share_text
from attnviz.model.continuation import Written
from attnviz.records import SPACE, Axis
from ui.choice import state, widgets
from ui.components.token_strip import token_strip
from ui.rooms.generate.screen import Screen, show
from ui.shell.chart import chart
from ui.words.findings import name, strongest_key
from ui.words.literal import literal, quoted

_TALLEST = 620  # px


def finding(screen: Screen) -> str:
    """The token generated in the step, its probability, and what the head attended to most, as Markdown."""
    continuation, pattern, at = screen.continuation, screen.pattern, screen.query
    axis = Axis.of(continuation.tokens)
    written = quoted(continuation.written[screen.step])
    chance = share_text(float(continuation.probabilities[screen.step]))
    key = strongest_key(pattern, at)
    weight = share_text(float(pattern.weights[at, key]))
    return (
        f"**Step {screen.step + 1} writes {written} ({chance}): in {screen.view.selection.place.words}, {literal(name(axis, at))} "
        f"gives {weight} of its attention to {literal(name(axis, key))}**"
    )


def strip(screen: Screen) -> None:
    """All tokens; a click on a generated one shows its step."""
    continuation = screen.continuation

    def pick(position: int) -> None:
        show(max(position - continuation.n_read, 0))

    token_strip(
        continuation.tokens,
        query=screen.query + 1,
        key=strongest_key(screen.pattern, screen.query),
        weights=screen.pattern.weights[screen.query],
        mask_label=None,
        on_pick=pick,
        on_mask=pick,
        theme=screen.view.theme,
    )


def attention(screen: Screen) -> Figure:
    """Draws the selected head's matrix over all tokens, the step's row outlined; returns the figure."""
    at, pattern = screen.query, screen.pattern
    key = strongest_key(pattern, at)
    drawn = draw_pattern(pattern, picked=(at, key), tallest=_TALLEST, theme=screen.view.theme)
    chart(
        drawn,
        key="written_matrix",
        alt=f"Attention of {screen.view.selection.place.words} over the text and what was written",
    )
    return drawn


def step_field(screen: Screen) -> None:
    """The field for the step."""
    n_step = len(screen.continuation.written)
    st.number_input(
        **widgets.field(
            "write_step",
            screen.view.selection.but(write_step=screen.step + 1),
            max_value=n_step,
            label=f"Step (1–{n_step})",
        ),
        width=190,
    )


def so_far(read: str, told: Sequence[Written]) -> str:
    """The text with its continuation so far, as Markdown."""
    if not told:
        return literal(read)
    written = "".join(token.label for token in told).replace(SPACE, " ")
    return f"{literal(read)} **{literal(written)}**"


def note(screen: Screen) -> str:
    """How the text was generated, and what is shown of it."""
    continuation = screen.continuation
    how = (
        "the most likely token of each step"
        if not continuation.temperature
        else f"drawn at temperature {continuation.temperature:g} with seed {continuation.seed}"
    )
    if continuation.picks:
        how = f"{len(continuation.picks)} picked by hand, the others {how}"
    ended = " The model ended the text." if continuation.ended else ""
    return (
        f"{counted(len(continuation.written), 'token')}, {how}.{ended} The row of a token is what the head read when the next token was written; a "
        "decoder's rows do not change with what follows, so one matrix holds every step. Probabilities are at temperature 1."
    )


def take_over(screen: Screen) -> None:
    """A button that makes the text on screen the sentence of every page."""
    text = screen.continuation.tokens.text
    st.button(
        "Use as the sentence",
        icon=":material/arrow_forward:",
        on_click=lambda: state.change(text=text),
        key="written_sentence",
        help="Uses the text and its continuation as the sentence on every page. It is tokenized again, which may join tokens.",
    )
