"""Results of experiments on a set of prompts: the mean over its pairs, and how far the pairs differ.

The numbers of all pairs, with their mean and its spread. This record holds whatever is averaged (the effects of patches
or of switching off heads, or direct effects), and is written as the same table.

Source: Wang et al. 2022, "Interpretability in the Wild" (arXiv:2211.00593), section 2.2, averages over a set of prompts.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from attnviz.arguments import typed
from attnviz.effects.ablation import HeadEffects, ablate
from attnviz.effects.logit_attribution import DirectParts, attribute_token
from attnviz.effects.mean_outputs import MeanOutputs
from attnviz.effects.patching import PatchEffects
from attnviz.effects.prompts import PromptPair, outcome_of_pair, prepared
from attnviz.errors import (
    EmptyTextError,
    InvalidTextError,
    SelectionError,
    ShapeError,
    TextTooLongError,
)
from attnviz.records import Progress, Record, Result, heads_in
from attnviz.records.table import Table, table_csv

if TYPE_CHECKING:
    from attnviz.model.model import Model


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OverPairs(Record):
    """The same numbers of several pairs of prompts: their mean, and how far they differ from pair to pair."""

    pairs: Float[np.ndarray, "pair ..."]
    """The numbers of each pair."""

    @property
    def n_pair(self) -> int:
        """Number of pairs."""
        return len(self.pairs)

    @property
    def mean(self) -> Float[np.ndarray, "..."]:
        """The mean over the pairs."""
        return np.asarray(self.pairs.mean(axis=0, dtype=np.float64), dtype=np.float32)

    @property
    def spread(self) -> Float[np.ndarray, "..."]:
        """The sample standard deviation over the pairs (n - 1); NaN for one pair."""
        if self.n_pair < 2:
            return np.full(self.pairs.shape[1:], np.nan, dtype=np.float32)
        return np.asarray(self.pairs.std(axis=0, ddof=1, dtype=np.float64), dtype=np.float32)


_Row = tuple[Sequence[object], OverPairs]
"""The cells before the numbers of a row of a table, and the number of each pair."""


def over_pairs(numbers: Iterable[Any]) -> OverPairs:
    """The record of the same number, or table of numbers, of each pair."""
    return OverPairs(pairs=np.stack([np.asarray(number, dtype=np.float32) for number in numbers]))


def of_line(
    model: "Model",
    line: int,
    experiment: Callable[..., Any],
    *given: Any,
    progress: Progress,
) -> Any:
    """The result of an experiment on one line, such as a pair of a table; a sentence if the line does not allow it."""
    try:
        return experiment(model, *given, progress=progress)
    except (EmptyTextError, InvalidTextError, SelectionError, ShapeError, TextTooLongError) as error:
        return f"Line {line}: {error}"


def ablate_pair(
    model: "Model", pair: PromptPair, means: MeanOutputs | None = None, *, progress: Progress | None = None
) -> HeadEffects:
    """The outcome of the clean prompt without each head."""
    clean, _, measure = prepared(model, pair)
    return ablate(model, clean, measure, means=means, progress=progress)


def attribute_pair(
    model: "Model", pair: PromptPair, *, progress: Progress = lambda share: None
) -> DirectParts:
    """What each part adds directly to the outcome of the clean prompt."""
    clean, _, _ = prepared(model, pair)
    answer = outcome_of_pair(model, clean, pair)
    progress(0.5)
    return attribute_token(model, clean, answer.position, answer.token, against=answer.against)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeanPatches(Result):
    """The effects of patches over pairs of prompts."""

    mean: PatchEffects
    """Means of all outcomes, those of both texts included: its shares are shares of the mean difference, not means of shares,
    which a pair with a small difference would dominate."""
    clean: OverPairs
    """Outcomes of the clean prompts."""
    corrupted: OverPairs
    """Outcomes of the corrupted prompts."""
    changes: OverPairs
    """Change of the outcome by each state carried over, [pair, row, column]."""

    def csv(self, prompts: Mapping[int, PromptPair] | None = None) -> bytes:
        """A line for every cell, as `pairs_table`."""
        return table_csv(*self._table(prompts))

    def _table(self, prompts: Mapping[int, PromptPair] | None = None) -> Table:
        rows: list[_Row] = [
            (("", "", "clean outcome"), self.clean),
            (("", "", "corrupted outcome"), self.corrupted),
        ]
        rows += [((*place, "change"), of_cell) for place, of_cell in _cells(self.changes)]
        return pairs_table(prompts, (self.mean.rows, self.mean.columns, "number"), rows)


@typed
def mean_patches(effects: Sequence[PatchEffects]) -> MeanPatches:
    """The same map of several pairs.

    Raises:
        ShapeError: columns are tokens, and pairs have different numbers of them.
    """
    shapes = {effect.outcomes.shape for effect in effects}
    if len(shapes) != 1:
        counts = " and ".join(str(n_column) for n_column in sorted({shape[1] for shape in shapes}))
        raise ShapeError(
            f"A mean over the pairs was asked for, token by token; their prompts have {counts} tokens. Take prompts of one length, or swap "
            "in a part of heads at all tokens at once."
        )
    clean, corrupted = (
        over_pairs(effect.base for effect in effects),
        over_pairs(effect.donor for effect in effects),
    )
    mean = replace(
        effects[0],
        donor_tokens=effects[0].receiver_tokens,  # pairs differ in other tokens
        base=float(clean.mean),
        donor=float(corrupted.mean),
        outcomes=over_pairs(effect.outcomes for effect in effects).mean,
    )
    changes = over_pairs(effect.changes for effect in effects)
    return MeanPatches(mean=mean, clean=clean, corrupted=corrupted, changes=changes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeanHeadEffects(Result):
    """The effects of switching off each head, on the clean prompt of each pair."""

    mean: HeadEffects
    clean: OverPairs
    """Outcomes of the unchanged runs."""
    effects: OverPairs
    """Change of the outcome when each head is switched off, [pair, layer, head]."""

    def csv(self, prompts: Mapping[int, PromptPair] | None = None) -> bytes:
        """A line for every head, as `pairs_table`."""
        return table_csv(*self._table(prompts))

    def _table(self, prompts: Mapping[int, PromptPair] | None = None) -> Table:
        rows: list[_Row] = [(("", "", "clean outcome"), self.clean)]
        rows += [((*place, "effect"), of_cell) for place, of_cell in _cells(self.effects)]
        return pairs_table(prompts, ("layer", "head", "number"), rows)


@typed
def mean_head_effects(effects: Sequence[HeadEffects]) -> MeanHeadEffects:
    """The effects of the heads of one model on several pairs, switched off in the same way."""
    clean = over_pairs(effect.base for effect in effects)
    outcomes = over_pairs(effect.heads for effect in effects).mean
    return MeanHeadEffects(
        mean=replace(effects[0], base=float(clean.mean), heads=outcomes),
        clean=clean,
        effects=over_pairs(effect.effects for effect in effects),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeanDirectEffects(Result):
    """What each part of a model adds directly to the outcome, on the clean prompt of each pair."""

    mean: DirectParts
    """Its parts sum to the mean of the outcomes."""
    totals: OverPairs
    """The model's own number for each pair."""
    embedding: OverPairs
    heads: OverPairs
    """[pair, layer, head]."""
    attention: OverPairs
    """All heads of each layer together, [pair, layer]."""
    mlps: OverPairs
    """[pair, layer]."""
    biases: OverPairs
    """[pair, layer]."""
    bias: OverPairs

    def csv(self, prompts: Mapping[int, PromptPair] | None = None) -> bytes:
        """A line for every part, as `pairs_table`."""
        return table_csv(*self._table(prompts))

    def _table(self, prompts: Mapping[int, PromptPair] | None = None) -> Table:
        rows: list[_Row] = [(("", "embedding"), self.embedding)]
        for layer in range(len(self.mean.mlps)):
            rows += [
                ((layer, f"head {place.head}"), OverPairs(pairs=self.heads.pairs[:, *place]))
                for place in heads_in(self.mean.heads)
                if place.layer == layer
            ]
            for name, parts in (("MLP", self.mlps), ("biases", self.biases)):
                rows.append(((layer, name), OverPairs(pairs=parts.pairs[:, layer])))
        rows += [(("", "final biases"), self.bias), (("", "model"), self.totals)]
        return pairs_table(prompts, ("layer", "part"), rows)


