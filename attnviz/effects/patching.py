"""Where does the difference between two texts lie? States carried from one run into the other.

A state of the donor's run takes the place of the same state in the receiver's run, one at a time; the share is how far
the outcome moves from the receiver's to the donor's. States are hidden states at a layer and token, or parts of a head:
its output, queries, keys, values or attention pattern.

Source: Meng et al. 2022, "Locating and Editing Factual Associations in GPT" (arXiv:2202.05262), section 2.1 (causal
tracing); Wang et al. 2022, "Interpretability in the Wild" (arXiv:2211.00593), section 3.1 (heads); Heimersheim and Nanda 2024,
"How to use and interpret activation patching" (arXiv:2404.15255), sections 2 and 4, on what shares mean.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from jaxtyping import Float

from attnviz.arguments import typed
from attnviz.effects.outcome import AnyOutcome, MeasuredOutcome, measured, unchanged, words_of
from attnviz.errors import SelectionError, ShapeError, UnsupportedArchitectureError
from attnviz.model.interventions import (
    Intervention,
    Place,
    ReplacedOutput,
    ReplacedState,
    ReplacedVectors,
    ReplacedWeights,
)
from attnviz.model.states import hidden_states
from attnviz.model.variants import OutcomeMeasure, measured_variants
from attnviz.records import ROLE_NAMES, Axis, Head, Kind, Progress, Record, Result, Role, Tokens, check_index
from attnviz.records.table import Table, entry_names, table_csv

if TYPE_CHECKING:
    from attnviz.model.model import Model
    from attnviz.model.trace import Trace

Carried = Literal["before", "layer", "attention", "mlp", "heads", "query", "key", "value", "pattern"]
"""What is carried: a hidden state, as `attnviz.model.interventions.Place` names it, or of one head its output (``heads``), its
queries, keys, values or attention pattern."""
CARRIED: tuple[Carried, ...] = get_args(Carried)
OF_HEADS: tuple[Carried, ...] = CARRIED[CARRIED.index("heads") :]
"""What only a head has, not a layer as a whole."""

SMALLEST_DIFFERENCE = 1e-5
"""If the outcomes of the two texts are closer than this, there are no shares of their difference: float32 sums of a few
hundred numbers of size 1 are rounded by up to 1e-6."""

SMALLEST_RATIO = 1e-3
"""The same for probabilities, as a share of the larger one: that of a rare token is far below 1e-5, and the rounding of
a logit changes it by up to 1e-5 of itself."""

LEAST_OF_SPREAD = 2.0
"""There are no shares of a difference below so many standard deviations of the outcomes with one state carried over. Outcomes
between the two texts' have a standard deviation of at most half the difference (Popoviciu 1935, "Sur les équations algébriques
ayant toutes leurs racines réelles"), so some of these lie outside, and their shares divide by a small number.

