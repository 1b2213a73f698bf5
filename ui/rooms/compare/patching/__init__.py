"""Where does the difference between two sentences lie? States of one run carried into the other."""

from dataclasses import dataclass
from functools import partial

import streamlit as st
from plotly.graph_objects import Figure

from attnviz.effects.over_pairs import MeanPatches, mean_patches
from attnviz.effects.patches import Patches, patch_pair
from attnviz.effects.patching import PatchEffects
from attnviz.effects.prompts import PromptSet
from attnviz.figures.numbers import counted, percent_text
from attnviz.figures.patching import DIFFERS, draw_patching
from ui.part import Part, Picture, Row, Sheet
from ui.rooms.cause import prompts
from ui.rooms.cause.own_run import check_can_run
from ui.rooms.cause.prompts import SetRun
from ui.rooms.compare.patching.shares import finding, gradient, largest_share, shares, show, so_far
from ui.rooms.compare.patching.two_texts import (
    Screen,
    carried_controls,
    controls,
    patches_of,
    text_of_donor,
    two_texts,
    without_donor,
)
from ui.shell.export.recipe import call, named, read, set_lines, trace_lines, unless
from ui.shell.view import View
from ui.shell.waiting import is_there
from ui.words.literal import literal


def choice(view: View) -> None:
    """One sentence or a set of prompts, and what is patched."""
    check_can_run(view, "Patching was asked for")
    prompts.choice()
    if prompts.is_set(view):
        carried_controls(view)
    else:
        controls(view)


def screen_of(view: View) -> Screen | None:
    """The two sentences, once every state is patched; until then those so far, or what to do for a sentence B."""
    if not text_of_donor(view):
        without_donor(view)
        return None
    screen, work = (made := two_texts(view)), made.patching_job()
    is_done = is_there(
        work, screen.n_tokens, "Patching states", key="patching_act", result=partial(so_far, screen)
    )
    return screen if is_done else None


@dataclass(frozen=True, slots=True, kw_only=True)
class OverSet:
    """States patched in every pair of a set of prompts, and their mean over the pairs."""

    view: View
    run: SetRun[PatchEffects]
    mean: MeanPatches


def set_of(view: View) -> OverSet | None:
    """The mean over all pairs; None until all are done, while the mean so far is drawn, or if the model has no answers."""
    pairs, patches = prompts.table(view), patches_of(view)
    if pairs is None:
        return None
    run = prompts.set_run(view, pairs, patch_pair, patches, lambda: (patches,))

    def made() -> OverSet:
        return OverSet(view=view, run=run, mean=mean_patches([*run.results.values()]))

    return made() if run.is_done("Patching", lambda: _draw(made(), key="patching_so_far")) else None


def _draw(screen: OverSet, *, key: str) -> Figure:
    mean = screen.mean
    drawn = draw_patching(mean.mean, spread=mean.changes.spread, theme=screen.view.theme)
    of = f"Mean over {counted(mean.changes.n_pair, 'pair')} of prompts with each state swapped in"
    show(drawn, mean.mean, key=key, of=of)
    return drawn


def shares_of_set(screen: OverSet) -> Figure:
    """The mean over the pairs, with its spread in the hover texts."""
    drawn = _draw(screen, key="patching_shares")
    st.caption(note_of_set(screen.run, screen.mean))
    return drawn


def note_of_set(run: SetRun[PatchEffects], patches: MeanPatches) -> str:
    """What is measured and averaged, and which lines are left out."""
    sentences = [
        prompts.outcome_words({"clean": patches.clean, "corrupted": patches.corrupted}),
        "States of the corrupted prompt are swapped into the clean one. Shares are of the mean difference.",
    ]
    if patches.mean.columns == "token":
        sentences.append("Columns have the tokens of the first pair.")
    return literal(" ".join([*sentences, *run.refused]))


def finding_of_set(run: SetRun[PatchEffects], patches: MeanPatches) -> str:
    """Which state moves the outcome most on average, and how much it varies between pairs."""
    mean, changes = patches.mean, patches.changes
    over = f"mean over {counted(changes.n_pair, 'pair')}"
    if (largest := largest_share(mean)) is not None and changes.n_pair > 1:
        spread = float(changes.spread[largest.row, largest.column]) / abs(mean.donor - mean.base)
        over += f", standard deviation {percent_text(spread)}"
    return f"{finding(run.tokens, mean)} ({over})"


