"""Which function draws which result: the one table that `attnviz.records.Result.figure` looks up.

Results are named, since importing the effects would import torch.
"""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from plotly import graph_objects as go

from attnviz.arguments import typed
from attnviz.errors import SelectionError
from attnviz.figures import ablation, answers, heads, infilling, inputs, lens, needle, patching
from attnviz.figures.comparison import Part, draw_comparison
from attnviz.figures.heatmap import draw_pattern
from attnviz.figures.pair import draw_pair, draw_score_sources
from attnviz.figures.projection import draw_projection
from attnviz.figures.theme import ThemeName
from attnviz.figures.verification import draw_errors
from attnviz.heads.comparison import Comparison
from attnviz.heads.head_statistics import STATISTICS
from attnviz.heads.similarity import Divergences
from attnviz.heads.tables import HeadChanges, HeadTable
from attnviz.records import WEIGHTS, Result, VerificationReport

if TYPE_CHECKING:
    from attnviz.effects.ablation import Removal
    from attnviz.effects.alti_logit import AltiLogit
    from attnviz.effects.attribution_methods import AttributionMethod
    from attnviz.effects.context_mixing import ContextMixing
    from attnviz.effects.decompx import DecompX
    from attnviz.effects.input_attribution import Attributions, InputAttribution
    from attnviz.effects.over_pairs import MeanDirectEffects, MeanHeadEffects, MeanPatches


def _comparison(comparison: Comparison, *, part: Part = "difference", **options: Any) -> go.Figure:
    return draw_comparison(comparison, part, **options)


def _report(report: VerificationReport, *, check: str = WEIGHTS, **options: Any) -> go.Figure:
    return draw_errors(report.check(check), **options)


def _divergences(divergences: Divergences, **options: Any) -> go.Figure:
    return heads.draw_head_map(divergences.map(), heads=divergences.heads, **options)


def _removal(removal: "Removal", **options: Any) -> go.Figure:
    return ablation.draw_removal([("heads", removal)], **options)


def _attribution(attribution: "InputAttribution", **options: Any) -> go.Figure:
    return inputs.draw_attributions([attribution], **options)


def _split(found: "AltiLogit | DecompX", *, method: "AttributionMethod", **options: Any) -> go.Figure:
    from attnviz.effects.input_attribution import InputAttribution  # torch is there, where the result is

    attribution = InputAttribution(method=method, tokens=found.tokens, values=found.values)
    return inputs.draw_attributions([attribution], **options)


def _attributions(attributions: "Attributions", **options: Any) -> go.Figure:
    return inputs.draw_attributions(attributions.methods, **options)


def _mixing(mixing: "ContextMixing", *, layer: int | None = None, **options: Any) -> go.Figure:
    return draw_pattern(mixing.pattern(layer), **options)


def _statistics(table: HeadTable, *, name: str | None = None, text: int = 0, **options: Any) -> go.Figure:
    shown = name or table.names[0]
    numbers = table.of(shown, text)
    top = 1.0 if STATISTICS[shown].unit == "share" else float(np.nanmax(numbers))
    return heads.draw_heads(numbers, what=STATISTICS[shown].title, span=(0.0, top), **options)


def _changes(changes: HeadChanges, **options: Any) -> go.Figure:
    return heads.draw_heads(changes.changes, what="share of attention that differs", **options)


def _mean_heads(effects: "MeanHeadEffects", **options: Any) -> go.Figure:
    return ablation.draw_head_effects(effects.mean, **options)


def _mean_patches(effects: "MeanPatches", **options: Any) -> go.Figure:
    return patching.draw_patching(effects.mean, spread=effects.changes.spread, **options)


def _mean_parts(effects: "MeanDirectEffects", **options: Any) -> go.Figure:
    return lens.draw_layer_parts(effects.mean, over=effects, **options)


FIGURES: Mapping[str, Callable[..., go.Figure]] = MappingProxyType(
    {
        "attnviz.effects.ablation.HeadEffects": ablation.draw_head_effects,
        "attnviz.effects.ablation.LayerEffects": ablation.draw_layer_effects,
        "attnviz.effects.ablation.Removal": _removal,
        "attnviz.effects.alti_logit.AltiLogit": partial(_split, method="alti_logit"),
        "attnviz.effects.cell_effects.CellEffects": ablation.draw_cell_effects,
        "attnviz.effects.context_mixing.ContextMixing": _mixing,
        "attnviz.effects.decompx.DecompX": partial(_split, method="decompx"),
        "attnviz.effects.deletion.Deletion": inputs.draw_deletion,
        "attnviz.effects.input_attribution.Attributions": _attributions,
        "attnviz.effects.input_attribution.InputAttribution": _attribution,
        "attnviz.effects.lens.FollowedTokens": lens.draw_followed,
        "attnviz.effects.lens.LayerSimilarities": lens.draw_layer_similarities,
        "attnviz.effects.lens.Lens": lens.draw_lens,
        "attnviz.effects.logit_attribution.DirectParts": lens.draw_layer_parts,
        "attnviz.effects.needle.HeadsOff": needle.draw_heads_off,
        "attnviz.effects.needle.NeedleHeads": needle.draw_needle,
        "attnviz.effects.over_pairs.MeanDirectEffects": _mean_parts,
        "attnviz.effects.over_pairs.MeanHeadEffects": _mean_heads,
        "attnviz.effects.over_pairs.MeanPatches": _mean_patches,
        "attnviz.effects.patching.PatchEffects": patching.draw_patching,
        "attnviz.effects.row_shuffle.ShuffledHeads": ablation.draw_shuffled_heads,
        "attnviz.effects.row_shuffle.ShuffledRow": ablation.draw_shuffled_row,
        "attnviz.effects.score_sources.ScoreSources": draw_score_sources,
        "attnviz.heads.comparison.Comparison": _comparison,
        "attnviz.heads.reach.BinnedShares": heads.draw_binned_shares,
        "attnviz.heads.score.Score": draw_pair,
        "attnviz.heads.tables.HeadChanges": _changes,
        "attnviz.heads.tables.HeadTable": _statistics,
        "attnviz.heads.similarity.Divergences": _divergences,
        "attnviz.model.answers.Predictions": answers.draw_predictions,
        "attnviz.model.continuation.Continuation": answers.draw_continuation,
        "attnviz.model.infilling.Infilling": infilling.draw_infilling,
        "attnviz.records.attention.AttentionPattern": draw_pattern,
        "attnviz.records.checks.Check": draw_errors,
        "attnviz.records.checks.VerificationReport": _report,
        "attnviz.records.points.Projection": draw_projection,
    }
)
"""By module and name of the result, whose subclasses are drawn as it is."""


@typed
def draw_result(result: Result, *, theme: ThemeName = "light", **options: Any) -> go.Figure:
    """The figure of a result.

    Args:
        options: of the function that `FIGURES` names.

    Raises:
        SelectionError: there is no figure of this kind of result.
    """
    for kind in type(result).__mro__:
        if (draw := FIGURES.get(f"{kind.__module__}.{kind.__qualname__}")) is not None:
            return draw(result, theme=theme, **options)
    raise SelectionError(
        f"A figure of {type(result).__name__} was asked for; attnviz draws none. Take its frame()."
    )
