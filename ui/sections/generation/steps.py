"""One step of writing: what was read, and what could have been written."""

import streamlit as st
from plotly.graph_objects import Figure

from attnviz.figures import draw_pattern
from attnviz.figures.numbers import number_text, share_text
from attnviz.records import Axis
from ui.choice import state, widgets
from ui.components.token_strip import token_strip
from ui.page.chart import chart
from ui.sections.generation.screen import Screen, show
from ui.words.findings import name, strongest_key
from ui.words.literal import literal, quoted

_TALLEST = 620  # px


def finding(screen: Screen) -> str:
    """What was written in the step, how likely, and what the head read most, as Markdown."""
    found, pattern, at = screen.found, screen.pattern, screen.query
    axis = Axis.of(found.tokens)
    written = quoted(found.written[screen.step])
    chance = share_text(float(found.probabilities[screen.step]))
    key = strongest_key(pattern, at)
    weight = share_text(float(pattern.weights[at, key]))
    return (
        f"**Step {screen.step + 1} writes {written} ({chance}): in {screen.view.selection.place.words}, {literal(name(axis, at))} "
        f"gives {weight} of its attention to {literal(name(axis, key))}**"
    )


def strip(screen: Screen) -> None:
    """All tokens; a click on a written one shows its step."""
    found = screen.found

    def pick(position: int) -> None:
        show(min(max(position - found.n_read, 0), len(found.written) - 1))

    token_strip(
        found.tokens,
        query=screen.query + 1,
        key=strongest_key(screen.pattern, screen.query),
        weights=screen.pattern.weights[screen.query],
        mask_label=None,
        on_pick=pick,
        on_mask=pick,
        theme=screen.view.theme,
    )


def attention(screen: Screen) -> Figure:
    """The matrix of the selected head over all tokens, the step's row outlined; the figure."""
    at, pattern = screen.query, screen.pattern
    key = strongest_key(pattern, at)
    drawn = draw_pattern(pattern, picked=(at, key), tallest=_TALLEST, theme=screen.view.theme)
    chart(
        drawn,
        key="written_matrix",
        alt=f"Attention of {screen.view.selection.place.words} over the text and what was written",
    )
    return drawn


def candidates(screen: Screen) -> None:
    """The tokens that were most likely in the step."""
    found, step = screen.found, screen.step
    st.number_input(
        **widgets.field(
            "write_step",
            screen.view.selection.but(write_step=step + 1),
            max_value=len(found.written),
            label=f"Step (1–{len(found.written)})",
        ),
        width=190,
    )
    st.markdown("**Most likely tokens of this step**")
    numbers = [number_text(float(one)) for one in found.candidate_probabilities[step]]
    st.table(
        {"token": [literal(one) for one in found.candidates[step]], "probability": numbers}, hide_index=True
    )


def note(screen: Screen) -> str:
    """How it was written, and what is shown of it."""
    found = screen.found
    how = (
        "the most likely token of each step"
        if not found.temperature
        else f"drawn at temperature {found.temperature:g} with seed {found.seed}"
    )
    ended = " The model ended the text." if found.ended else ""
    n = len(found.written)
    return (
        f"{n} token{'s' * (n != 1)}, {how}.{ended} The row of a token is what the head read when the next token was written; a "
        "decoder's rows do not change with what follows, so that one matrix holds every step. Probabilities are at temperature 1."
    )


def take_over(screen: Screen) -> None:
    """A button that makes the text on screen the sentence of every page."""
    text = screen.found.tokens.text
    st.button(
        "Use as the sentence",
        icon=":material/arrow_forward:",
        on_click=lambda: state.change(text=text),
        key="written_sentence",
        help="Makes the text and what was written the sentence of every page. It is tokenized anew, which may join tokens.",
    )
