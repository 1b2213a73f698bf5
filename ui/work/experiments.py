"""Experiments on a model, as worker processes make them: outcomes while heads are off, cells masked, states carried over.

Outcomes are given as `attnviz.effects.outcome.outcome_from` reads them.
"""

from collections.abc import Sequence

from cachetools import LRUCache, cached

from attnviz.effects import ablation, cell_effects, patching
from attnviz.effects.ablation import Ablation, HeadEffects, Means, Progress, Removal
from attnviz.effects.cell_effects import CellEffects
from attnviz.effects.outcome import measured, outcome_from
from attnviz.effects.patching import Carried, PatchEffects
from attnviz.maps.collection import bundled
from attnviz.model.trace import Trace
from attnviz.records import Head, Kind
from ui.work import with_model


@cached(LRUCache(8), key=lambda name: name)
def _means_of(name: str) -> Means:
    """Mean output of every head over the bundled sentences."""
    return ablation.head_means(with_model.own(name), bundled().splitlines())


def _means(name: str, kind: Ablation) -> Means | None:
    return _means_of(name) if kind == "mean" else None


def ablate(
    name: str,
    trace: Trace,
    outcome: str,
    *,
    kind: Kind,
    ablation_kind: Ablation,
    layers: Sequence[int],
    progress: Progress | None = None,
) -> HeadEffects:
    """The outcome without each head of some layers, as `attnviz.effects.ablation.ablate_heads`."""
    model = with_model.own(name)
    return ablation.ablate_heads(
        model,
        trace,
        measured(model, trace, outcome_from(outcome)),
        kind=kind,
        means=_means(name, ablation_kind),
        layers=layers,
        progress=progress,
    )


def remove(
    name: str,
    trace: Trace,
    outcome: str,
    heads: Sequence[Head],
    *,
    kind: Kind,
    ablation_kind: Ablation,
    greedily: bool,
    progress: Progress | None = None,
) -> Removal:
    """The outcome while more and more heads are off, in this order or in the greedy one."""
    model = with_model.own(name)
    take = ablation.remove_greedily if greedily else ablation.remove_in_order
    return take(
        model,
        trace,
        measured(model, trace, outcome_from(outcome)),
        heads,
        kind=kind,
        means=_means(name, ablation_kind),
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
    progress: Progress | None = None,
) -> CellEffects:
    """The outcome without each cell of a head, as `attnviz.effects.cell_effects.mask_cells`."""
    model = with_model.own(name)
    measure = measured(model, trace, outcome_from(outcome))
    return cell_effects.mask_cells(model, trace, measure, *head, kind=kind, seed=seed, progress=progress)


def patch(
    name: str,
    receiver: Trace,
    donor: Trace,
    outcome: str,
    *,
    carried: Carried,
    kind: Kind,
    layer: int,
    rows: Sequence[int],
    progress: Progress | None = None,
) -> PatchEffects:
    """The outcome with one state of another text at a time, as `attnviz.effects.patching.patch`."""
    model = with_model.own(name)
    measure = measured(model, receiver, outcome_from(outcome))
    return patching.patch(
        model,
        receiver,
        donor,
        measure,
        carried=carried,
        kind=kind,
        layer=layer,
        rows=rows,
        progress=progress,
    )
