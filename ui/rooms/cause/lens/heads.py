"""What each head, each MLP and the embedding add to the answer at the selected token, as a grid and a ranking."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st
from plotly.graph_objects import Figure

from attnviz.effects.logit_attribution import DirectEffects, DirectParts
from attnviz.effects.outcome import TokenAnswer
from attnviz.effects.over_pairs import MeanDirectEffects, over_pairs
from attnviz.figures.labels import isolated
from attnviz.figures.lens import draw_layer_parts
from attnviz.figures.numbers import number_text, power_text, spread_text
from attnviz.records import Axis, Head, as_label, by_layer, heads_in, known
from ui.choice import state
from ui.components.head_grid import head_grid
from ui.components.ranked_list import Row, ranked_list
from ui.rooms.cause.lens.facts import LargestPart, largest_part, strongest
from ui.rooms.cause.lens.screen import Screen
from ui.shell.chart import chart
from ui.shell.head_names import known_names
from ui.shell.view import View
from ui.words.extremes import equals
from ui.words.findings import name
from ui.words.head_names import marks_note, marks_of, with_names
from ui.words.literal import literal, quoted

_MOST_PARTS = 8


def heads(screen: Screen, answer: TokenAnswer | None, effects: DirectEffects) -> None:
    """Draws the finding, and what each head adds."""
    token = literal(name(Axis.of(screen.tokens), effects.position))
    what = f"the last hidden state of {token}" if answer is None else f"{answer_words(answer)} at {token}"
    whole = (
        f"that vector’s length is {number_text(effects.total)}"
        if answer is None
        else f"{_short(answer)} is {number_text(effects.total)}"
    )
    st.markdown(f"**{finding(largest_part(effects), what, whole)}**")

    names = known_names(screen.view)

    def text(head: Head) -> str:
        return with_names(f"{head.title}: {number_text(float(effects.heads[head]))}", names, head)

    head_grid(
        [[text(head) for head in of_layer] for of_layer in by_layer(heads_in(effects.heads))],
        name="What each head adds; select one",
        picked=screen.view.selection.place,
        on_pick=lambda layer, head: state.change(layer=layer, head=head),
        theme=screen.view.theme,
        numbers=effects.heads,
        signed=True,
        marks=marks_of(names, heads_in(effects.heads)),
        key="lens_heads",
    )
    st.caption(literal(" ".join(filter(None, [_note(screen, answer, effects), marks_note(names)]))))


def answer_words(answer: TokenAnswer) -> str:
    """The number that is attributed, as Markdown; for a single token the logit, since a probability is not a sum."""
    words = f"the logit of {quoted(as_label(answer.token))}"
    return words if answer.against is None else f"{words} minus that of {quoted(as_label(answer.against))}"


def _short(answer: TokenAnswer) -> str:
    return "the logit" if answer.against is None else "the difference"


def finding(largest: LargestPart | None, what: str, whole: str) -> str:
    """Which head adds or subtracts most.

    Args:
        what: the number that the heads add to, as Markdown.
        whole: what that number is, as a clause.
    """
    if largest is None:
        return f"No head’s direct effect on {what} is a number; {whole}"
    return (
        f"Of all heads, {largest.head.words} has the largest direct effect on {what}{equals(largest.n_equal)}: "
        f"{number_text(largest.adds)}; {whole}"
    )


def named_parts(parts: DirectParts) -> list[tuple[str, float, Head | None]]:
    """All parts of the model: name, what each adds, and the head if it is one; in the same order for every text."""
    named: list[tuple[str, float, Head | None]] = [("Embedding", parts.embedding, None)]
    for layer, of_layer in enumerate(parts.heads):
        named += [
            (Head(layer, head).title, float(effect), Head(layer, head))
            for head, effect in enumerate(known(of_layer))
        ]
        named.append((f"Layer {layer}, MLP", float(parts.mlps[layer]), None))
        named.append((f"Layer {layer}, biases", float(parts.biases[layer]), None))
    return [*named, ("Final biases", parts.bias, None)]


def parts(view: View, parts: DirectParts, of_pairs: Sequence[DirectParts] = ()) -> None:
    """The parts with the largest direct effects, heads and others.

    Args:
        of_pairs: the parts of every pair, if ``parts`` are means over pairs of prompts.
    """
    named = named_parts(parts)
    spread = np.full(len(named), np.nan)
    if of_pairs:
        spread = over_pairs([adds for _, adds, _ in named_parts(of_pair)] for of_pair in of_pairs).spread
    order = strongest(np.array([adds for _, adds, _ in named]), _MOST_PARTS)
    largest = abs(named[order[0]][1]) if order else 1.0

    def pick(row: int) -> None:
        if (head := named[order[row]][2]) is not None:
            state.change(layer=head.layer, head=head.head)

    st.markdown(f"**Largest {'mean ' * bool(of_pairs)}direct effects of all parts**")
    ranked_list(
        [
            Row(
                text=title,
                amount=f"{number_text(number)}{spread_text(float(spread[row]))}",
                length=number / largest,
                picked=head == view.selection.place,
            )
            for row in order
            for title, number, head in [named[row]]
        ],
        name="Parts of the model with the largest direct effects; select a head",
        on_pick=pick,
        theme=view.theme,
        key="lens_parts",
    )
    st.markdown(total(parts))


def sources(screen: Screen, effects: DirectEffects) -> None:
    """What the selected head adds, by the tokens it reads from."""
    place = screen.view.selection.place
    of_keys = effects.sources[place.layer][place.head]
    largest = float(np.abs(of_keys).max(initial=0.0)) or 1.0
    n_read = int(np.count_nonzero(of_keys))  # a decoder's head reads no later token
    keys = strongest(of_keys, _MOST_PARTS)
    labels = Axis.of(screen.view.trace.key_tokens(effects.kind))
    st.markdown(f"**{place.title}, by the token that it reads**")
    ranked_list(
        [
            Row(
                text=f"{isolated(labels.labels[at])} ({at})",
                amount=number_text(float(of_keys[at])),
                length=float(of_keys[at]) / largest,
                picked=at == screen.view.selection.key,
            )
            for at in keys
        ],
        name="Tokens by what the head adds because it reads them; select a key",
        on_pick=lambda row: state.change(key=keys[row]),
        theme=screen.view.theme,
        key="lens_sources",
    )
    st.caption(sources_note(len(keys), n_read, float(effects.heads[place])))


def sources_note(n_shown: int, n_token: int, adds: float) -> str:
    """What the numbers are, and that they sum to the head's total."""
    which = f"The largest {n_shown} of {n_token:,} tokens. " if n_shown < n_token else ""
    return (
        f"{which}Weight times the value of the token, through W_O and the frozen norms; over all tokens they sum to what the head "
        f"adds, {number_text(adds)}."
    )