def patching_lines(view: View, outcome: object, text: str, patches: Patches) -> str:
    """Python that patches states from one text into another, as on the page Patching, and draws the shares."""
    is_to_head = patches.end is not None and patches.end.head is not None
    kind = call(kind=view.selection.kind and view.kind) if patches.end is None else ""
    function, module, given = _called(patches, kind)
    return "\n".join(
        [
            "import attnviz",
            "from attnviz.effects.outcome import measured, outcome_from",
            *(["from attnviz.effects.patching import PathEnd"] if patches.end else []),
            f"from attnviz.effects.{module} import {function}",
            *(["from attnviz.records import Head"] if is_to_head else []),
            *trace_lines(view),
            f"donor = model.trace({read(view, text)})",
            f"outcome = measured(model, trace, outcome_from({str(outcome)!r}))",
            f"patched = {function}(model, trace, donor, outcome{given})",
            "patched.figure().show()",
            "",
        ]
    )


def patched_set_lines(view: View, pairs: PromptSet, patches: Patches) -> str:
    """Python that patches every pair of a set, as on the page Patching, and draws the mean."""
    function, module, given = _called(patches)
    return "\n".join(
        [
            "import attnviz",
            "from attnviz.effects.over_pairs import mean_patches",
            *(["from attnviz.effects.patching import PathEnd"] if patches.end else []),
            f"from attnviz.effects.{module} import {function}",
            "from attnviz.effects.prompts import checked_prompts, prepared, read_prompts",
            *(["from attnviz.records import Head"] if patches.end else []),
            *set_lines(view, pairs),
            f"patched = [{function}(model, *prepared(model, pair){given}) for pair in prompts.pairs]",
            "mean_patches(patched).figure().show()",
            "",
        ]
    )


def _called(patches: Patches, kind: str = "") -> tuple[str, str, str]:
    """The function that patches, its module, and its arguments after the texts and the outcome."""
    places = {"layer": patches.layer, "position": patches.position}
    at = named({name: place for name, place in places.items() if place is not None})
    if patches.end is None:
        given = [kind, call(carried=unless("layer", patches.carried)), at]
        return "patch", "patching", "".join(f", {each}" for each in given if each)
    head = patches.end.head
    end = f"PathEnd({'' if head is None else f'head=Head{tuple(head)}, role={patches.end.role!r}'})"
    return "patch_paths", "path_patching", "".join(f", {each}" for each in (end, at) if each)


_CELLS = f"cell colour: share of the difference in outcome, or its change where no difference can be shared; {DIFFERS}: the sentences differ"
_BY_GRADIENT = f"cell colour: the same to first order, gradient × difference of the states; {DIFFERS}: the sentences differ"

PART = Part(
    name="Patching",
    address="patching",
    question="Where does the difference between two sentences lie?",
    terms=(
        "Activation patching",
        "Path patching",
        "Attribution patching",
        "Residual stream",
        "Outcome",
        "Head",
    ),
    sheets=(
        Sheet(
            when=prompts.is_set,
            controls=choice,
            screen=set_of,
            finding=lambda screen: literal(finding_of_set(screen.run, screen.mean)),
            rows=(Picture("patching_shares", "Shares of the mean difference", _CELLS, shares_of_set),),
            numbers="Changes over the pairs",
            csv=lambda screen: screen.mean.csv(screen.run.pairs),
            python=lambda screen: patched_set_lines(screen.view, screen.run.prompts, patches_of(screen.view)),
            about=lambda screen: f"mean over {counted(screen.mean.changes.n_pair, 'pair')} of prompts",
        ),
        Sheet(
            controls=choice,
            screen=screen_of,
            finding=lambda screen: literal(finding(screen.tokens[0], screen.shares)),
            rows=(
                Row(
                    Picture("patching_shares", "Shares of the difference", _CELLS, shares),
                    Picture("patching_gradient", "By gradient", _BY_GRADIENT, gradient),
                ),
            ),
            numbers="Shares",
            csv=lambda screen: screen.shares.csv(screen.estimate),
            python=lambda screen: patching_lines(
                screen.view, screen.outcome, text_of_donor(screen.view), screen.patches
            ),
            about=lambda screen: (
                f"states swapped in from: {text_of_donor(screen.view)}; outcome: {screen.measured}"
            ),
        ),
    ),
)
