"""The effect of every head as a grid and a ranking, and that of all heads of a layer."""

import numpy as np
import streamlit as st

from attnviz.effects.ablation import HeadEffects
from attnviz.figures.numbers import number_text, signed_text
from attnviz.records import Head, by_layer
from ui.choice import state, widgets
from ui.components.head_grid import head_grid
from ui.components.ranked_list import Row, ranked_list
from ui.page.head_names import known_probes
from ui.sections import outcome
from ui.sections.effects.facts import largest_effect
from ui.sections.effects.screen import Screen
from ui.words.extremes import equals
from ui.words.head_names import marks_note, marks_of, with_names
from ui.words.literal import literal

N_RANKED = 8
GIVES = {"zero": "zeros", "mean": "its mean output over the bundled sentences"}


def pick(layer: int, head: int) -> None:
    """Selects a head, here and on every page."""
    state.change(layer=layer, head=head)


def controls(screen: Screen) -> None:
    """What is measured, and what a head gives while it is off."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="effects_controls"):
        outcome.controls(screen.view, screen.outcome)
        st.segmented_control(**widgets.field("ablation", required=True))


def finding(screen: Screen, found: HeadEffects) -> str:
    """Which head has the largest effect, as Markdown."""
    largest = largest_effect(found)
    if largest is None:
        return f"**No head changes the outcome, {number_text(found.base)}**"
    changed = outcome.change(screen.outcome, screen.view.trace.last_tokens, largest.before, largest.after)
    return f"**Largest effect{equals(largest.n_equal)}: without {largest.head.words} {changed}**"


def grid(screen: Screen, found: HeadEffects) -> None:
    """All heads, each with its effect."""
    probes = known_probes(screen.view)

    def text(place: Head) -> str:
        after = number_text(float(found.heads[place]))
        said = f"{place.title}: effect {signed_text(float(found.effects[place]))}; outcome {after} without it"
        return with_names(said, probes, place)

    head_grid(
        [[text(place) for place in of_layer] for of_layer in by_layer(screen.heads)],
        name="Effect of switching off each head; select one",
        picked=screen.view.selection.place,
        on_pick=pick,
        theme=screen.view.theme,
        numbers=found.effects,
        signed=True,
        marks=marks_of(probes, screen.heads),
        key="effects_grid",
    )
    if probes is not None:
        st.caption(literal(marks_note(probes)))


def ranking(screen: Screen, found: HeadEffects) -> None:
    """The heads with the largest effects, and all heads of each layer, each a click away."""
    largest = max(float(np.nanmax(np.abs(found.effects))), 1e-12)
    heads = found.ranked()[:N_RANKED]
    st.markdown("**Largest effects**")
    ranked_list(
        [
            Row(
                text=one.title,
                amount=signed_text(float(found.effects[one])),
                length=abs(float(found.effects[one])) / largest,
                picked=one == screen.view.selection.place,
            )
            for one in heads
        ],
        name="Heads with the largest effects; select one",
        on_pick=lambda row: pick(*heads[row]),
        theme=screen.view.theme,
        key="effects_ranking",
    )
    st.markdown("**All heads of a layer off**")
    largest = max(float(np.abs(found.layer_effects).max()), 1e-12)
    ranked_list(
        [
            Row(
                text=f"Layer {layer}",
                amount=signed_text(float(effect)),
                length=abs(float(effect)) / largest,
                picked=layer == screen.view.selection.layer,
            )
            for layer, effect in enumerate(found.layer_effects)
        ],
        name="Effect of all heads of each layer; select a layer",
        on_pick=lambda row: state.change(layer=row),
        theme=screen.view.theme,
        key="effects_layers",
        is_ranked=False,
    )


def note(found: HeadEffects) -> str:
    """What the numbers are relative to, and what they do not mean."""
    return (
        f"Each number is the outcome without the head minus the outcome of the unchanged run, {number_text(found.base)}; "
        f"while it is off, a head gives {GIVES[found.ablation]}, and every later layer reads the changed hidden states. "
        "An effect near 0 does not mean that the head does nothing: another head may do the same, and another sentence or "
        "outcome may need it (Michel et al. 2019, arXiv:1905.10650)."
    )
