"""Patches states, in worker processes."""

from collections.abc import Sequence

from attnviz.effects import patching
from attnviz.effects.attribution_patching import attribute_patches as by_gradient
from attnviz.effects.outcome import MeasuredOutcome, measured, outcome_from
from attnviz.effects.patching import PatchEffects
from attnviz.effects.path_patching import patch_paths
from attnviz.effects.prompts import PromptPair, prepared
from attnviz.model.model import Model
from attnviz.model.trace import Trace
from attnviz.records import Progress
from ui.runtime import with_model
from ui.runtime.patches import Patches, Read


def patch(
    name: str,
    receiver: Read,
    donor: Read,
    outcome: str,
    patches: Patches,
    *,
    rows: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> PatchEffects:
    """The outcome with one state of another text patched in at a time."""
    model = with_model.own(name)
    first, second = (model.trace_tokens(*tokens) for tokens in (receiver, donor))
    measure = measured(model, first, outcome_from(outcome))
    return _patched(model, first, second, measure, patches, rows=rows, progress=progress)


def _patched(
    model: Model,
    receiver: Trace,
    donor: Trace,
    measure: MeasuredOutcome,
    patches: Patches,
    *,
    rows: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> PatchEffects:
    given = model, receiver, donor, measure
    if patches.end is not None:
        return patch_paths(*given, patches.end, position=patches.position, layers=rows, progress=progress)
    return patching.patch(
        *given,
        carried=patches.carried,
        kind=patches.kind,
        layer=patches.layer,
        position=patches.position,
        rows=rows,
        progress=progress,
    )


def patch_pair(model: Model, pair: PromptPair, patches: Patches, *, progress: Progress) -> PatchEffects:
    """The outcome of the clean prompt with one state of the corrupted prompt patched in at a time."""
    return _patched(model, *prepared(model, pair), patches, progress=progress)


def attribute_patches(name: str, receiver: Read, donor: Read, outcome: str, patches: Patches) -> PatchEffects:
    """First-order estimate of `patch`, as `attnviz.effects.attribution_patching.attribute_patches`."""
    model = with_model.own(name)
    first, second = (model.trace_tokens(*tokens) for tokens in (receiver, donor))
    return by_gradient(
        model,
        first,
        second,
        measured(model, first, outcome_from(outcome)),
        carried=patches.carried,
        kind=patches.kind,
        layer=patches.layer,
        position=patches.position,
    )
