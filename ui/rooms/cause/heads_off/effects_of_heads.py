"""The effect of every head as a grid and a ranking, of a sentence or as the mean over a set of prompts, and of whole layers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from attnviz.effects.ablation import Ablation, HeadEffects, LayerEffects
from attnviz.effects.over_pairs import MeanHeadEffects, OverPairs, ablate_pair, mean_head_effects, over_pairs
from attnviz.figures.numbers import counted, number_text, signed_text
from attnviz.records import Head, known
from ui.choice import state, widgets
from ui.components.ranked_list import Row, ranked_list
from ui.rooms.cause import outcome, prompts
from ui.rooms.cause.heads_off.shuffled_rows import shuffling
from ui.rooms.cause.heads_off.switched_off import AblatedRun, Screen, joined, references
from ui.rooms.cause.own_run import check_can_run
from ui.rooms.cause.prompts import SetRun
from ui.shell.heads import named_heads, ranked_heads
from ui.shell.navigation import link_to
from ui.shell.view import View
from ui.shell.waiting import Request, is_there
from ui.words.extremes import equals, places_of_largest

N_RANKED = 8
_TALLEST = 12
"""Most layers whose list of effects is as tall as the column beside it."""
_KEY = "effects_grid"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetScreen:
    """The effects of all heads, averaged over a set of prompts."""

    view: View
    run: SetRun[HeadEffects]
    mean: MeanHeadEffects


def controls(view: View) -> None:
    """One prompt or a set, what is measured, and what replaces a head's output."""
    check_can_run(view, "Heads off was asked for")
    prompts.choice()
    st.segmented_control(**widgets.field("ablation", required=True))
    if not prompts.is_set(view):
        outcome.controls(view, outcome.outcome_of(view))
    references(view)


def screen_of(view: View) -> Screen | None:
    """The effects of all heads; None until they are known."""
    screen = Screen(view=view, outcome=outcome.outcome_of(view))
    return None if ablated(screen, screen.ablation, key="ablation") is None else screen


def set_screen_of(view: View) -> SetScreen | None:
    """The mean over all pairs; None until all are done, while the mean so far is drawn, or if the model has no answers."""
    off, pairs = AblatedRun(view=view), prompts.table(view)
    if pairs is None or not off.means_are_there(off.ablation, key="ablation"):
        return None
    run = prompts.set_run(
        view, pairs, ablate_pair, off.of_ablation(off.ablation), lambda: (off.means(off.ablation),)
    )
    mean = run.mean(mean_head_effects, "Switching off every head on", lambda so_far: mean_grid(view, so_far))
    return None if mean is None else SetScreen(view=view, run=run, mean=mean)


def ablated(
    screen: Screen, ablation: Ablation, *, key: str, request: Request | None = None
) -> HeadEffects | None:
    """The effect of every head; None until known, while the layers so far are drawn; arguments as in `means_are_there`."""
    if not screen.means_are_there(ablation, key=key, request=request):
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


def all_heads(screen: Screen) -> None:
    """All heads, and what their numbers mean."""
    grid(screen, screen.effects, [note(screen)])


def grid(screen: Screen, effects: HeadEffects, notes: Sequence[str] = ()) -> None:
    """All heads, each with its effect."""
    named_heads(
        screen.view,
        effects.effects,
        lambda head: said_of(effects, head),
        name="Effect of switching off each head; select one",
        key=_KEY,
        signed=True,
        notes=notes,
    )


def said_of(effects: HeadEffects, head: Head) -> str:
    """The effect of a head, and the outcome without it."""
    if np.isnan(effects.heads[head]):
        return f"{head.title}: not computed yet"
    after = number_text(float(effects.heads[head]))
    return f"{head.title}: effect {signed_text(float(effects.effects[head]))}; outcome {after} without it"


def mean_heads(screen: SetScreen) -> None:
    """All heads with their means, and what the numbers mean."""
    mean_grid(screen.view, screen.mean, [set_note(screen)])


def mean_grid(view: View, mean: MeanHeadEffects, notes: Sequence[str] = ()) -> None:
    """All heads, each with its mean effect; the line below the grid adds the standard deviation."""
    named_heads(
        view,
        mean.effects.mean,
        lambda head: f"{head.title}: mean effect {prompts.mean_text(mean.effects, *head)}",
        name="Mean effect of switching off each head; select one",
        key=_KEY,
        signed=True,
        notes=notes,
    )


def beside(screen: Screen) -> None:
    """The heads with the largest effects, and all heads of each layer; a click selects."""
    ranking(screen.view, screen.effects, over_pairs([screen.effects.effects]))
    layers(screen)


