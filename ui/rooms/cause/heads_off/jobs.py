"""Switches off heads and masks cells, in worker processes."""

from collections.abc import Sequence

from attnviz.effects import ablation, cell_effects
from attnviz.effects.ablation import HeadEffects, LayerEffects, Removal
from attnviz.effects.cell_effects import CellEffects
from attnviz.effects.mean_outputs import MeanOutputs, mean_outputs
from attnviz.effects.outcome import measured, outcome_from
from attnviz.effects.prompts import PromptPair, prepared
from attnviz.model.model import Model
from attnviz.model.trace import Trace
from attnviz.records import Head, Kind, Progress
from ui.runtime import with_model


def means(name: str, texts: Sequence[str], *, progress: Progress) -> MeanOutputs:
    """The mean outputs of every head over some texts, as `attnviz.effects.mean_outputs.mean_outputs`."""
    return mean_outputs(with_model.own(name), texts, progress=progress)


def ablate(
    name: str,
    trace: Trace,
    outcome: str,
    *,
    kind: Kind,
    means: MeanOutputs | None,
    layers: Sequence[int],
    progress: Progress,
) -> HeadEffects:
    """The outcome without each head of some layers, as `attnviz.effects.ablation.ablate_heads`."""
    model = with_model.own(name)
    return ablation.ablate_heads(
        model,
        trace,
        measured(model, trace, outcome_from(outcome)),
        kind=kind,
        means=means,
        layers=layers,
        progress=progress,
    )


def ablate_layers(
    name: str,
    trace: Trace,
    outcome: str,
    *,
    kind: Kind,
    means: MeanOutputs | None,
    progress: Progress,
) -> LayerEffects:
    """The outcome without all heads of each layer, as `attnviz.effects.ablation.ablate_layers`."""
    model = with_model.own(name)
    measure = measured(model, trace, outcome_from(outcome))
    return ablation.ablate_layers(model, trace, measure, kind=kind, means=means, progress=progress)


def remove(
    name: str,
    trace: Trace,
    outcome: str,
    heads: Sequence[Head],
    *,
    kind: Kind,
    means: MeanOutputs | None,
    greedily: bool,
    progress: Progress,
) -> Removal:
    """The outcome while more and more heads are off, in the given or in the greedy order."""
    model = with_model.own(name)
    take = ablation.remove_greedily if greedily else ablation.remove_in_order
    return take(
        model,
        trace,
        measured(model, trace, outcome_from(outcome)),
        heads,
        kind=kind,
        means=means,
        progress=progress,
    )


def mask_cells(
    name: str,
    trace: Trace,
    outcome: str,
    head: Head,
    *,
    kind: Kind,
    seed: int,
    progress: Progress,
) -> CellEffects:
    """The outcome without each cell of a head, as `attnviz.effects.cell_effects.mask_cells`."""
    model = with_model.own(name)
    measure = measured(model, trace, outcome_from(outcome))
    return cell_effects.mask_cells(model, trace, measure, *head, kind=kind, seed=seed, progress=progress)


def ablate_pair(
    model: Model, pair: PromptPair, means: MeanOutputs | None, *, progress: Progress
) -> HeadEffects:
    """The outcome of the clean prompt without each head."""
    clean, _, measure = prepared(model, pair)
    return ablation.ablate_heads(model, clean, measure, means=means, progress=progress)
