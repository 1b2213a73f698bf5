"""What each head, MLP and the embedding add to the answer at the selected token, as a grid and a ranking."""

import streamlit as st

from attnviz.effects.logit_attribution import DirectEffects
from attnviz.figures.numbers import number_text, power_text
from attnviz.records import Axis, Head, by_layer, heads_in, known
from ui.choice import state
from ui.components.head_grid import head_grid
from ui.components.ranked_list import Row, ranked_list
from ui.page.head_names import known_probes
from ui.sections.lens.facts import LargestPart, largest_part
from ui.sections.lens.screen import Screen
from ui.words.extremes import equals
from ui.words.findings import name
from ui.words.head_names import marks_note, marks_of, with_names
from ui.words.literal import literal, quoted
from ui.work import cache

_MOST_PARTS = 8


def heads(screen: Screen, answer: str | None, found: DirectEffects) -> None:
    """The finding, and all heads with what each adds."""
    token = literal(name(Axis.of(screen.tokens), found.position))
    what = (
        f"the logit of {quoted(answer)} at {token}"
        if answer is not None
        else f"the last hidden state of {token}"
    )
    whole = f"{'the logit' if answer is not None else 'that vector’s length'} is {number_text(found.total)}"
    st.markdown(f"**{finding(largest_part(found), what, whole)}**")

    probes = known_probes(screen.view)

    def text(head: Head) -> str:
        return with_names(f"{head.title}: {number_text(float(found.heads[head]))}", probes, head)

    head_grid(
        [[text(head) for head in of_layer] for of_layer in by_layer(heads_in(found.heads))],
        name="What each head adds; select one",
        picked=screen.view.selection.place,
        on_pick=lambda layer, head: state.change(layer=layer, head=head),
        theme=screen.view.theme,
        numbers=found.heads,
        signed=True,
        marks=marks_of(probes, heads_in(found.heads)),
        key="lens_heads",
    )
    st.caption(literal(" ".join(filter(None, [_note(screen, answer, found), marks_note(probes)]))))


def finding(largest: LargestPart | None, what: str, whole: str) -> str:
    """Which head adds or subtracts most, of all heads.

    Args:
        what: the number that the heads add to, to be read as Markdown.
        whole: what that number is, as a clause.
    """
    if largest is None:
        return f"No head’s direct effect on {what} is a number; {whole}"
    return (
        f"Of all heads {largest.head.words} has the largest direct effect on {what}{equals(largest.n_equal)}: "
        f"{number_text(largest.adds)}; {whole}"
    )


def parts(screen: Screen, found: DirectEffects) -> None:
    """The parts with the largest direct effects, heads and others."""
    named: list[tuple[str, float, Head | None]] = [("Embedding", found.embedding, None)]
    for layer, of_layer in enumerate(found.heads):
        named += [
            (Head(layer, head).title, float(one), Head(layer, head))
            for head, one in enumerate(known(of_layer))
        ]
        named.append((f"Layer {layer}, MLP", float(found.mlps[layer]), None))
        named.append((f"Layer {layer}, biases", float(found.biases[layer]), None))
    named.append(("Final biases", found.bias, None))
    named.sort(key=lambda one: -abs(one[1]))
    largest = abs(named[0][1]) or 1.0
    shown = named[:_MOST_PARTS]

    def pick(row: int) -> None:
        if (head := shown[row][2]) is not None:
            state.change(layer=head.layer, head=head.head)

    st.markdown("**Largest direct effects of all parts**")
    ranked_list(
        [
            Row(
                text=title,
                amount=number_text(number),
                length=abs(number) / largest,
                picked=head == screen.view.selection.place,
            )
            for title, number, head in shown
        ],
        name="Parts of the model with the largest direct effects; select a head",
        on_pick=pick,
        theme=screen.view.theme,
        key="lens_parts",
    )


def _note(screen: Screen, answer: str | None, found: DirectEffects) -> str:
    instead = ""
    if answer is None and cache.model(screen.view.selection.source.model).head is not None:
        instead = (
            "The answer itself is no sum of parts here: the language head is not linear, as BERT's, or its vocabulary has no entry "
            "that is written so. "
        )
    what = "logit" if answer is not None else "length of the last hidden state"
    gap = power_text(abs(found.gap))
    sums = (
        f"sum to the {what}, {number_text(found.total)}, within {gap}"
        if found.passed
        else f"do not sum to the {what}, {number_text(found.total)}: they are off by {gap}, which is more than rounding"
    )
    return (
        f"{instead}All parts together, heads, MLPs, embedding and biases, {sums}. Each is what a part adds directly, through W_O and the "
        "norms after it, whose scales are kept; what it changes in later heads and MLPs is left out, so that switching the head off "
        "(Effects) gives another number (Wang et al. 2022, arXiv:2211.00593)."
    )