def mean_beside(screen: SetScreen) -> None:
    """The heads with the largest mean effects; a click selects."""
    ranking(screen.view, screen.mean.mean, screen.mean.effects, mean="mean ")


def ranking(view: View, effects: HeadEffects, of_pairs: OverPairs, mean: str = "") -> None:
    """The heads with the largest effects; a click selects.

    Args:
        of_pairs: these effects on each pair; of a sentence, on itself.
        mean: "mean " for several pairs.
    """
    largest = max(float(np.nanmax(np.abs(of_pairs.mean))), 1e-12)
    st.markdown(f"**Largest {mean}effects**")
    ranked_heads(
        view,
        [
            (head, prompts.mean_text(of_pairs, *head), float(of_pairs.mean[head]) / largest)
            for head in effects.ranked()[:N_RANKED]
        ],
        name=f"Heads with the largest {mean}effects; select one",
        key="effects_ranking",
        text=lambda head: head.short if mean else head.title,  # the spread needs room
    )
    link_to("Together", label=f"See the attention of {view.selection.place.words}")


def layers(screen: Screen) -> None:
    """The effect of all heads of each layer."""
    st.markdown("**All heads of a layer off**")
    work = screen.layers_job()
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
    """The effects of all heads, and once known those of whole layers, and the rows shuffled."""
    layers, rows = (
        work.results[0] if work.finished else None for work in (screen.layers_job(), shuffling(screen))
    )
    return screen.effects.csv(layers, rows)


def largest_effect(effects: HeadEffects) -> tuple[Head, int] | None:
    """The head with the largest effect, up or down, and how many others have one as large.

    None if no head changes the outcome, or all outcomes are NaN.
    """
    places = places_of_largest(np.abs(effects.effects), number_text)
    return (Head(*places[0]), len(places) - 1) if places and effects.effects[places[0]] else None


def finding(screen: Screen) -> str:
    """Which head has the largest effect, and the outcome without the selected head, as Markdown."""
    effects, selected = screen.effects, screen.view.selection.place
    if (largest := largest_effect(effects)) is None:
        return f"No head changes the outcome, {number_text(effects.base)}"
    (head, n_equal), without = largest, float(effects.heads[selected])
    tokens = screen.view.trace.last_tokens
    changed = outcome.change(screen.outcome, tokens, effects.base, float(effects.heads[head]))
    also = f"; without {selected.short} {outcome.becomes(screen.outcome, without)}"
    is_told = selected == head or np.isnan(without)
    return f"Largest effect{equals(n_equal)}: without {head.words} {changed}{'' if is_told else also}"


def set_finding(screen: SetScreen) -> str:
    """Which head has the largest effect on average, and how much it varies between pairs, as Markdown."""
    mean, effects = screen.mean.mean, screen.mean.effects
    if (largest := largest_effect(mean)) is None:
        return f"No head changes the outcome, {number_text(mean.base)} ({prompts.over_words(effects.n_pair)})"
    (head, n_equal), after = largest, float(mean.heads[largest[0]])
    first, last = number_text(mean.base), number_text(after)
    how = f"{'falls' if after < mean.base else 'rises'} from {first} to {last}"
    return (
        f"Largest mean effect{equals(n_equal)}: without {head.words} the logit difference of the answers "
        f"{f'stays at {first}' if first == last else how} ({prompts.over_words(effects.n_pair, float(effects.spread[head]))})"
    )


def note(screen: Screen) -> str:
    """What the numbers are relative to, and what they do not mean."""
    gives = "zeros" if screen.ablation == "zero" else screen.means_words()
    return (
        f"Each number is the outcome without the head minus the outcome of the unchanged run, {number_text(screen.effects.base)}; "
        f"while it is off, its output is replaced by {gives}, and every later layer reads the changed hidden states. "
        "An effect near 0 does not mean that the head does nothing: another head may do the same, and another sentence or "
        "outcome may need it (Michel et al. 2019, arXiv:1905.10650)."
    )


def set_note(screen: SetScreen) -> str:
    """What the numbers are relative to, what they average, and which lines are left out."""
    off = AblatedRun(view=screen.view)
    gives = "zeros" if off.ablation == "zero" else off.means_words()
    sentences = [
        prompts.outcome_words({"clean": screen.mean.clean}),
        "Each number is the mean of the outcome of a clean prompt without the head minus that of the unchanged run; while a head "
        f"is off, its output is replaced by {gives}. Means of opposite effects cancel: a head with a mean near 0 and a large standard deviation matters in "
        "single pairs.",
    ]
    return " ".join([*sentences, *screen.run.refused])
