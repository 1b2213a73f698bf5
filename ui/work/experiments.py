"""Experiments on a model, as worker processes make them: outcomes while heads are off, cells masked, states carried over.

Outcomes are given as `attnviz.effects.outcome.outcome_from` reads them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from cachetools import LRUCache, cached

from attnviz.effects import ablation, cell_effects, patching
from attnviz.effects import lens as logit_lens
from attnviz.effects.ablation import Ablation, HeadEffects, Means, Removal
from attnviz.effects.attribution_patching import attribute_patches as by_gradient
from attnviz.effects.cell_effects import CellEffects
from attnviz.effects.copying import copying_scores
from attnviz.effects.deletion import Deletion, deletion_curves
from attnviz.effects.input_attribution import InputAttribution, attribute_inputs
from attnviz.effects.logit_attribution import DirectEffects, attribute_state, attribute_token
from attnviz.effects.outcome import measured, outcome_from
from attnviz.effects.patching import Carried, PatchEffects, PathEnd
from attnviz.effects.path_patching import patch_paths
from attnviz.effects.prompts import PromptPair, prepared
from attnviz.effects.score_sources import ScoreSources, score_sources
from attnviz.errors import (
    EmptyTextError,
    InvalidTextError,
    SelectionError,
    ShapeError,
    TextTooLongError,
    UnsupportedArchitectureError,
)
from attnviz.maps.collection import bundled
from attnviz.model.continuation import Continuation, continue_text
from attnviz.model.predictions import predict
from attnviz.model.trace import Trace
from attnviz.records import Head, Kind, Progress, Tokens
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
    progress: Progress,
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
    progress: Progress,
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
    progress: Progress,
) -> CellEffects:
    """The outcome without each cell of a head, as `attnviz.effects.cell_effects.mask_cells`."""
    model = with_model.own(name)
    measure = measured(model, trace, outcome_from(outcome))
    return cell_effects.mask_cells(model, trace, measure, *head, kind=kind, seed=seed, progress=progress)


Read = tuple[Tokens, Tokens | None]
"""What a model reads, and what its decoder reads where it has an encoder too. A trace would bring W_O of every layer along."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patches:
    """Which states are carried over, as arguments of `attnviz.effects.patching.patch`.

    Where there is an end, as those of `attnviz.effects.path_patching.patch_paths`.
    """

    kind: Kind
    carried: Carried
    layer: int | None = None
    position: int | None = None
    end: PathEnd | None = None


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
    """The outcome with one state of another text at a time."""
    model = with_model.own(name)
    first, second = (model.trace_tokens(*one) for one in (receiver, donor))
    given = model, first, second, measured(model, first, outcome_from(outcome))
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


def patch_pair(
    name: str, pair: PromptPair, line: int, patches: Patches, *, progress: Progress
) -> PatchEffects | str:
    """The same for a pair of a set of prompts; a sentence where the model cannot be patched with it."""
    model = with_model.own(name)
    try:
        given = model, *prepared(model, pair)
        if patches.end is not None:
            return patch_paths(*given, patches.end, position=patches.position, progress=progress)
        return patching.patch(
            *given,
            carried=patches.carried,
            kind=patches.kind,
            layer=patches.layer,
            position=patches.position,
            progress=progress,
        )
    except (EmptyTextError, InvalidTextError, SelectionError, ShapeError, TextTooLongError) as error:
        return f"Line {line}: {error}"


def attribute_patches(name: str, receiver: Read, donor: Read, outcome: str, patches: Patches) -> PatchEffects:
    """The same to first order, as `attnviz.effects.attribution_patching.attribute_patches`."""
    model = with_model.own(name)
    first, second = (model.trace_tokens(*one) for one in (receiver, donor))
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


def lens(name: str, trace: Trace) -> logit_lens.Lens | logit_lens.LayerSimilarities:
    """What the model would answer after each layer; without a language head, how near each layer's vectors are to the last."""
    model = with_model.own(name)
    look = logit_lens.layer_similarities if model.head is None else logit_lens.lens
    return look(model, trace)


def direct_effects(name: str, trace: Trace, position: int) -> tuple[str | None, DirectEffects]:
    """What each part of the model adds to the logit of its own answer at a token, with that answer.

    Where there is no language head, one that is not linear (BERT's), or an answer that the vocabulary has no entry for, to the
    length of the last hidden state, with None.
    """
    model = with_model.own(name)
    if model.head is not None:
        answer = model.name_of(int(predict(model, trace, position, top=1).ids[0]))
        try:
            return answer, attribute_token(model, trace, position, answer)
        except (SelectionError, UnsupportedArchitectureError):
            pass  # the state's parts say why where they are not known either
    return None, attribute_state(model, trace, position)


def split_score(name: str, trace: Trace, head: Head, query: int, key: int, *, kind: Kind) -> ScoreSources:
    """A score by the sources of its query and key, as `attnviz.effects.score_sources.score_sources`."""
    return score_sources(with_model.own(name), trace, *head, query, key, kind=kind)


def copy_scores(name: str, *, progress: Progress) -> np.ndarray:
    """The copying score of every head [layer, head], as `attnviz.effects.copying.copying_scores`."""
    return copying_scores(with_model.own(name), progress=progress)


def attribute(name: str, trace: Trace, outcome: str, *, progress: Progress) -> tuple[InputAttribution, ...]:
    """How much each token counts, as `attnviz.effects.input_attribution.attribute_inputs`."""
    return attribute_inputs(with_model.own(name), trace, outcome_from(outcome), progress=progress)


def delete(
    name: str,
    trace: Trace,
    outcome: str,
    attributions: Sequence[InputAttribution],
    *,
    seed: int,
    progress: Progress,
) -> Deletion:
    """The outcome while tokens are taken away, as `attnviz.effects.deletion.deletion_curves`."""
    return deletion_curves(
        with_model.own(name), trace, outcome_from(outcome), attributions, seed=seed, progress=progress
    )


def write(
    name: str,
    read: Tokens,
    *,
    n_tokens: int,
    temperature: float,
    seed: int,
    progress: Progress,
) -> tuple[Continuation, Trace]:
    """What a decoder writes after some tokens, and the trace of it all, which holds the attention of every step."""
    model = with_model.own(name)
    found = continue_text(
        model, read, n_tokens=n_tokens, temperature=temperature, seed=seed, progress=progress
    )
    return found, model.trace_tokens(found.tokens)
