"""Ablation of a text's heads: its jobs and their results so far."""

from dataclasses import dataclass
from functools import cached_property, reduce

from attnviz.effects.ablation import Ablation, HeadEffects
from attnviz.effects.mean_outputs import MeanOutputs
from attnviz.maps.collection import bundled
from attnviz.records import Head
from ui.rooms.cause.heads_off import jobs
from ui.rooms.cause.heads_off.choices import EffectsSettings
from ui.rooms.cause.own_run import MeasuredRun, OwnRun
from ui.runtime.jobs import TELLS_PROGRESS, Call, Job, job

PARTS = 10
"""Number of calls that a text's layers are divided into; each result is shown as it arrives."""
MEAN_PARTS = 4
"""Number of calls that the reference sentences are divided into."""
_TOKEN = 4
"""Characters per token, roughly."""


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
            return [(jobs.means, (self.model, part), dict(TELLS_PROGRESS)) for part in parts]

        return job("means", (self.view.selection.source.model, texts), calls)

    def means(self, ablation: Ablation) -> MeanOutputs | None:
        """What replaces a head's output, once `means_job` has finished; None for zeros."""
        if ablation == "zero":
            return None
        parts: list[MeanOutputs] = self.means_job().results
        return reduce(MeanOutputs.joined, parts)

    def of_ablation(self, ablation: Ablation) -> tuple[object, ...]:
        """What the results of a way to switch heads off depend on, for the keys of jobs."""
        return (self.view.kind, ablation, self.references if ablation == "mean" else None)

    def n_means(self) -> int:
        """Cost of reading the reference sentences, in tokens of the bundled model."""
        return self.counted(sum(map(len, self.references)) // _TOKEN)


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

        def calls() -> list[Call]:
            named = {"kind": self.view.kind, "means": self.means(ablation), **TELLS_PROGRESS}
            step = -(-self.n_layers // PARTS)
            parts = [range(max(0, stop - step), stop) for stop in range(self.n_layers, 0, -step)]
            return [(jobs.ablate, self.given, named | {"layers": tuple(part)}) for part in parts]

        return self.job("ablation", self.of_ablation(ablation), calls)

    def n_tokens(self, n_variants: int) -> int:
        """Cost of so many variants of the text, in tokens of the bundled model."""
        of_text = len(self.view.trace.tokens) + len(self.view.trace.target_tokens or ())
        return self.counted(n_variants * of_text)


def joined(work: Job) -> HeadEffects | None:
    """The results of an ablation's calls so far, joined; None before the first has returned."""
    parts: list[HeadEffects] = [result for result in work.results if result is not None]
    return reduce(HeadEffects.joined, parts) if parts else None
