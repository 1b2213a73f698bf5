"""What the numbers of “Heads off” say, before it is put into words."""

from dataclasses import dataclass

import numpy as np

from attnviz.effects.ablation import HeadEffects
from attnviz.effects.cell_effects import CellEffects
from attnviz.maths.ranks import rank_correlations
from attnviz.records import Head, Measure
from ui.words.extremes import places_of_largest

FEWEST_RANKED = 3
"""Heads or cells that have an order worth comparing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestEffect:
    """The head whose effect is the largest, whether it is up or down."""

    head: Head
    n_equal: int
    """Other heads whose effect is as large."""
    before: float
    """The outcome of the unchanged run."""
    after: float
    """The outcome without the head."""


def largest_effect(effects: HeadEffects) -> LargestEffect | None:
    """The largest effect; None where no head changes the outcome, or no outcome is a number."""
    places = places_of_largest(np.abs(effects.effects))
    if not places or not effects.effects[places[0]]:
        return None
    head = Head(*places[0])
    return LargestEffect(
        head=head, n_equal=len(places) - 1, before=effects.base, after=float(effects.heads[head])
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CellOrder:
    """Whether weights of cells tell the order of their effects."""

    correlations: tuple[tuple[Measure, float], ...]
    """Rank correlation of each measure of a cell with the size of its effect, for those that have one."""
    n_masked: int
    """Cells that were masked."""
    n_cell: int
    """Cells that the queries may see."""


def cell_order(effects: CellEffects) -> CellOrder:
    """The rank correlations of weights, and of norm-based weights where they are known, with the sizes of the effects."""
    measures: tuple[Measure, ...] = ("weights", "norms")
    numbers = ((measure, effects.rank_correlation(measure)) for measure in measures)
    return CellOrder(
        correlations=tuple((measure, number) for measure, number in numbers if np.isfinite(number)),
        n_masked=len(effects.outcomes),
        n_cell=effects.n_cell,
    )


def ablation_agreement(zero: HeadEffects, mean: HeadEffects) -> float | None:
    """Rank correlation of the sizes of the heads' effects, switched off by zeros and by means; None where there is no order."""
    sizes = [np.abs(effects_.effects).reshape(1, -1) for effects_ in (zero, mean)]
    seen = np.isfinite(sizes[0]) & np.isfinite(sizes[1])
    if seen.sum() < FEWEST_RANKED or any(len(np.unique(size[seen])) < 2 for size in sizes):
        return None
    of_zero, of_mean = (np.where(seen, size, 0) for size in sizes)
    return float(rank_correlations(of_zero, of_mean, seen)[0])
