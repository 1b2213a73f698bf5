"""What happens to an outcome when heads are switched off: each in turn, a layer's together, or one after another.

A head that is off gives zeros (``zero``), or at each position the mean of its outputs over reference texts (``mean``,
`attnviz.effects.mean_outputs`), the part of its output that does not depend on the text.

Source: Michel et al. 2019, "Are Sixteen Heads Really Better than One?" (arXiv:1905.10650), section 3.1, equation for
masked heads; mean ablation as in Wang et al. 2022, "Interpretability in the Wild" (arXiv:2211.00593), section 3.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Float

from attnviz.arguments import typed
from attnviz.effects.mean_outputs import MeanOutputs
from attnviz.effects.outcome import AnyOutcome, measured, unchanged, words_of
from attnviz.errors import SelectionError
from attnviz.model.interventions import Intervention, ReplacedOutput, ScaledOutput
from attnviz.model.variants import measured_variants
from attnviz.records import (
    AllHeads,
    Head,
    Kind,
    Progress,
    Result,
    by_layer,
    check_index,
    heads_in,
    progress_within,
)
from attnviz.records.table import Table, table_csv

if TYPE_CHECKING:
    from attnviz.effects.row_shuffle import ShuffledHeads
    from attnviz.model.model import Model
    from attnviz.model.trace import Trace

Ablation = Literal["zero", "mean"]
COLUMNS = ("layer", "head", "outcome", "effect")
"""Columns of the table of effects."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeadEffects(Result):
    """An outcome without each head."""

    kind: Kind
    ablation: Ablation
    outcome: str = ""
    """What is measured, in words; "" for a function."""
    base: float
    """The outcome of the unchanged run."""
    heads: Float[np.ndarray, "layer head"]
    """The outcome while one head is off; NaN for layers that were not asked for, and where a layer has no such head."""

    @property
    def effects(self) -> Float[np.ndarray, "layer head"]:
        """Change of the outcome when each head is switched off."""
        return np.asarray(self.heads - self.base, dtype=np.float32)

    def ranked(self) -> list[Head]:
        """All heads that were switched off, the largest effect first, of either sign."""
        return sorted(heads_in(self.heads), key=lambda place: -abs(float(self.effects[place])))

    def csv(self, layers: "LayerEffects | None" = None, rows: "ShuffledHeads | None" = None) -> bytes:
        """A line for each head that was switched off, and for each layer if ``layers`` is given: the outcome and its change.

        Args:
            rows: adds the change and p of each head's shuffled row, of the same outcome; empty for even rows.
        """
        names, lines = self._table(layers)
        if rows is None:
            return table_csv(names, lines)
        known: dict[object, list[object]] = {
            place: [rows.heads[place], rows.p_values[place]] for place in heads_in(rows.heads)
        }
        numbers = (known.get((layer, head), ["", ""]) for layer, head, *_ in lines)
        return table_csv(
            [*names, "row_change", "row_p"], [[*line, *own] for line, own in zip(lines, numbers, strict=True)]
        )

    def _table(self, layers: "LayerEffects | None" = None) -> Table:
        rows: list[list[object]] = []
        for of_layer in by_layer(heads_in(self.heads)):
            rows += [[*place, self.heads[place], self.effects[place]] for place in of_layer]
            if layers is not None:
                layer = of_layer[0].layer
                rows.append([layer, "all", layers.layers[layer], layers.effects[layer]])
        return COLUMNS, rows

    def joined(self, other: "HeadEffects") -> "HeadEffects":
        """These effects joined with those of other layers of the same text."""
        return replace(self, heads=np.where(np.isnan(self.heads), other.heads, self.heads))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayerEffects(Result):
    """An outcome without all heads of each layer."""

    kind: Kind
    ablation: Ablation
    outcome: str = ""
    """What is measured, in words; "" for a function."""
    base: float
    """The outcome of the unchanged run."""
    layers: Float[np.ndarray, " layer"]
    """The outcome while all heads of a layer are off."""

    @property
    def effects(self) -> Float[np.ndarray, " layer"]:
        """Change of the outcome when all heads of a layer are switched off."""
        return np.asarray(self.layers - self.base, dtype=np.float32)

    def _table(self) -> Table:
        rows = zip(range(len(self.layers)), self.layers, self.effects, strict=True)
        return [name for name in COLUMNS if name != "head"], [*map(list, rows)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Removal(Result):
    """Heads in the order in which they are switched off, and the outcome after each of them."""

    base: float
    """The outcome while no head is off."""
    heads: tuple[Head, ...]
    outcomes: Float[np.ndarray, " head"]
    """The outcome while this head and all before it are off."""

    def _table(self) -> Table:
        """A row for each head in the order of the removal, with the outcome from then on and its change from the unchanged run."""
        rows = [
            [step, *head, outcome, outcome - np.float32(self.base)]
            for step, (head, outcome) in enumerate(zip(self.heads, self.outcomes, strict=True), 1)
        ]
        return ["heads off", *COLUMNS], rows


@typed
def switched_off(
    trace: "Trace", head: Head | AllHeads, kind: Kind, means: MeanOutputs | None = None
) -> list[Intervention]:
    """The interventions that switch off a head of a text, or all heads of a layer.

    Args:
        means: what the head gives instead; None for zeros.
    """
    if means is None:
        number = head.head if isinstance(head, Head) else None
        return [ScaledOutput(kind=kind, layer=head.layer, head=number, factor=0.0)]
    tokens = trace.query_tokens(kind)
    heads = [head.head] if isinstance(head, Head) else range(trace.n_heads(head.layer, kind))
    return [
        ReplacedOutput(
            kind=kind, layer=head.layer, head=number, output=means.of(kind, head.layer, number, tokens)
        )
        for number in heads
    ]


@typed
def ablate(
    model: "Model",
    trace: "Trace",
    outcome: AnyOutcome,
    heads: Sequence[Head] | None = None,
    *,
    kind: Kind | None = None,
    means: MeanOutputs | None = None,
    layers: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> HeadEffects:
    """The outcome without each head of a text in turn.

    Args:
        trace: of the text without interventions.
        outcome: as `attnviz.effects.outcome.measured` takes it.
        means: what a head gives while it is off (``mean``); None for zeros (``zero``).
        heads: the heads that are switched off, one at a time, such as [(3, 1), (4, 7)]; None for all.
        layers: the layers whose heads are switched off; None for all.

    Raises:
        ArgumentError: an argument of another type, or an outcome that does not give a tensor [variant].
        CaptureError, OutOfMemoryError: as `attnviz.model.variants.states_of_variants`.
        SelectionError: no such kind, layer or head, or an outcome that `measured` refuses.
    """
    measure = measured(model, trace, outcome)
    kind = trace.attention(0, kind).kind
    n_layer = trace.n_layers(kind)
    chosen = range(n_layer) if layers is None else layers
    for layer in chosen:
        check_index("layer", layer, n_layer, trace.provenance.model)
    places = [Head(layer, head) for layer in chosen for head in range(trace.n_heads(layer, kind))]
    if heads is not None:
        for head in heads:
            trace.head(*head, kind)  # raises where there is none
        places = [place for place in places if place in heads]
        if not places:
            raise SelectionError(
                "No head was left to switch off: heads and layers name none together. Name one, or leave one of them out."
            )
    variants = [switched_off(trace, place, kind, means) for place in places]
    base = unchanged(trace, measure)
    outcomes = measured_variants(model, trace, variants, measure, progress=progress)
    table = np.full(trace.shape(kind), np.nan, dtype=np.float32)
    for place, number in zip(places, outcomes, strict=True):
        table[place] = number
    return HeadEffects(
        kind=kind, ablation=_name(means), outcome=words_of(measure, trace), base=base, heads=table
    )


@typed
def ablate_layers(
    model: "Model",
    trace: "Trace",
    outcome: AnyOutcome,
    *,
    kind: Kind | None = None,
    means: MeanOutputs | None = None,
    progress: Progress | None = None,
) -> LayerEffects:
    """The outcome without all heads of each layer of a text in turn; arguments and errors as `ablate`."""
    measure = measured(model, trace, outcome)
    kind = trace.attention(0, kind).kind
    variants = [switched_off(trace, AllHeads(layer), kind, means) for layer in range(trace.n_layers(kind))]
    base = unchanged(trace, measure)
    outcomes = measured_variants(model, trace, variants, measure, progress=progress)
    return LayerEffects(
        kind=kind, ablation=_name(means), outcome=words_of(measure, trace), base=base, layers=outcomes
    )


@typed
def remove_in_order(
    model: "Model",
    trace: "Trace",
    outcome: AnyOutcome,
    heads: Sequence[Head],
    *,
    kind: Kind | None = None,
    means: MeanOutputs | None = None,
    progress: Progress | None = None,
) -> Removal:
    """The outcome while more and more heads are off, in the order of the heads.

    Raises:
        As `ablate`.
    """
    measure = measured(model, trace, outcome)
    kind = trace.attention(0, kind).kind
    off: list[Intervention] = []
    variants = []
    for head in heads:
        off += switched_off(trace, head, kind, means)
        variants.append(tuple(off))
    base = unchanged(trace, measure)
    outcomes = measured_variants(model, trace, variants, measure, progress=progress)
    return Removal(base=base, heads=tuple(heads), outcomes=outcomes)


@typed
def remove_greedily(
    model: "Model",
    trace: "Trace",
    outcome: AnyOutcome,
    heads: Sequence[Head],
    *,
    kind: Kind | None = None,
    means: MeanOutputs | None = None,
    progress: Progress | None = None,
) -> Removal:
    """The order of switching heads off that keeps the outcome close to the unchanged one for longest, chosen greedily.

    Each step tries every remaining head and switches off the one that leaves the outcome closest to that of the unchanged
    run; ties go to the first. n heads take n (n + 1) / 2 variants.

    Raises:
        SelectionError: also where a head is named twice.

    Source: Michel et al. 2019 (arXiv:1905.10650), section 4, who sort heads by their importance once; here it is
    measured again after each step.
    """
    measure = measured(model, trace, outcome)
    kind = trace.attention(0, kind).kind
    if len(set(heads)) < len(heads):
        raise SelectionError(
            "The greedy order of some heads was asked for; one is named twice. Name each once."
        )
    base, left = unchanged(trace, measure), list(heads)
    off: list[Intervention] = []
    order, outcomes = [], []
    n_done, n_variant = 0, len(left) * (len(left) + 1) // 2
    while left:
        variants = [[*off, *switched_off(trace, candidate, kind, means)] for candidate in left]
        told = progress_within(progress, n_done / n_variant, len(variants) / n_variant)
        effects = measured_variants(model, trace, variants, measure, progress=told)
        best = int(np.abs(effects - base).argmin())
        off = list(variants[best])
        order.append(left.pop(best))
        outcomes.append(effects[best])
        n_done += len(variants)
    return Removal(base=base, heads=tuple(order), outcomes=np.array(outcomes, dtype=np.float32))


def _name(means: MeanOutputs | None) -> Ablation:
    return "zero" if means is None else "mean"
