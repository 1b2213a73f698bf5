"""Facts for the findings of “Heads off”, before they are put into words."""

from dataclasses import dataclass

import numpy as np

from attnviz.effects.ablation import HeadEffects
from attnviz.effects.cell_effects import CellEffects
from attnviz.figures.numbers import number_text
from attnviz.maths.ranks import rank_correlations
from attnviz.records import Head, Measure
from ui.words.extremes import places_of_largest

FEWEST_RANKED = 3
"""Fewest heads or cells whose order is worth comparing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestEffect:
    """The head with the largest effect, up or down."""

    head: Head
    n_equal: int
    """Other heads whose effect is as large."""
    before: float
    """The outcome of the unchanged run."""
    after: float
    """The outcome without the head."""


def largest_effect(effects: HeadEffects) -> LargestEffect | None:
    """The largest effect; None if no head changes the outcome, or all outcomes are NaN."""
    places = places_of_largest(np.abs(effects.effects), number_text)
    if not places or not effects.effects[places[0]]:
        return None
    head = Head(*places[0])
    return LargestEffect(
        head=head, n_equal=len(places) - 1, before=effects.base, after=float(effects.heads[head])
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CellOrder:
    """Whether the weights of cells predict the order of their effects."""

    correlations: tuple[tuple[Measure, float], ...]
    """Rank correlation of each measure with the size of the cells' effects, for measures that have one."""
    n_masked: int
    """Cells that were masked."""
    n_cell: int
    """Cells that the queries may see."""


def cell_order(effects: CellEffects) -> CellOrder:
    """Rank correlations of weights, and of norm-based weights if known, with the sizes of the effects."""
    measures: tuple[Measure, ...] = ("weights", "norms")
    numbers = ((measure, effects.rank_correlation(measure)) for measure in measures)
    return CellOrder(
        correlations=tuple((measure, number) for measure, number in numbers if np.isfinite(number)),
        n_masked=len(effects.outcomes),
        n_cell=effects.n_cell,
    )


def ablation_agreement(zero: HeadEffects, mean: HeadEffects) -> float | None:
    """Rank correlation of the sizes of heads' effects with zeros and with means; None if there is no order."""
    sizes = [np.abs(ablated.effects).reshape(1, -1) for ablated in (zero, mean)]
    seen = np.isfinite(sizes[0]) & np.isfinite(sizes[1])
    if seen.sum() < FEWEST_RANKED or any(len(np.unique(size[seen])) < 2 for size in sizes):
        return None
    of_zero, of_mean = (np.where(seen, size, 0) for size in sizes)
    return float(rank_correlations(of_zero, of_mean, seen)[0])
