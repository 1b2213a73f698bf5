"""Where does the difference between two texts lie? Hidden states carried from one run into the other.

One concept: activation patching. A state of the donor's run takes the place of the same state in the receiver's run,
at one layer and token at a time; the share is how far the outcome has gone from the receiver's to the donor's.

Source: Meng et al. 2022, "Locating and Editing Factual Associations in GPT" (arXiv:2202.05262), section 2.1 (causal
tracing); Wang et al. 2022, "Interpretability in the Wild" (arXiv:2211.00593), section 3.1 (heads).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from jaxtyping import Float

from attnviz.effects.ablation import unchanged
from attnviz.effects.outcome import MeasuredOutcome
from attnviz.errors import SelectionError, ShapeError
from attnviz.model.interventions import Intervention, Place, ReplacedOutput, ReplacedState
from attnviz.model.states import hidden_states
from attnviz.model.variants import OutcomeMeasure, measured_variants
from attnviz.records import Kind, Progress, Record, Tokens, check_index

if TYPE_CHECKING:
    from attnviz.model.loading import Model
    from attnviz.model.trace import Trace

Carried = Literal["layer", "attention", "heads"]
"""What is carried: the residual stream after each layer, the output of each layer's W_O, or the output of each head of
one layer."""
CARRIED: tuple[Carried, ...] = get_args(Carried)

SMALLEST_DIFFERENCE = 1e-5
"""Outcomes of the two texts that are closer than this have no difference to be shared: float32 sums of a few hundred
numbers of size 1 are rounded by up to 1e-6."""

SMALLEST_RATIO = 1e-3
"""The same for probabilities, as a share of the larger one: that of a rare token is far below 1e-5, and the rounding of
a logit changes it by up to 1e-5 of itself."""

LEAST_OF_SPREAD = 2.0
"""A difference below so many standard deviations of the outcomes, with one state carried over each, is not shared out: outcomes between
the two texts' have a standard deviation of half their difference at most (Popoviciu 1935, "Sur les équations algébriques ayant
toutes leurs racines réelles"), so these lie outside, and shares are quotients of a small number.

Measured on the bundled model, 10 pairs of sentences, 7 outcomes, residual stream, attention outputs and heads of layer 3: of 210 grids 24
are refused, in which the largest share is at least 1.9 and up to 34; in the others it is at most 1.7.
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PatchEffects(Record):
    """The outcome of the receiver's run with one state of the donor's, and the share of the difference that it brings."""

    kind: Kind
    carried: Carried
    layer: int | None
    """The layer whose heads are the rows; None where the rows are layers."""
    unit: str = ""
    """Of the outcomes, as `attnviz.effects.outcome.MeasuredOutcome` names it; "" for a measure without one."""
    base: float
    """The receiver's outcome."""
    donor: float
    """The donor's outcome."""
    outcomes: Float[np.ndarray, "row token"]
    """The receiver's outcome with the donor's state of a layer or head at a token; NaN for rows that were not asked for."""

    @property
    def has_difference(self) -> bool:
        """Whether the two texts' outcomes differ by more than rounding."""
        least = SMALLEST_DIFFERENCE
        if self.unit == "probability":
            least = SMALLEST_RATIO * max(self.base, self.donor)
        return abs(self.donor - self.base) > least

    @property
    def changes(self) -> Float[np.ndarray, "row token"]:
        """What carrying each state adds to the receiver's outcome."""
        return np.asarray(self.outcomes - self.base, dtype=np.float32)

    @property
    def spread(self) -> float:
        """Standard deviation of the outcomes with one state carried over; NaN where none is a number."""
        known = self.outcomes[np.isfinite(self.outcomes)].astype(np.float64)
        return float(known.std()) if known.size else float("nan")

    @property
    def can_be_shared(self) -> bool:
        """Whether the two texts' outcomes differ by more than rounding, and by at least `LEAST_OF_SPREAD` times the spread."""
        least = LEAST_OF_SPREAD * self.spread * (1 - 1e-6)  # outcomes are float32
        return self.has_difference and abs(self.donor - self.base) >= least

    @property
    def shares(self) -> Float[np.ndarray, "row token"]:
        """(outcome - base) / (donor - base): 0 for nothing, 1 for the donor's outcome; NaN where no share means anything.

        A share above 1 is of an outcome beyond the donor's, one below 0 of an outcome on the receiver's other side.
        """
        if not self.can_be_shared:
            return np.full_like(self.outcomes, np.nan)
        return np.asarray((self.outcomes - self.base) / (self.donor - self.base), dtype=np.float32)

    def joined(self, other: "PatchEffects") -> "PatchEffects":
        """These and other rows of the same two texts."""
        return PatchEffects(
            kind=self.kind,
            carried=self.carried,
            layer=self.layer,
            unit=self.unit,
            base=self.base,
            donor=self.donor,
            outcomes=np.where(np.isnan(self.outcomes), other.outcomes, self.outcomes),
        )


