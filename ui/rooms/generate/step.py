"""One step of writing: what the head attended to, which tokens were likely, and the texts that branch off, one beside another."""

import math
from collections.abc import Mapping, Sequence
from itertools import takewhile
from operator import eq

import numpy as np
import streamlit as st
from plotly.graph_objects import Figure

from attnviz.figures import draw_comparison, draw_pattern
from attnviz.figures.comparison import MOST_BLOCKS, Part
from attnviz.figures.numbers import counted, number_text, share_text, sum_text
from attnviz.heads.comparison import Comparison, compare, pair_positions
from attnviz.model.continuation import Continuation
from attnviz.records import Axis
from ui.choice import state, widgets
from ui.choice.fields import Branch
from ui.components.ranked_list import Row, ranked_list
from ui.components.token_strip import token_strip
from ui.rooms.generate.written import MOST_BRANCHES, Screen, Text, running_text
from ui.shell.chart import chart
from ui.words.findings import name, strongest_key
from ui.words.literal import literal, quoted

PARTS: dict[Part, str] = {"first": "Attention in A", "second": "Attention in B", "difference": "B minus A"}
_TALLEST = 620  # px


def finding(screen: Screen) -> str:
    """The token generated in the step, its probability, and what the head attended to most, as Markdown."""
    continuation, pattern, at = screen.continuation, screen.pattern, screen.query
    axis, key = Axis.of(continuation.tokens), strongest_key(pattern, at)
    written = quoted(continuation.written[screen.step])
    chance = share_text(float(continuation.probabilities[screen.step]))
    weight = share_text(float(pattern.weights[at, key]))
    return (
        f"Step {screen.step + 1} writes {written} ({chance}): in {screen.view.selection.place.words}, {literal(name(axis, at))} "
        f"gives {weight} of its attention to {literal(name(axis, key))}"
    )


def strip(screen: Screen) -> None:
    """The text to read, what was written in bold, and all its tokens; a click on a generated one shows its step."""
    continuation = screen.continuation
    st.markdown(running_text(screen.view.trace.tokens.text, continuation.written))

    def pick(position: int) -> None:
        state.change(write_step=max(position - continuation.n_read, 0) + 1)

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


def matrices(screen: Screen) -> Mapping[str, Figure]:
    """The selected head's matrix over all tokens, or both texts' and their difference, the step's row outlined."""
    if screen.beside is not None:
        return side_by_side(screen, screen.beside)
    pattern, picked = screen.pattern, (screen.query, strongest_key(screen.pattern, screen.query))
    drawn = draw_pattern(pattern, picked=picked, tallest=_TALLEST, theme=screen.view.theme)
    alt = f"Attention of {screen.view.selection.place.words} over the text and what was written"
    chart(drawn, key="written_matrix", alt=alt)
    return {"written_matrix": drawn}


def beside(screen: Screen) -> None:
    """The step, its most likely tokens, and the texts."""
    n_step, shown = len(screen.continuation.written), screen.view.selection.but(write_step=screen.step + 1)
    st.number_input(
        **widgets.field("write_step", shown, max_value=n_step, label=f"Step (1–{n_step})"), width=190
    )
    candidates(screen)
    texts(screen)
    text = screen.continuation.tokens.text
    st.button(
        "Use as the sentence",
        icon=":material/arrow_forward:",
        on_click=lambda: state.change(text=text),
        key="written_sentence",
        help="Uses the text and its continuation as the sentence on every page. It is tokenized again, which may join tokens.",
    )


def note(screen: Screen) -> None:
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
    st.caption(
        literal(
            f"{counted(len(continuation.written), 'token')}, {how}.{ended} The row of a token is what the head read when the next token "
            "was written; a decoder's rows do not change with what follows, so one matrix holds every step. Probabilities are at "
            "temperature 1."
        )
    )


def candidates(screen: Screen) -> None:
    """The most likely tokens of the step; a click on one continues the text with it, as a branch."""
    ids, rows = candidate_rows(screen.text, screen.step)
    ranked_list(
        rows,
        name="Most likely tokens of this step; select one to continue with it",
        on_pick=lambda row: branch_off(screen, ids[row]),
        theme=screen.view.theme,
        key="candidates",
    )
    st.caption("Select another token: the text continues from there as a branch.")


def candidate_rows(text: Text, step: int) -> tuple[list[int], list[Row]]:
    """Ids and rows of a step's most likely tokens, and of the generated one, which may not be among them."""
    continuation, chosen = text.continuation, text.ids[step]
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
    beginning, branches = [*screen.text.ids[: screen.step], token_id], screen.chosen.branches
    for text in (screen.text, *screen.texts):
        if text.ids[: len(beginning)] == beginning:
            state.change(write_branch=text.number, write_step=len(beginning))
            return
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
    beside = screen.chosen.beside
    state.change(write_branch=number, write_beside=screen.text.number if beside == number else beside)


