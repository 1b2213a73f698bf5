"""Experiments on a model, as worker processes make them: outcomes while heads are off, cells masked, states carried over.

Outcomes are given as `attnviz.effects.outcome.outcome_from` reads them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnviz.effects import ablation, cell_effects, patching
from attnviz.effects import lens as logit_lens
from attnviz.effects.ablation import HeadEffects, LayerEffects, Removal
from attnviz.effects.attribution_patching import attribute_patches as by_gradient
from attnviz.effects.cell_effects import CellEffects
from attnviz.effects.copying import copying_scores
from attnviz.effects.deletion import Deletion, RandomOrders, deletion_curves, random_orders
from attnviz.effects.input_attribution import AttributionMethod, InputAttribution, attribute_inputs
from attnviz.effects.logit_attribution import DirectEffects, DirectParts, attribute_state, attribute_token
from attnviz.effects.mean_outputs import MeanOutputs, mean_outputs
from attnviz.effects.outcome import MeasuredOutcome, TokenAnswer, measured, outcome_from, own_answer
from attnviz.effects.patching import Carried, PatchEffects, PathEnd
from attnviz.effects.path_patching import patch_paths
from attnviz.effects.prompts import PromptPair, outcome_of_pair, prepared
from attnviz.effects.score_sources import ScoreSources, score_sources
from attnviz.errors import (
    EmptyTextError,
    InvalidTextError,
    SelectionError,
    ShapeError,
    TextTooLongError,
    UnsupportedArchitectureError,
)
from attnviz.model.continuation import Continuation, Told, continue_text
from attnviz.model.model import Model
from attnviz.model.trace import Trace
from attnviz.records import Head, Kind, Progress, Tokens
from ui.work import with_model


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
    """The outcome while more and more heads are off, in this order or in the greedy one."""
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


def of_line(
    name: str, line: int, experiment: Callable[..., Any], pair: PromptPair, *given: Any, progress: Progress
) -> Any:
    """What an experiment finds of a pair of a set of prompts; a sentence where it cannot be made on it."""
    try:
        return experiment(with_model.own(name), pair, *given, progress=progress)
    except (EmptyTextError, InvalidTextError, SelectionError, ShapeError, TextTooLongError) as error:
        return f"Line {line}: {error}"


def patch_pair(model: Model, pair: PromptPair, patches: Patches, *, progress: Progress) -> PatchEffects:
    """The outcome of the clean prompt with one state of the corrupted one at a time."""
    return _patched(model, *prepared(model, pair), patches, progress=progress)


def ablate_pair(
    model: Model, pair: PromptPair, means: MeanOutputs | None, *, progress: Progress
) -> HeadEffects:
    """The outcome of the clean prompt without each head."""
    clean, _, measure = prepared(model, pair)
    return ablation.ablate_heads(model, clean, measure, means=means, progress=progress)


def attribute_pair(model: Model, pair: PromptPair, *, progress: Progress) -> DirectParts:
    """What each part adds directly to the outcome of the clean prompt."""
    clean, _, _ = prepared(model, pair)
    answer = outcome_of_pair(model, clean, pair)
    progress(0.5)
    return attribute_token(model, clean, answer.position, answer.token, against=answer.against)


def attribute_patches(name: str, receiver: Read, donor: Read, outcome: str, patches: Patches) -> PatchEffects:
    """The same to first order, as `attnviz.effects.attribution_patching.attribute_patches`."""
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


def lens(name: str, trace: Trace) -> logit_lens.Lens | logit_lens.LayerSimilarities:
    """What the model would answer after each layer; without a language head, how near each layer's vectors are to the last."""
    model = with_model.own(name)
    read_out = logit_lens.layer_similarities if model.head is None else logit_lens.lens
    return read_out(model, trace)


def follow(name: str, trace: Trace, position: int, tokens: Sequence[str]) -> logit_lens.FollowedTokens:
    """How likely some tokens are after each layer, as `attnviz.effects.lens.follow_tokens`."""
    return logit_lens.follow_tokens(with_model.own(name), trace, position, tokens)


def direct_effects(
    name: str, trace: Trace, position: int, outcome: str
) -> tuple[TokenAnswer | None, DirectEffects]:
    """What each part of the model adds to the outcome where that is an answer, and otherwise to its own answer at a token.

    Where there is no language head, one that is not linear (BERT's), or an own answer that the vocabulary has no entry for, to
    the length of the last hidden state, with None.
    """
    model = with_model.own(name)
    if model.head is not None:
        asked = outcome_from(outcome) if outcome else None
        answer = asked if isinstance(asked, TokenAnswer) else own_answer(model, trace, position)
        assert answer is not None  # there is a language head, and a position
        position = answer.place(len(trace.last_tokens))
        try:
            return answer, attribute_token(model, trace, position, answer.token, against=answer.against)
        except (SelectionError, UnsupportedArchitectureError) as error:
            if answer is asked and isinstance(error, SelectionError):
                raise
            # the state's parts say why where they are not known either
    return None, attribute_state(model, trace, position)


def split_score(name: str, trace: Trace, head: Head, query: int, key: int, *, kind: Kind) -> ScoreSources:
    """A score by the sources of its query and key, as `attnviz.effects.score_sources.score_sources`."""
    return score_sources(with_model.own(name), trace, *head, query, key, kind=kind)


def copy_scores(name: str, *, progress: Progress) -> np.ndarray:
    """The copying score of every head [layer, head], as `attnviz.effects.copying.copying_scores`."""
    return copying_scores(with_model.own(name), progress=progress)


def attribute(
    name: str,
    trace: Trace,
    outcome: str,
    method: AttributionMethod,
    *,
    part: tuple[int, int] = (0, 1),
    progress: Progress,
) -> InputAttribution:
    """How much each token counts by one method, as `attnviz.effects.input_attribution.attribute_inputs`."""
    model = with_model.own(name)
    (attribution,) = attribute_inputs(
        model, trace, outcome_from(outcome), methods=[method], part=part, progress=progress
    )
    return attribution


def delete_at_random(
    name: str, trace: Trace, outcome: str, *, seed: int, part: tuple[int, int], progress: Progress
) -> RandomOrders:
    """The outcome while tokens are taken away in a part of the random orders, as `attnviz.effects.deletion.random_orders`."""
    return random_orders(
        with_model.own(name), trace, outcome_from(outcome), seed=seed, part=part, progress=progress
    )


def delete(
    name: str,
    trace: Trace,
    outcome: str,
    attributions: Sequence[InputAttribution],
    chance: RandomOrders,
    *,
    progress: Progress,
) -> Deletion:
    """The outcome while tokens are taken away in each method's order, as `attnviz.effects.deletion.deletion_curves`."""
    return deletion_curves(
        with_model.own(name), trace, outcome_from(outcome), attributions, chance, progress=progress
    )


def write(
    name: str,
    read: Tokens,
    *,
    n_tokens: int,
    temperature: float,
    seed: int,
    picks: Mapping[int, int],
    progress: Told,
) -> Continuation:
    """What a decoder writes after some tokens, with the attention of every step; each token is told as it is written."""
    return continue_text(
        with_model.own(name),
        read,
        n_tokens=n_tokens,
        temperature=temperature,
        seed=seed,
        picks=picks,
        progress=progress,
    )