Measured on the bundled model, 10 pairs of sentences, 7 outcomes, residual stream, attention outputs and heads of layer 3: of
210 grids 24 are refused, whose largest share is at least 1.9 and up to 34; in the others it is at most 1.7.
"""


_BIASED_BY_DISTANCE = frozenset({"deberta", "deberta-v2"})
"""Families whose queries and keys also make a bias of the scores (He et al. 2021, arXiv:2006.03654, equation 4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathEnd(Record):
    """Where a path from a sender ends: at the queries, keys or values of one head, or at the outcome itself."""

    head: Head | None = None
    """None for the outcome."""
    role: Role = "query"
    """Which of the head's queries, keys and values read the path."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PatchEffects(Result):
    """The outcome of the receiver's run with one state of the donor's, and that state's share of the difference.

    Rows are layers, or heads where `layer` is a number; columns are heads where `columns` says so, and tokens otherwise. Keys and
    values that several heads share have one column, or row.
    """

    kind: Kind
    receiver_tokens: Tokens
    """The tokens that columns of tokens are: those of the queries, or of the keys where keys or values are carried."""
    donor_tokens: Tokens
    """The same of the donor's text."""
    carried: Carried
    layer: int | None = None
    """The layer whose heads are the rows; None where the rows are layers."""
    position: int | None = None
    """The token whose state is carried; None for every token in turn, or, where columns are heads, for all tokens at once."""
    end: PathEnd | None = None
    """End of the direct path, while all other heads stay unchanged (`attnviz.effects.path_patching`); None where the state
    takes all paths."""
    outcome: str = ""
    """What is measured, in words; "" for a function."""
    unit: str = ""
    """Unit of the outcomes, as in `attnviz.effects.outcome.MeasuredOutcome`; "" for a measure without a unit."""
    base: float
    """The receiver's outcome."""
    donor: float
    """The donor's outcome."""
    outcomes: Float[np.ndarray, "row column"]
    """The receiver's outcome with the donor's state of a layer or head; NaN for rows that were not asked for, and where a layer
    has no such head."""

    @property
    def rows(self) -> Literal["layer", "head"]:
        """What a row is."""
        return "layer" if self.layer is None else "head"

    @property
    def columns(self) -> Literal["head", "token"]:
        """What a column is."""
        return "head" if self.carried in OF_HEADS and self.layer is None else "token"

    @property
    def has_difference(self) -> bool:
        """Whether the two texts' outcomes differ by more than rounding."""
        least = SMALLEST_DIFFERENCE
        if self.unit == "probability":
            least = SMALLEST_RATIO * max(self.base, self.donor)
        return abs(self.donor - self.base) > least

    @property
    def changes(self) -> Float[np.ndarray, "row column"]:
        """Change of the receiver's outcome by each state carried over."""
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
    def shares(self) -> Float[np.ndarray, "row column"]:
        """(outcome - base) / (donor - base): 0 for nothing, 1 for the donor's outcome; NaN where no share means anything.

        Above 1 the outcome lies beyond the donor's, below 0 on the far side of the receiver's.
        """
        if not self.can_be_shared:
            return np.full_like(self.outcomes, np.nan)
        return np.asarray((self.outcomes - self.base) / (self.donor - self.base), dtype=np.float32)

    def _headline(self) -> str:
        told = Result._headline(self)
        return (
            told
            if self.can_be_shared
            else f"{told}. No shares: the outcomes of the two texts differ too little"
        )

    def csv(self, estimate: "PatchEffects | None" = None) -> bytes:
        """A line for every patched state.

        Args:
            estimate: the gradient's, which is written beside.
        """
        return table_csv(*self._table(estimate))

    def _table(self, estimate: "PatchEffects | None" = None) -> Table:
        header: list[str] = [self.rows]
        names: list[list[str]] = []
        if self.columns == "token":
            header += ["position", "token", "other token"]
            names = [entry_names(Axis.of(tokens)) for tokens in (self.receiver_tokens, self.donor_tokens)]
        else:
            header.append("key-value head" if self.carried in ("key", "value") else "head")
        header += ["outcome", "share"] + ["outcome by gradient"] * (estimate is not None)
        shares, rows = self.shares, []
        for place in np.ndindex(*self.outcomes.shape):
            if np.isnan(self.outcomes[place]):
                continue
            numbers = [self.outcomes[place], shares[place]]
            by_gradient = [] if estimate is None else [estimate.outcomes[place]]
            rows.append([*place, *(name[place[1]] for name in names), *numbers, *by_gradient])
        return header, rows

    def joined(self, other: "PatchEffects") -> "PatchEffects":
        """These rows joined with others of the same two texts."""
        return replace(self, outcomes=np.where(np.isnan(self.outcomes), other.outcomes, self.outcomes))


def differing(receiver: Tokens, donor: Tokens) -> tuple[int, ...]:
    """Positions at which two texts of the same number of tokens differ.

    Raises:
        ShapeError: the numbers of tokens differ; the message says where the texts differ.
    """
    if len(receiver) != len(donor):
        raise ShapeError(
            f"Patching carries states from token to token; the texts have {len(receiver)} and {len(donor)} tokens, and "
            f"differ in {_differences(receiver, donor)}. Give a sentence of {len(receiver)} token{'s' * (len(receiver) != 1)}."
        )
    return tuple(np.flatnonzero(np.asarray(receiver.ids) != np.asarray(donor.ids)).tolist())


def is_shifted(receiver: Tokens, donor: Tokens) -> bool:
    """Whether tokens of one text stand at another position in the other, as by difflib's alignment."""
    blocks = _matcher(receiver, donor).get_matching_blocks()
    return any(block.a != block.b for block in blocks if block.size)


@typed
def patch(
    model: "Model",
    receiver: "Trace",
    donor: "Trace",
    outcome: AnyOutcome,
    *,
    carried: Carried = "layer",
    kind: Kind | None = None,
    layer: int | None = None,
    position: int | None = None,
    rows: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> PatchEffects:
    """The receiver's outcome with one state of the donor's at a time.

    Args:
        receiver: trace of the text whose run is changed, without interventions.
        donor: trace of the text whose states are carried over, without interventions too.
        outcome: as `attnviz.effects.outcome.measured` takes it.
        carried: hidden states of every layer and token, or parts of heads (`OF_HEADS`).
        layer: for parts of heads, the layer whose heads are carried at one token at a time; None for every head of every
            layer, at all tokens at once or at ``position``.
        position: the token where heads of every layer are carried: the key's for keys and values, otherwise the query's.
        rows: layers, or heads of ``layer``, that are carried; None for all.

    Raises:
        ArgumentError: as `attnviz.effects.ablation.ablate`.
        CaptureError, OutOfMemoryError: as `attnviz.model.variants.states_of_variants`.
        SelectionError: no such kind, layer, head, token or place, or a trace with interventions.
        ShapeError: the texts have different numbers of tokens.
        UnsupportedArchitectureError: queries or keys of a family whose scores depend on more than these.
    """
    measure = measured(model, receiver, outcome)
    grid = PatchGrid(receiver, donor, carried=carried, kind=kind, layer=layer, position=position)
    cells = grid.cells(rows)
    grid.check_family(model)
    unchanged(receiver, measure)  # refuses what is no outcome before the run
    carry = (
        _carrier(receiver, donor, grid) if grid.carried in OF_HEADS else _state_carrier(model, donor, grid)
    )
    variants = [carry(*cell) for cell in cells]
    effects = measured_variants(model, receiver, variants, measure, progress=progress)
    return grid.effects(receiver, donor, measure, cells, effects)


class PatchGrid:
    """The cells of a map of patches: the states of two texts that can be carried.

    Raises:
        SelectionError, ShapeError: as `patch`.
    """

    def __init__(
        self,
        receiver: "Trace",
        donor: "Trace",
        *,
        carried: Carried = "heads",
        kind: Kind | None = None,
        layer: int | None = None,
        position: int | None = None,
    ) -> None:
        if carried not in CARRIED:
            raise SelectionError(f"“{carried}” was to be carried over; what can be is {', '.join(CARRIED)}.")
        self.kind: Kind = receiver.attention(0, kind).kind
        self.carried: Carried = carried
        self.layer = layer if carried in OF_HEADS else None
        self.is_of_heads = carried in OF_HEADS and self.layer is None
        self.position = position if self.is_of_heads else None
        self._trace = receiver
        if changed := (*receiver.interventions, *donor.interventions):
            raise SelectionError(
                f"States of a trace with an intervention ({changed[0]}) were to be carried over; they are those of the model's own "
                "runs. Trace both texts without interventions."
            )
        differing(receiver.tokens, donor.tokens)
        if receiver.target_tokens is not None and donor.target_tokens is not None:
            differing(receiver.target_tokens, donor.target_tokens)
        reads_keys = carried in ("key", "value")
        tokens = receiver.key_tokens(self.kind) if reads_keys else receiver.query_tokens(self.kind)
        self.receiver_tokens, self.n_token = tokens, len(tokens)
        self.donor_tokens = donor.key_tokens(self.kind) if reads_keys else donor.query_tokens(self.kind)
        if self.position is not None:
            check_index("token", self.position, self.n_token, "this text")

    def check_family(self, model: "Model") -> None:
        """Raises UnsupportedArchitectureError where scores depend on more than the queries and keys that are carried."""
        if self.carried in ("query", "key") and model.network.config.model_type in _BIASED_BY_DISTANCE:
            raise UnsupportedArchitectureError(
                f"The {ROLE_NAMES[self.carried]} of {model.name} were to be carried over; with them its scores also hold a bias "
                "of the distance of tokens, which would stay. Carry the patterns."
            )

    def n_heads(self, layer: int) -> int:
        """Number of heads of a layer, or of its keys and values, which heads may share."""
        call = self._trace.attention(layer, self.kind)
        return len(call.key if self.carried in ("key", "value") else call.query)

    @property
    def n_rows(self) -> int:
        """Layers, or heads of the layer."""
        return self._trace.n_layers(self.kind) if self.layer is None else self.n_heads(self.layer)

    def cells(self, rows: Iterable[int] | None = None) -> list[tuple[int, int]]:
        """Row and column of every cell of some rows; None for all."""
        places = []
        for row in range(self.n_rows) if rows is None else rows:
            check_index(
                "head" if self.layer is not None else "layer", row, self.n_rows, self._trace.provenance.model
            )
            places += [(row, at) for at in range(self.n_heads(row) if self.is_of_heads else self.n_token)]
        return places

    def effects(
        self,
        receiver: "Trace",
        donor: "Trace",
        measure: OutcomeMeasure,
        cells: Sequence[tuple[int, int]],
        outcomes: Float[np.ndarray, " cell"],
        *,
        end: PathEnd | None = None,
    ) -> PatchEffects:
        """The outcomes of some cells on the grid."""
        n_column = max(map(self.n_heads, range(self.n_rows))) if self.is_of_heads else self.n_token
        grid = np.full((self.n_rows, n_column), np.nan, dtype=np.float32)
        for cell, outcome in zip(cells, outcomes, strict=True):
            grid[cell] = outcome
        return PatchEffects(
            kind=self.kind,
            receiver_tokens=self.receiver_tokens,
            donor_tokens=self.donor_tokens,
            carried=self.carried,
            layer=self.layer,
            position=self.position,
            end=end,
            outcome=words_of(measure, receiver),
            unit=measure.unit if isinstance(measure, MeasuredOutcome) else "",
            base=unchanged(receiver, measure),
            donor=unchanged(donor, measure),
            outcomes=grid,
        )


def _state_carrier(
    model: "Model", donor: "Trace", grid: PatchGrid
) -> Callable[[int, int], list[Intervention]]:
    """A function of layer and token that gives the interventions which carry the donor's hidden state there."""
    where: Place = grid.carried  # type: ignore[assignment]  # not one of OF_HEADS
    states, stream = states_of(model, donor, where, grid.kind)
    return lambda row, token: [
        ReplacedState(kind=stream, layer=row, where=where, states=states[row], positions=(token,))
    ]


def states_of(
    model: "Model", trace: "Trace", where: Place, kind: Kind
) -> tuple[list[Float[np.ndarray, "token d_model"]], Kind]:
    """The hidden states of one place in every layer, and their kind, which is never "cross".

    Raises:
        SelectionError: attnviz does not know the place in this family.
    """
    stream: Kind = "decoder" if where != "attention" and kind == "cross" else kind
    states = hidden_states(model, trace).of(where)
    if (stream, 0) not in states:
        what, part = ("attention", "W_O") if where == "attention" else ("MLP", "MLP")
        raise SelectionError(
            f"The {what} outputs of {trace.provenance.model} were to be carried over; attnviz does not know its {part}. "
            "Carry the residual stream or the heads' outputs."
        )
    return [states[stream, layer] for layer in range(trace.n_layers(kind))], stream


def _carrier(receiver: "Trace", donor: "Trace", grid: PatchGrid) -> Callable[[int, int], list[Intervention]]:
    """A function of row and column that gives the interventions which carry the donor's part of a head there."""
    carried, kind = grid.carried, grid.kind
    outputs = cache(lambda layer: donor.outputs(layer, kind))
    weights = cache(lambda layer, is_donor: (donor if is_donor else receiver).layer_weights(layer, kind))

    def carry(row: int, column: int) -> list[Intervention]:
        head, positions = Head(row, column), None if grid.position is None else (grid.position,)
        if grid.layer is not None:
            head, positions = Head(grid.layer, row), (column,)
        place: dict[str, Any] = {"kind": kind, "layer": head.layer, "head": head.head}
        match carried:
            case "query" | "key" | "value":
                call = donor.attention(head.layer, kind)
                n_reading = 1 if carried == "query" else len(call.query) // len(call.key)
                return [
                    ReplacedVectors(
                        **place | {"head": head.head * n_reading + reading},
                        role=carried,
                        vectors=getattr(call, carried)[head.head],
                        positions=positions,
                    )
                    for reading in range(n_reading)
                ]
            case "pattern":
                made = weights(head.layer, True)[head.head]
                if positions is not None:  # other queries keep their own rows, which no change has reached
                    own = weights(head.layer, False)[head.head].copy()
                    own[list(positions)] = made[list(positions)]
                    made = own
                return [ReplacedWeights(**place, weights=made)]
        return [ReplacedOutput(**place, output=outputs(head.layer)[head.head], positions=positions)]

    return carry


def _matcher(receiver: Tokens, donor: Tokens) -> SequenceMatcher[int]:
    return SequenceMatcher(a=receiver.ids.tolist(), b=donor.ids.tolist(), autojunk=False)


def _differences(receiver: Tokens, donor: Tokens) -> str:
    """The first places where two texts differ, in words."""
    differences = []
    for what, first, stop, other, end in _matcher(receiver, donor).get_opcodes():
        if what != "equal":
            mine, theirs = " ".join(receiver.labels[first:stop]), " ".join(donor.labels[other:end])
            differences.append(f"“{mine}” and “{theirs}”" if mine and theirs else f"“{mine or theirs}”")
    return ", ".join(differences[:3]) + " and more" * (len(differences) > 3)