def parting(ids: Sequence[int], others: Sequence[Sequence[int]]) -> int | None:
    """The step, from 0, at which a text diverges from the one of the others with which it shares the longest beginning.

    None if there is no other text, or one is a beginning of the other.
    """
    shared = [sum(1 for _ in takewhile(bool, map(eq, ids, other))) for other in others]
    if not shared or max(shared) in (len(ids), len(others[shared.index(max(shared))])):
        return None
    return max(shared)


def log_probability(continuation: Continuation) -> float:
    """Log probability of all generated tokens together, in nats."""
    return float(np.log(continuation.probabilities.astype(np.float64)).sum())


def text_row(screen: Screen, at: int) -> Row:
    """The row of a text in their list, with its probability and where it diverges."""
    text = screen.texts[at]
    step = parting(text.ids, [other.ids for other in screen.texts[:at]])
    where = "" if step is None else f" · step {step + 1}: {text.continuation.written[step]}"
    total = log_probability(text.continuation)
    return Row(
        text=f"{text.name}{where}",
        amount=sum_text(total),
        length=math.exp(total / len(text.ids)),
        picked=text is screen.text,
    )


def texts(screen: Screen) -> None:
    """The list of texts, with their probabilities and where they diverge; nothing without branches."""
    if len(screen.texts) < 2:
        return
    st.markdown("**Texts**")
    numbers, branches = [text.number for text in screen.texts], screen.chosen.branches
    ranked_list(
        [text_row(screen, at) for at in range(len(screen.texts))],
        name="Texts; select one to show it",
        on_pick=lambda row: select(screen, numbers[row]),
        theme=screen.view.theme,
        key="texts",
        is_ranked=False,
    )
    st.caption(
        "Log-probability of all tokens written, in nats; the bar is their geometric mean probability."
        + f" There are {MOST_BRANCHES} branches; remove one to add another."
        * (len(branches) == MOST_BRANCHES)
    )
    names = {text.number: text.name for text in screen.texts} | {screen.text.number: "No other text"}
    shown = screen.view.selection.but(write_beside=(screen.beside or screen.text).number)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            **widgets.field("write_beside", shown, options=numbers, format_func=names.__getitem__, width=190)
        )
        if screen.text.number:
            st.button(
                "Remove branch",
                icon=":material/delete:",
                on_click=remove,
                args=(screen.text.number, branches),
                key="remove_branch",
                help="Removes this branch; the others stay.",
            )


def side_by_side(screen: Screen, other: Text) -> dict[str, Figure]:
    """Both matrices and their difference, by key; positions correspond."""
    both = compare(screen.pattern, screen.pattern_of(other), pairing=pair_positions)
    sentence = difference_words(screen, other, both)
    st.markdown(sentence)
    drawn: dict[str, Figure] = {}
    for column, (part, title) in zip(st.columns(3, gap="small"), PARTS.items(), strict=True):
        of = {"first": f" · {screen.text.name}", "second": f" · {other.name}"}.get(part, "")
        drawn[f"branches_{part}"] = figure = draw_comparison(
            both,
            part,
            picked=(screen.query, strongest_key(screen.pattern, screen.query)),
            around=MOST_BLOCKS if len(both.keys) > MOST_BLOCKS else None,
            theme=screen.view.theme,
        )
        with column:
            st.markdown(f"**{title}**{of}")
            chart(
                figure,
                key=f"branches_{part}",
                alt=f"{title}: {sentence}",
                on_pick=lambda clicked: _pick(screen, clicked),
            )
    return drawn


def difference_words(screen: Screen, other: Text, comparison: Comparison) -> str:
    """Where two texts diverge, the probabilities, and how much the step's attention differs, as Markdown."""
    step, parts = screen.step, parting(screen.text.ids, [other.ids])
    both = f"A ({screen.text.name}) and B ({other.name})"
    if parts is None:
        return f"{both} have the same tokens as far as both go."
    first, second = (
        f"{quoted(written.written[parts])} ({share_text(float(written.probabilities[parts]))})"
        for written in (screen.continuation, other.continuation)
    )
    sentence = f"{both} diverge at step {parts + 1}: {first} in A, {second} in B."
    if step <= parts:
        return f"{sentence} Step {step + 1} reads the same tokens in both."
    if step >= len(other.continuation.written):
        return f"{sentence} B has no step {step + 1}."
    change = share_text(float(comparison.row_change[screen.query]))
    rows = [literal(name(pattern.queries, screen.query)) for pattern in (comparison.first, comparison.second)]
    return (
        f"{sentence} Step {step + 1} distributes {change} of its attention differently: the query is {rows[0]} in A, "
        f"{rows[1]} in B."
    )


def _pick(screen: Screen, clicked: object) -> None:
    """Shows the step whose row was clicked; rows of the given text have no step."""
    match clicked:
        case [int(query), int()] if (step := query + 1 - screen.continuation.n_read) in range(
            len(screen.continuation.written)
        ):
            state.change(write_step=step + 1)
        case _:
            state.hold()