def differing(receiver: Tokens, donor: Tokens) -> tuple[int, ...]:
    """Positions at which two texts of the same number of tokens differ.

    Raises:
        ShapeError: the numbers of tokens differ; the message says where the texts do.
    """
    if len(receiver) != len(donor):
        raise ShapeError(
            f"Patching carries states from token to token; the texts have {len(receiver)} and {len(donor)} tokens, and "
            f"differ in {_differences(receiver, donor)}. Give a sentence of {len(receiver)} tokens."
        )
    return tuple(np.flatnonzero(np.asarray(receiver.ids) != np.asarray(donor.ids)).tolist())


def is_shifted(receiver: Tokens, donor: Tokens) -> bool:
    """Whether tokens of one text stand at another position in the other, as by difflib's alignment."""
    blocks = _matcher(receiver, donor).get_matching_blocks()
    return any(one.a != one.b for one in blocks if one.size)


def patch(
    model: "Model",
    receiver: "Trace",
    donor: "Trace",
    measure: OutcomeMeasure,
    *,
    carried: Carried = "layer",
    kind: Kind | None = None,
    layer: int = 0,
    rows: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> PatchEffects:
    """The receiver's outcome with one state of the donor's at a time.

    Args:
        receiver: trace of the text whose run is changed, without interventions.
        donor: trace of the text whose states are carried over.
        measure: a number of the last hidden states of some variants, [variant, token, d_model] -> [variant].
        carried: "heads" for the heads of one layer, otherwise of every layer.
        layer: the layer whose heads are carried.
        rows: layers, or heads, that are carried; None for all.

    Raises:
        CaptureError, OutOfMemoryError: as `attnviz.model.variants.states_of_variants`.
        SelectionError: no such kind, layer, head or place.
        ShapeError: the texts have other numbers of tokens.
    """
    kind = receiver.attention(0, kind).kind
    differing(receiver.tokens, donor.tokens)
    if receiver.target_tokens is not None and donor.target_tokens is not None:
        differing(receiver.target_tokens, donor.target_tokens)
    n_row = receiver.n_heads(layer, kind) if carried == "heads" else receiver.n_layers(kind)
    chosen = range(n_row) if rows is None else rows
    for row in chosen:
        check_index("head" if carried == "heads" else "layer", row, n_row, receiver.provenance.model)
    of_row = _carrier(model, donor, carried, kind, layer)
    n_token = len(receiver.query_tokens(kind))
    variants = [[of_row(row, token)] for row in chosen for token in range(n_token)]
    found = measured_variants(model, receiver, variants, measure, progress=progress)
    outcomes = np.full((n_row, n_token), np.nan, dtype=np.float32)
    outcomes[list(chosen)] = found.reshape(len(chosen), n_token)
    return PatchEffects(
        kind=kind,
        carried=carried,
        layer=layer if carried == "heads" else None,
        unit=measure.unit if isinstance(measure, MeasuredOutcome) else "",
        base=unchanged(receiver, measure),
        donor=unchanged(donor, measure),
        outcomes=outcomes,
    )


def _carrier(
    model: "Model", donor: "Trace", carried: Carried, kind: Kind, layer: int
) -> Callable[[int, int], Intervention]:
    """A function of row and token that gives the intervention which carries the donor's state there."""
    if carried == "heads":
        outputs = donor.outputs(layer, kind)
        return lambda head, token: ReplacedOutput(
            kind=kind, layer=layer, head=head, output=outputs[head], positions=(token,)
        )
    where: Place = carried
    stream: Kind = "decoder" if where == "layer" and kind == "cross" else kind
    states = hidden_states(model, donor).of(where)
    if (stream, 0) not in states:
        raise SelectionError(
            f"The attention outputs of {donor.provenance.model} were to be carried over; attnviz does not know its W_O. "
            "Carry the residual stream or the heads' outputs."
        )
    return lambda row, token: ReplacedState(
        kind=stream, layer=row, where=where, states=states[stream, row], positions=(token,)
    )


def _matcher(receiver: Tokens, donor: Tokens) -> SequenceMatcher[int]:
    return SequenceMatcher(a=receiver.ids.tolist(), b=donor.ids.tolist(), autojunk=False)


def _differences(receiver: Tokens, donor: Tokens) -> str:
    """The first places where two texts differ, in words."""
    said = []
    for what, first, stop, other, end in _matcher(receiver, donor).get_opcodes():
        if what != "equal":
            mine, theirs = " ".join(receiver.labels[first:stop]), " ".join(donor.labels[other:end])
            said.append(f"“{mine}” and “{theirs}”" if mine and theirs else f"“{mine or theirs}”")
    return ", ".join(said[:3]) + " and more" * (len(said) > 3)
