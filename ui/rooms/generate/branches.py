"""Branches: another candidate in place of a generated token, the list of texts, and a comparison of two of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st
from plotly.graph_objects import Figure

from attnviz.figures import draw_comparison
from attnviz.figures.comparison import MOST_BLOCKS, Part
from attnviz.figures.numbers import number_text, share_text, sum_text
from attnviz.heads.comparison import Comparison, compare, pair_positions
from attnviz.model.continuation import Continuation
from ui.choice import state, widgets
from ui.choice.fields import Branch
from ui.components.ranked_list import Row, ranked_list
from ui.rooms.generate.choices import MOST_BRANCHES, GenerationSettings
from ui.rooms.generate.screen import Screen, Text, show
from ui.shell.chart import chart
from ui.words.findings import name, strongest_key
from ui.words.literal import literal, quoted

PARTS: dict[Part, str] = {"first": "Attention in A", "second": "Attention in B", "difference": "B minus A"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """Where a text diverges from another: the first step with different tokens, from 0."""

    step: int
    other: int
    """Index of the other text in the given order."""


def parting(ids: Sequence[int], others: Sequence[Sequence[int]]) -> Parting | None:
    """Where a text diverges from the text with which it shares the longest beginning; the first one if tied.

    None if there is no other text, or one is a beginning of the other.

    Args:
        ids: of the generated tokens.
        others: ids of the other texts.
    """
    shared = [_n_shared(ids, other) for other in others]
    if not shared or max(shared) in (len(ids), len(others[shared.index(max(shared))])):
        return None
    return Parting(step=max(shared), other=shared.index(max(shared)))


def _n_shared(first: Sequence[int], second: Sequence[int]) -> int:
    """Length of the common beginning of two texts, in tokens."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (own, other) in pairs if own != other), min(len(first), len(second)))


def log_probability(continuation: Continuation) -> float:
    """Log probability of all generated tokens together, in nats."""
    return float(np.log(continuation.probabilities.astype(np.float64)).sum())


def written_ids(continuation: Continuation) -> list[int]:
    """Ids of the generated tokens."""
    ids: list[int] = continuation.tokens.ids[continuation.n_read :].tolist()
    return ids


def candidates(screen: Screen) -> None:
    """The most likely tokens of the step; a click on one continues the text with it, as a branch."""
    ids, rows = candidate_rows(screen.continuation, screen.step)
    ranked_list(
        rows,
        name="Most likely tokens of this step; select one to continue with it",
        on_pick=lambda row: branch_off(screen, ids[row]),
        theme=screen.view.theme,
        key="candidates",
    )
    st.caption("Select another token: the text continues from there as a branch.")


def candidate_rows(continuation: Continuation, step: int) -> tuple[list[int], list[Row]]:
    """Ids and rows of a step's most likely tokens, and of the generated one, which may not be among them."""
    chosen = written_ids(continuation)[step]
    ids, labels = continuation.candidate_ids[step].tolist(), list(continuation.candidates[step])
    chances = continuation.candidate_probabilities[step].tolist()
    if chosen not in ids:  # sampled, or picked from further down in another text
        ids, labels = [*ids, chosen], [*labels, continuation.written[step]]
        chances = [*chances, float(continuation.probabilities[step])]
    return ids, [
        Row(text=label, amount=number_text(chance), length=chance, picked=number == chosen)
        for number, label, chance in zip(ids, labels, chances, strict=True)
    ]


def branch_off(screen: Screen, token_id: int) -> None:
    """Shows the text that continues with this token at the step: an existing one, or a new branch."""
    beginning = [*written_ids(screen.continuation)[: screen.step], token_id]
    for text in (screen.text, *screen.texts):
        if written_ids(text.continuation)[: len(beginning)] == beginning:
            state.change(write_branch=text.number, write_step=len(beginning))
            return
    branches = screen.view.selection.of(GenerationSettings).branches
    kept = [pick for pick in screen.text.branch.picks if pick[0] < len(beginning)]
    new = Branch((*kept, (len(beginning), token_id)))
    if new in branches:  # it is being generated
        state.change(write_branch=branches.index(new) + 1, write_step=len(beginning))
    elif len(branches) < MOST_BRANCHES:
        state.change(
            write_branches=(*branches, new), write_branch=len(branches) + 1, write_step=len(beginning)
        )
    else:
        state.hold()


def remove(number: int, branches: Sequence[Branch]) -> None:
    """Removes a branch, and shows the model's own text."""
    kept = tuple(branch for at, branch in enumerate(branches, 1) if at != number)
    state.change(write_branches=kept, write_branch=0, write_beside=None)


def select(screen: Screen, number: int) -> None:
    """Shows another text; if that is the compared one, the previous text takes its place in the comparison."""
    beside = screen.view.selection.of(GenerationSettings).beside
    state.change(write_branch=number, write_beside=screen.text.number if beside == number else beside)