def layers(view: View, parts: DirectParts, over: MeanDirectEffects | None = None) -> Figure:
    """Draws what each layer adds, its heads together and its MLP; returns the figure.

    Args:
        over: as in `draw_layer_parts`.
    """
    st.markdown("**Layer by layer**")
    drawn: Figure = draw_layer_parts(parts, over=over, picked=view.selection.layer, theme=view.theme)
    chart(
        drawn,
        key="lens_layer_parts",
        alt="What the heads and the MLP of each layer, and the embedding, add directly",
        on_pick=_pick_layer,
        name="Layers; select one",
    )
    return drawn


def total(parts: DirectParts) -> str:
    """The sum of all parts, compared with the model's own number, as Markdown."""
    return (
        f"Sum of all parts **{parts.summed:.6g}** · the model’s own **{parts.total:.6g}** · difference **{power_text(abs(parts.gap))}**"
    ).replace("-", "−")


def _pick_layer(clicked: Any) -> None:
    if isinstance(clicked, int) and clicked >= 0:
        state.change(layer=clicked)


def _note(screen: Screen, answer: TokenAnswer | None, effects: DirectEffects) -> str:
    instead = ""
    if answer is None and screen.has_head:
        instead = (
            "The answer itself is not a sum of parts here: the language head is not linear, as in BERT, or its vocabulary has no "
            "such token. "
        )
    what = "length of the last hidden state" if answer is None else _short(answer).removeprefix("the ")
    gap = power_text(abs(effects.gap))
    sums = (
        f"sum to the {what}, {number_text(effects.total)}, within {gap}"
        if effects.passed
        else f"do not sum to the {what}, {number_text(effects.total)}: they are off by {gap}, which is more than rounding"
    )
    return (
        f"{instead}All parts together, heads, MLPs, embedding and biases, {sums}. Each is what a part adds directly, through W_O and the "
        "norms after it, whose scales are kept; what it changes in later heads and MLPs is left out, so that switching the head off "
        "(Heads off) gives another number (Wang et al. 2022, arXiv:2211.00593)."
    )