@typed
def mean_direct_effects(effects: Sequence[DirectParts]) -> MeanDirectEffects:
    """The direct effects of the parts of one model on several pairs."""
    numbers = {
        "totals": over_pairs(effect.total for effect in effects),
        "embedding": over_pairs(effect.embedding for effect in effects),
        "heads": over_pairs(effect.heads for effect in effects),
        "attention": over_pairs(effect.of_attention for effect in effects),
        "mlps": over_pairs(effect.mlps for effect in effects),
        "biases": over_pairs(effect.biases for effect in effects),
        "bias": over_pairs(effect.bias for effect in effects),
    }
    mean = DirectParts(
        unit=effects[0].unit,
        total=float(numbers["totals"].mean),
        embedding=float(numbers["embedding"].mean),
        heads=numbers["heads"].mean,
        mlps=numbers["mlps"].mean,
        biases=numbers["biases"].mean,
        bias=float(numbers["bias"].mean),
    )
    return MeanDirectEffects(mean=mean, **numbers)


def pairs_table(
    prompts: Mapping[int, PromptPair] | None,
    names: Sequence[str],
    rows: Iterable[_Row],
) -> Table:
    """A row for each number: its mean, its standard deviation, and its value for every pair, whose prompts name the columns.

    Args:
        prompts: by line, in the order of the numbers; None where they are only counted.
        names: of the columns before the numbers.
        rows: cells before the numbers, and the number of each pair.
    """
    written = [[*before, numbers.mean[()], numbers.spread[()], *numbers.pairs] for before, numbers in rows]
    if prompts is None:
        of_pairs = [f"pair {number}" for number in range(1, len(written[0]) - len(names) - 1)]
    else:
        of_pairs = [
            f"line {line}: {pair.clean} | {pair.corrupted} | {pair.answer} | {pair.wrong_answer}"
            for line, pair in prompts.items()
        ]
    return [*names, "mean", "standard deviation", *of_pairs], written


def _cells(numbers: OverPairs) -> list[tuple[tuple[int, ...], OverPairs]]:
    """The numbers of each cell that is not NaN, with its place."""
    flat = numbers.pairs.reshape(len(numbers.pairs), -1)
    places = enumerate(np.ndindex(numbers.mean.shape))
    return [
        (place, OverPairs(pairs=flat[:, at])) for at, place in places if not np.isnan(numbers.mean[place])
    ]
