"""How heads are switched off on a text, the jobs that do it, and Python that does the same."""

from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Annotated, Any

import streamlit as st

from attnviz.effects.ablation import (
    Ablation,
    HeadEffects,
    ablate,
    ablate_layers,
    remove_greedily,
    remove_in_order,
)
from attnviz.effects.cell_effects import mask_cells
from attnviz.effects.mean_outputs import MeanOutputs, mean_outputs
from attnviz.effects.prompts import PromptSet
from attnviz.figures.numbers import counted
from attnviz.maps.collection import bundled
from attnviz.records import Head
from ui.choice import widgets
from ui.choice.fields import Text, Word
from ui.choice.selection import choices
from ui.rooms.cause.own_run import MeasuredRun, OwnRun
from ui.runtime import with_model
from ui.runtime.jobs import TELLS_PROGRESS, Call, Job, job
from ui.shell.export.recipe import set_lines, trace_lines
from ui.shell.view import View
from ui.shell.waiting import Request, is_there

PARTS = 10
"""Number of calls that a text's layers are divided into; each result is shown as it arrives."""
MEAN_PARTS = 4
"""Number of calls that the reference sentences are divided into."""
_TOKEN = 4
"""Characters per token, roughly."""


@choices
@dataclass(frozen=True, slots=True, kw_only=True)
class EffectsSettings:
    """How heads are switched off."""

    ablation: Annotated[
        Ablation,
        Word(
            names={"zero": "Zeros", "mean": "Mean"},
            title="Replace head output with",
            help="Replaces a head's output with zeros, or with its mean output at the same position of the reference sentences.",
        ),
    ] = "zero"
    references: Annotated[
        str,
        Text(
            title="Reference sentences, one per line",
            help="Takes the mean output of each head, position by position, over these sentences; over the bundled ones if empty.",
        ),
    ] = ""
    """Empty for the bundled sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AblatedRun(OwnRun):
    """A run with heads switched off, and what replaces their outputs."""

    @property
    def ablation(self) -> Ablation:
        """What replaces a head's output."""
        return self.view.selection.of(EffectsSettings).ablation

    @property
    def references(self) -> tuple[str, ...]:
        """The sentences over which a head's mean output is computed: the visitor's own, or the bundled ones."""
        written = self.view.selection.of(EffectsSettings).references
        return tuple(line for line in (written.strip() or bundled()).splitlines() if line.strip())

    def means_job(self) -> Job:
        """The job that computes the mean outputs of all heads over the reference sentences."""
        texts = self.references

        def calls() -> list[Call]:
            parts = [texts[first::MEAN_PARTS] for first in range(min(MEAN_PARTS, len(texts)))]
            return [(with_model.call, (mean_outputs, self.model, part), TELLS_PROGRESS) for part in parts]

        return job("means", (self.view.selection.source.model, texts), calls)

    def means(self, ablation: Ablation) -> MeanOutputs | None:
        """What replaces a head's output, once `means_job` has finished; None for zeros."""
        return None if ablation == "zero" else reduce(MeanOutputs.joined, self.means_job().results)

    def means_are_there(self, ablation: Ablation, *, key: str, request: Request | None = None) -> bool:
        """Whether what replaces a head's output is known; draws the progress until then.

        Args:
            key: of its buttons.
            request: starts a long computation; None for one that begins by itself.
        """
        n_tokens = self.counted(sum(map(len, self.references)) // _TOKEN)
        reads = "Reading the reference sentences"
        return ablation == "zero" or is_there(
            self.means_job(), n_tokens, reads, key=f"{key}_means_act", request=request
        )

    def means_words(self) -> str:
        """What the mean outputs are, within a sentence."""
        means = self.means("mean")
        assert means is not None
        own = bool(self.view.selection.of(EffectsSettings).references.strip())
        return mean_words(means.n_text, means.n_apart(self.view.kind), own=own)

    def of_ablation(self, ablation: Ablation) -> tuple[object, ...]:
        """What the results of a way to switch heads off depend on, for the keys of jobs."""
        return (self.view.kind, ablation, self.references if ablation == "mean" else None)


@dataclass(frozen=True, kw_only=True)  # without slots, for what is computed once
class Screen(MeasuredRun, AblatedRun):
    """The measured run of a text with heads switched off."""

    @cached_property
    def effects(self) -> HeadEffects:
        """The effect of every head, once `ablation_job` has finished."""
        effects = joined(self.ablation_job(self.ablation))
        assert effects is not None
        return effects

    @property
    def heads(self) -> tuple[Head, ...]:
        """Every head, layer by layer."""
        return self.view.trace.heads(self.view.kind)

    @property
    def n_layers(self) -> int:
        """Number of layers."""
        return self.view.trace.n_layers(self.view.kind)

    def ablation_job(self, ablation: Ablation) -> Job:
        """The job that switches off every head, starting with the last layers, which take least time."""
        step = -(-self.n_layers // PARTS)
        parts = [tuple(range(max(0, stop - step), stop)) for stop in range(self.n_layers, 0, -step)]
        return self.job(
            "ablation",
            self.of_ablation(ablation),
            lambda: [self.call(ablate, layers=part, **self._named(ablation)) for part in parts],
        )

    def layers_job(self) -> Job:
        """The job that switches off all heads of each layer."""
        key = self.of_ablation(self.ablation)
        return self.job("layers", key, lambda: [self.call(ablate_layers, **self._named(self.ablation))])

    def removal_job(self, heads: list[Head], *, greedily: bool) -> Job:
        """The job that switches off more and more heads, in the given or in the greedy order."""
        remove, of = (remove_greedily if greedily else remove_in_order), tuple(heads)
        return self.job(
            "removal",
            (*self.of_ablation(self.ablation), of, greedily),
            lambda: [self.call(remove, of, **self._named(self.ablation))],
        )

    def cells_job(self) -> Job:
        """The job that masks cells of the selected head."""
        kind, place, seed = self.view.kind, self.view.selection.place, self.view.selection.seed
        named = {"kind": kind, "seed": seed, **TELLS_PROGRESS}
        return self.job("cells", (kind, place, seed), lambda: [self.call(mask_cells, *place, **named)])

    def n_tokens(self, n_variants: int) -> int:
        """Cost of so many variants of the text, in tokens of the bundled model."""
        of_text = len(self.view.trace.tokens) + len(self.view.trace.target_tokens or ())
        return self.counted(n_variants * of_text)

    def _named(self, ablation: Ablation) -> dict[str, Any]:
        return {"kind": self.view.kind, "means": self.means(ablation), **TELLS_PROGRESS}


def joined(work: Job) -> HeadEffects | None:
    """The results of an ablation's calls so far, joined; None before the first has returned."""
    parts: list[HeadEffects] = [result for result in work.results if result is not None]
    return reduce(HeadEffects.joined, parts) if parts else None


def references(view: View) -> None:
    """The sentences whose mean replaces a head's output, if means are selected."""
    if view.selection.of(EffectsSettings).ablation == "mean":
        st.text_area(**widgets.field("references", height=68, placeholder="The bundled sentences"))


def mean_words(n_text: int, n_apart: int, *, own: bool) -> str:
    """What the mean outputs are taken over.

    Args:
        n_apart: number of positions with their own mean.
    """
    which = counted(n_text, "own sentence" if own else "bundled sentence")
    if n_apart < 1:
        return f"its mean output over all positions of {which}"
    return (
        f"its mean output at the same position of {which} (positions from {n_apart} on share one mean, each special token has its "
        "own)"
    )


def effects_lines(view: View, outcome: object = None, prompts: PromptSet | None = None) -> str:
    """Python that switches off every head on the text, or on every pair of a set, and lists the largest effects."""
    chosen = view.selection.of(EffectsSettings)
    own, is_mean = chosen.references.strip(), chosen.ablation == "mean"
    texts = repr(own.splitlines()) if own else "bundled().splitlines()"
    kind = f"kind={view.kind!r}" * bool(view.selection.kind and prompts is None)
    given = "".join(f", {argument}" for argument in (kind, "means=means" * is_mean) if argument)
    means = [f"means = mean_outputs(model, {texts})"] * is_mean
    of_means = ["from attnviz.effects.mean_outputs import mean_outputs"] * is_mean
    of_means += ["from attnviz.maps.collection import bundled"] * (is_mean and not own)
    lines = ["import attnviz", "from attnviz.effects.ablation import ablate"]
    if prompts is None:
        lines += [
            "from attnviz.effects.outcome import measured, outcome_from",
            *of_means,
            *trace_lines(view),
            f"outcome = measured(model, trace, outcome_from({str(outcome)!r}))",
            *means,
            f"effects = ablate(model, trace, outcome{given})",
            "for head in effects.ranked()[:8]:",
            "    print(head.words, effects.effects[head])",
        ]
    else:
        lines += [
            "from attnviz.effects.over_pairs import mean_head_effects",
            "from attnviz.effects.prompts import checked_prompts, prepared, read_prompts",
            *of_means,
            *set_lines(view, prompts),
            *means,
            "effects = []",
            "for pair in prompts.pairs:",
            "    clean, corrupted, outcome = prepared(model, pair)",
            f"    effects.append(ablate(model, clean, outcome{given}))",
            "over = mean_head_effects(effects)",
            "for head in over.mean.ranked()[:8]:",
            "    print(head.words, over.effects.mean[head], over.effects.spread[head])",
        ]
    return "\n".join([*lines, ""])
