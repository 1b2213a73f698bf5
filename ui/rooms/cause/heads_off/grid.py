"""The effect of every head as a grid and a ranking, layer by layer as results arrive, and the effects of whole layers."""

import numpy as np
import streamlit as st

from attnviz.effects.ablation import Ablation, HeadEffects, LayerEffects
from attnviz.figures.numbers import counted, number_text, signed_text
from attnviz.records import Head, by_layer, known
from ui.choice import state, widgets
from ui.components.head_grid import head_grid
from ui.components.ranked_list import Row, ranked_list
from ui.rooms.cause import outcome, prompts
from ui.rooms.cause.heads_off import jobs
from ui.rooms.cause.heads_off.choices import EffectsSettings
from ui.rooms.cause.heads_off.facts import largest_effect
from ui.rooms.cause.heads_off.screen import AblatedRun, Screen, joined
from ui.rooms.cause.own_run import check_can_run
from ui.runtime.jobs import TELLS_PROGRESS, Call, Job
from ui.shell.head_names import known_names
from ui.shell.navigation import link_to
from ui.shell.view import View
from ui.shell.waiting import Request, is_there
from ui.words.extremes import equals
from ui.words.head_names import marks_note, marks_of, with_names
from ui.words.literal import literal

N_RANKED = 8
_TALLEST = 12
"""Most layers whose list of effects is as tall as the column beside it."""


def pick(layer: int, head: int) -> None:
    """Selects a head, here and on every page."""
    state.change(layer=layer, head=head)


def controls(view: View) -> None:
    """One prompt or a set, what is measured, and what replaces a head's output."""
    check_can_run(view, "Heads off was asked for")
    prompts.choice()
    with st.container(horizontal=True, vertical_alignment="bottom", key="effects_controls"):
        if not prompts.is_set(view):
            outcome.controls(view, outcome.outcome_of(view))
        st.segmented_control(**widgets.field("ablation", required=True))
    references(AblatedRun(view=view))


def screen_of(view: View) -> Screen | None:
    """The effects of all heads; None until they are known."""
    screen = Screen(view=view, outcome=outcome.outcome_of(view))
    return None if ablated(screen, screen.ablation, key="ablation") is None else screen


def references(run: AblatedRun) -> None:
    """The sentences whose mean replaces a head's output, if means are selected."""
    if run.ablation == "mean":
        st.text_area(**widgets.field("references", height=68, placeholder="The bundled sentences"))


def means_are_there(run: AblatedRun, ablation: Ablation, *, key: str, request: Request | None = None) -> bool:
    """Whether the replacement of a head's output is known; arguments as in `ablated`."""
    reads = "Reading the reference sentences"
    return ablation == "zero" or is_there(
        run.means_job(), run.n_means(), reads, key=f"{key}_means_act", request=request
    )


def ablated(
    screen: Screen, ablation: Ablation, *, key: str, request: Request | None = None
) -> HeadEffects | None:
    """The effect of every head; None until known, while the layers so far are drawn.

    Args:
        key: of its buttons.
        request: starts a long computation; None for one that begins by itself.
    """
    if not means_are_there(screen, ablation, key=key, request=request):
        return None
    work = screen.ablation_job(ablation)

    def so_far() -> None:
        if request is None and (effects := joined(work)) is not None:
            grid(screen, effects)
            st.caption(f"{len(known(effects.heads))} of {len(screen.heads)} heads so far.")

    n_tokens, sentence = screen.n_tokens(len(screen.heads)), "Switching off every head"
    if not is_there(work, n_tokens, sentence, key=f"{key}_act", request=request, result=so_far):
        return None
    return joined(work)


def finding(screen: Screen) -> str:
    """Which head has the largest effect, and the outcome without the selected head, as Markdown."""
    effects, selected = screen.effects, screen.view.selection.place
    largest = largest_effect(effects)
    if largest is None:
        return f"No head changes the outcome, {number_text(effects.base)}"
    changed = outcome.change(screen.outcome, screen.view.trace.last_tokens, largest.before, largest.after)
    without = float(effects.heads[selected])
    also = (
        ""
        if selected == largest.head or np.isnan(without)
        else f"; without {selected.short} {outcome.becomes(screen.outcome, without)}"
    )
    return f"Largest effect{equals(largest.n_equal)}: without {largest.head.words} {changed}{also}"


