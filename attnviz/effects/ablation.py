"""What happens to an outcome when heads are switched off: each in turn, a layer's together, or one after another.

One concept: the ablation of heads. A head that is off gives zeros (``zero``), or the mean of its outputs over other
sentences (``mean``), which keeps what it gives whatever it reads.

Source: Michel et al. 2019, "Are Sixteen Heads Really Better than One?" (arXiv:1905.10650), section 3.1, equation for
masked heads; mean ablation as in Wang et al. 2022, "Interpretability in the Wild" (arXiv:2211.00593), section 3.1.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from jaxtyping import Float

from attnviz.errors import EmptyTextError, SelectionError
from attnviz.model.interventions import Intervention, ReplacedOutput, ScaledOutput
from attnviz.model.variants import OutcomeMeasure, measured_variants
from attnviz.records import AllHeads, Head, Kind, Progress, Record, by_layer, check_index, heads_in
from attnviz.records.table import table_csv

if TYPE_CHECKING:
    from attnviz.model.loading import Model
    from attnviz.model.trace import Trace

Ablation = Literal["zero", "mean"]

Means = Mapping[Kind, tuple[Float[np.ndarray, "head d_value"], ...]]
"""Mean output of every head of each layer, by kind of attention; see `head_means`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeadEffects(Record):
    """An outcome without each head, and without all heads of each layer."""

    kind: Kind
    ablation: Ablation
    base: float
    """The outcome of the unchanged run."""
    heads: Float[np.ndarray, "layer head"]
    """The outcome while one head is off; NaN for layers that were not asked for, and where a layer has no such head."""
    layers: Float[np.ndarray, " layer"]
    """The outcome while all heads of a layer are off; NaN for layers that were not asked for."""

    @property
    def effects(self) -> Float[np.ndarray, "layer head"]:
        """What switching off each head adds to the outcome."""
        return np.asarray(self.heads - self.base, dtype=np.float32)

    @property
    def layer_effects(self) -> Float[np.ndarray, " layer"]:
        """What switching off all heads of a layer adds to the outcome."""
        return np.asarray(self.layers - self.base, dtype=np.float32)

    def ranked(self) -> list[Head]:
        """All heads that were switched off, the largest effect first, whether it is up or down."""
        return sorted(heads_in(self.heads), key=lambda one: -abs(float(self.effects[one])))

    def csv(self) -> bytes:
        """A line for every head that was switched off, and one for all of each layer: the outcome, and their effect."""
        rows: list[list[object]] = []
        for of_layer in by_layer(heads_in(self.heads)):
            rows += [[*one, self.heads[one], self.effects[one]] for one in of_layer]
            layer = of_layer[0].layer
            rows.append([layer, "all", self.layers[layer], self.layer_effects[layer]])
        return table_csv(["layer", "head", "outcome", "effect"], rows)

    def joined(self, other: "HeadEffects") -> "HeadEffects":
        """These effects and those of other layers of the same text."""
        return HeadEffects(
            kind=self.kind,
            ablation=self.ablation,
            base=self.base,
            heads=np.where(np.isnan(self.heads), other.heads, self.heads),
            layers=np.where(np.isnan(self.layers), other.layers, self.layers),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Removal(Record):
    """Heads in the order in which they are switched off, and the outcome after each of them."""

    base: float
    """The outcome while no head is off."""
    heads: tuple[Head, ...]
    outcomes: Float[np.ndarray, " head"]
    """The outcome while this head and all before it are off."""


def head_means(model: "Model", texts: Iterable[str]) -> Means:
    """Mean output of every head over all tokens of some texts, special tokens included.

    An encoder-decoder model reads each text as both of its texts.

    Raises:
        EmptyTextError: there is no text with a token.
    """
    sums: dict[Kind, list[np.ndarray]] = {}
    n_query: dict[Kind, int] = {}
    for text in texts:
        if not text.strip():
            continue
        trace = model.trace(text, text if model.network.config.is_encoder_decoder else None, cut=True)
        for kind in trace.kinds:
            outputs = [trace.outputs(layer, kind) for layer in range(trace.n_layers(kind))]
            summed = [one.sum(axis=1, dtype=np.float64) for one in outputs]  # [head, d_value] of each layer
            before = sums.get(kind, [np.zeros(())] * len(summed))
            sums[kind] = [one + other for one, other in zip(before, summed, strict=True)]
            n_query[kind] = n_query.get(kind, 0) + outputs[0].shape[1]
    if not sums:
        raise EmptyTextError(
            "The mean outputs of the heads were asked for over no text. Give a sentence or more."
        )
    return {
        kind: tuple((one / n_query[kind]).astype(np.float32) for one in of_kind)
        for kind, of_kind in sums.items()
    }


def switched_off(head: Head | AllHeads, kind: Kind, means: Means | None = None) -> list[Intervention]:
    """The interventions that switch off a head, or all heads of a layer.

    Args:
        means: what the head gives instead; None for zeros.
    """
    if means is None:
        one = head.head if isinstance(head, Head) else None
        return [ScaledOutput(kind=kind, layer=head.layer, head=one, factor=0.0)]
    of_layer = means[kind][head.layer]
    heads = [head.head] if isinstance(head, Head) else range(len(of_layer))
    return [
        ReplacedOutput(kind=kind, layer=head.layer, head=one, output=of_layer[one][None]) for one in heads
    ]


def ablate_heads(
    model: "Model",
    trace: "Trace",
    measure: OutcomeMeasure,
    *,
    kind: Kind | None = None,
    means: Means | None = None,
    layers: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> HeadEffects:
    """The outcome without each head of a text in turn, and without all heads of each layer.

    Args:
        trace: of the text without interventions.
        measure: a number of the last hidden states of some variants, [variant, token, d_model] -> [variant].
        means: what a head gives while it is off (``mean``); None for zeros (``zero``).
        layers: None for all.

    Raises:
        CaptureError, OutOfMemoryError: as `attnviz.model.variants.states_of_variants`.
        SelectionError: no such kind or layer.
    """
    kind = trace.attention(0, kind).kind
    n_layer = trace.n_layers(kind)
    chosen = range(n_layer) if layers is None else layers
    for layer in chosen:
        check_index("layer", layer, n_layer, trace.provenance.model)
    places: list[Head | AllHeads] = []
    for layer in chosen:
        places += [*(Head(layer, head) for head in range(trace.n_heads(layer, kind))), AllHeads(layer)]
    variants = [switched_off(one, kind, means) for one in places]
    outcomes = measured_variants(model, trace, variants, measure, progress=progress)
    heads = np.full(trace.shape(kind), np.nan, dtype=np.float32)
    of_layers = np.full(n_layer, np.nan, dtype=np.float32)
    for place, number in zip(places, outcomes, strict=True):
        if isinstance(place, Head):
            heads[place] = number
        else:
            of_layers[place.layer] = number
    return HeadEffects(
        kind=kind,
        ablation="zero" if means is None else "mean",
        base=unchanged(trace, measure),
        heads=heads,
        layers=of_layers,
    )


def remove_in_order(
    model: "Model",
    trace: "Trace",
    measure: OutcomeMeasure,
    heads: Sequence[Head],
    *,
    kind: Kind | None = None,
    means: Means | None = None,
    progress: Progress | None = None,
) -> Removal:
    """The outcome while more and more heads are off, in the order of the heads.

    Raises:
        As `ablate_heads`.
    """
    kind = trace.attention(0, kind).kind
    off: list[Intervention] = []
    variants = []
    for one in heads:
        off += switched_off(one, kind, means)
        variants.append(tuple(off))
    outcomes = measured_variants(model, trace, variants, measure, progress=progress)
    return Removal(base=unchanged(trace, measure), heads=tuple(heads), outcomes=outcomes)


def remove_greedily(
    model: "Model",
    trace: "Trace",
    measure: OutcomeMeasure,
    heads: Sequence[Head],
    *,
    kind: Kind | None = None,
    means: Means | None = None,
    progress: Progress | None = None,
) -> Removal:
    """The order in which heads can be switched off so that the outcome stays close to the unchanged one for long.

    In each step every head that is left is tried beside those that are off, and the one after which the outcome is
    closest to that of the unchanged run goes; of equals the first. n heads take n (n + 1) / 2 variants.

    Raises:
        SelectionError: also where a head is named twice.

    Source: Michel et al. 2019 (arXiv:1905.10650), section 4, who sort heads by their importance once; here it is
    measured again after each step.
    """
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
        variants = [[*off, *switched_off(one, kind, means)] for one in left]
        found = measured_variants(model, trace, variants, measure)
        best = int(np.abs(found - base).argmin())
        off = list(variants[best])
        order.append(left.pop(best))
        outcomes.append(found[best])
        n_done += len(variants)
        if progress is not None:
            progress(n_done / n_variant)
    return Removal(base=base, heads=tuple(order), outcomes=np.array(outcomes, dtype=np.float32))


def unchanged(trace: "Trace", measure: OutcomeMeasure) -> float:
    """The outcome of the run without interventions."""
    with torch.inference_mode():
        return float(measure(torch.tensor(trace.last_hidden_state)[None])[0])