def texts(screen: Screen) -> None:
    """The list of texts, with their probabilities and where they diverge; nothing without branches."""
    if len(screen.texts) < 2:
        return
    st.markdown("**Texts**")
    ids = [written_ids(text.continuation) for text in screen.texts]
    rows = []
    for at, text in enumerate(screen.texts):
        parts = parting(ids[at], ids[:at])
        where = "" if parts is None else f" · step {parts.step + 1}: {text.continuation.written[parts.step]}"
        total = log_probability(text.continuation)
        rows.append(
            Row(
                text=f"{text.name}{where}",
                amount=sum_text(total),
                length=math.exp(total / len(ids[at])),
                picked=text is screen.text,
            )
        )
    numbers = [text.number for text in screen.texts]
    ranked_list(
        rows,
        name="Texts; select one to show it",
        on_pick=lambda row: select(screen, numbers[row]),
        theme=screen.view.theme,
        key="texts",
        is_ranked=False,
    )
    full = len(screen.view.selection.of(GenerationSettings).branches) == MOST_BRANCHES
    st.caption(
        "Log-probability of all tokens written, in nats; the bar is their geometric mean probability."
        + f" There are {MOST_BRANCHES} branches; remove one to add another." * full
    )
    names = {text.number: text.name for text in screen.texts} | {screen.text.number: "No other text"}
    beside = (screen.beside or screen.text).number
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            **widgets.field(
                "write_beside",
                screen.view.selection.but(write_beside=beside),
                options=numbers,
                format_func=names.__getitem__,
                width=190,
            )
        )
        if screen.text.number:
            st.button(
                "Remove branch",
                icon=":material/delete:",
                on_click=remove,
                args=(screen.text.number, screen.view.selection.of(GenerationSettings).branches),
                key="remove_branch",
                help="Removes this branch; the others stay.",
            )


def compared(screen: Screen, other: Text) -> Comparison:
    """The selected head's attention in the shown text (A) and in another (B); positions correspond."""
    return compare(screen.pattern, screen.pattern_of(other), pairing=pair_positions)


def difference_words(screen: Screen, other: Text, comparison: Comparison) -> str:
    """Where two texts diverge, the probabilities, and how much the step's attention differs, as Markdown."""
    continuation, step = screen.continuation, screen.step
    parts = parting(written_ids(continuation), [written_ids(other.continuation)])
    names = screen.text.name, other.name
    if parts is None:
        return f"A ({names[0]}) and B ({names[1]}) have the same tokens as far as both go."
    first, second = (
        f"{quoted(written.written[parts.step])} ({share_text(float(written.probabilities[parts.step]))})"
        for written in (continuation, other.continuation)
    )
    sentence = (
        f"A ({names[0]}) and B ({names[1]}) diverge at step {parts.step + 1}: {first} in A, {second} in B."
    )
    if step <= parts.step:
        return f"{sentence} Step {step + 1} reads the same tokens in both."
    if step >= len(other.continuation.written):
        return f"{sentence} B has no step {step + 1}."
    change = share_text(float(comparison.row_change[screen.query]))
    rows = [literal(name(pattern.queries, screen.query)) for pattern in (comparison.first, comparison.second)]
    return (
        f"{sentence} Step {step + 1} distributes {change} of its attention differently: the query is {rows[0]} in A, "
        f"{rows[1]} in B."
    )


def side_by_side(screen: Screen, other: Text) -> dict[str, Figure | str]:
    """Draws both matrices and their difference, the step's row outlined; returns the figures by title."""
    both = compared(screen, other)
    sentence = difference_words(screen, other, both)
    st.markdown(sentence)
    picked = screen.query, strongest_key(screen.pattern, screen.query)
    drawn: dict[str, Figure | str] = {}
    for column, (part, title) in zip(st.columns(3, gap="small"), PARTS.items(), strict=True):
        of = {"first": f" · {screen.text.name}", "second": f" · {other.name}"}.get(part, "")
        figure = draw_comparison(
            both,
            part,
            picked=picked,
            around=MOST_BLOCKS if len(both.keys) > MOST_BLOCKS else None,
            theme=screen.view.theme,
        )
        drawn[title] = figure
        with column:
            st.markdown(f"**{title}**{of}")
            chart(
                figure,
                key=f"branches_{part}",
                alt=f"{title}: {sentence}",
                on_pick=lambda clicked: _pick(screen, clicked),
            )
    return drawn


def _pick(screen: Screen, clicked: object) -> None:
    """Shows the step whose row was clicked; rows of the given text have no step."""
    match clicked:
        case [int(query), int()] if (step := query + 1 - screen.continuation.n_read) in range(
            len(screen.continuation.written)
        ):
            show(step)
        case _:
            state.hold()