def grid(screen: Screen, effects: HeadEffects) -> None:
    """All heads, each with its effect."""
    names = known_names(screen.view)

    def text(place: Head) -> str:
        is_there = not np.isnan(effects.heads[place])
        return (
            with_names(said_of(effects, place), names, place)
            if is_there
            else f"{place.title}: not computed yet"
        )

    head_grid(
        [[text(place) for place in of_layer] for of_layer in by_layer(screen.heads)],
        name="Effect of switching off each head; select one",
        picked=screen.view.selection.place,
        on_pick=pick,
        theme=screen.view.theme,
        numbers=effects.effects,
        signed=True,
        marks=marks_of(names, screen.heads),
        key="effects_grid",
    )
    if names is not None:
        st.caption(literal(marks_note(names)))


def said_of(effects: HeadEffects, head: Head) -> str:
    """The effect of a head that was switched off, and the outcome without it."""
    after = number_text(float(effects.heads[head]))
    return f"{head.title}: effect {signed_text(float(effects.effects[head]))}; outcome {after} without it"


def all_heads(screen: Screen) -> None:
    """All heads, and what their numbers mean."""
    grid(screen, screen.effects)
    st.caption(literal(note(screen)))


def beside(screen: Screen) -> None:
    """The heads with the largest effects, and all heads of each layer; a click selects."""
    ranking(screen)
    link_to("Together", label=f"See the attention of {screen.view.selection.place.words}")
    layers(screen)


def ranking(screen: Screen) -> None:
    """The heads with the largest effects; a click selects."""
    effects = screen.effects
    largest = max(float(np.nanmax(np.abs(effects.effects))), 1e-12)
    heads = effects.ranked()[:N_RANKED]
    st.markdown("**Largest effects**")
    ranked_list(
        [
            Row(
                text=head.title,
                amount=signed_text(float(effects.effects[head])),
                length=float(effects.effects[head]) / largest,
                picked=head == screen.view.selection.place,
            )
            for head in heads
        ],
        name="Heads with the largest effects; select one",
        on_pick=lambda row: pick(*heads[row]),
        theme=screen.view.theme,
        key="effects_ranking",
    )


def layers_job(screen: Screen) -> Job:
    """The job that switches off all heads of each layer."""

    def calls() -> list[Call]:
        named = {"kind": screen.view.kind, "means": screen.means(screen.ablation), **TELLS_PROGRESS}
        return [(jobs.ablate_layers, screen.given, named)]

    return screen.job("layers", screen.of_ablation(screen.ablation), calls)


def layers(screen: Screen) -> None:
    """The effect of all heads of each layer."""
    st.markdown("**All heads of a layer off**")
    work = layers_job(screen)
    if not is_there(
        work,
        screen.n_tokens(screen.n_layers),
        "Switching off all heads of each layer",
        key="layers_act",
        request=screen.request(f"Switch off {counted(screen.n_layers, 'layer')}", "layers", screen.ablation),
    ):
        return
    effects: LayerEffects = work.results[0]
    largest = max(float(np.abs(effects.effects).max()), 1e-12)
    ranked_list(
        [
            Row(
                text=f"Layer {layer}",
                amount=signed_text(float(effect)),
                length=float(effect) / largest,
                picked=layer == screen.view.selection.layer,
            )
            for layer, effect in enumerate(effects.effects)
        ],
        name="Effect of all heads of each layer; select a layer",
        on_pick=lambda row: state.change(layer=row),
        theme=screen.view.theme,
        key="effects_layers",
        is_ranked=False,
        scrolls=len(effects.effects) > _TALLEST,
    )


def csv(screen: Screen) -> bytes:
    """The effects of all heads, and of whole layers once known."""
    work = layers_job(screen)
    return screen.effects.csv(work.results[0] if work.finished else None)


def means_words(run: AblatedRun) -> str:
    """Describes the means, for use within a sentence."""
    means = run.means("mean")
    assert means is not None
    own = bool(run.view.selection.of(EffectsSettings).references.strip())
    return mean_words(means.n_text, means.n_apart(run.view.kind), own=own)


def mean_words(n_text: int, n_apart: int, *, own: bool) -> str:
    """What the mean outputs are taken over.

    Args:
        n_apart: number of positions with their own mean.
    """
    which = counted(n_text, "own sentence" if own else "bundled sentence")
    where = f"the same position of {which}"
    if n_apart < 1:
        return f"its mean output over all positions of {which}"
    return f"its mean output at {where} (positions from {n_apart} on share one mean, each special token has its own)"


def note(screen: Screen) -> str:
    """What the numbers are relative to, and what they do not mean."""
    effects = screen.effects
    gives = "zeros" if effects.ablation == "zero" else means_words(screen)
    return (
        f"Each number is the outcome without the head minus the outcome of the unchanged run, {number_text(effects.base)}; "
        f"while it is off, its output is replaced by {gives}, and every later layer reads the changed hidden states. "
        "An effect near 0 does not mean that the head does nothing: another head may do the same, and another sentence or "
        "outcome may need it (Michel et al. 2019, arXiv:1905.10650)."
    )
