"""Every patch at once, to first order: the gradient of the outcome times the difference of the two texts' states.

Where a is a state of the receiver's run and a' the donor's, the outcome with a' in the place of a is taken as

    f + (a' - a) · ∂f/∂a

with the gradient in the receiver's run: one pass forward and one back for every state there is. An attention pattern A makes the
output A V of its head, so its term is (A' V - A V) · ∂f/∂(A V). Its error is known only where a state was also patched:
`compared`.

Source: Nanda 2023, "Attribution Patching: Activation Patching At Industrial Scale"
(neelnanda.io/mechanistic-interpretability/attribution-patching); Syed et al. 2023, "Attribution Patching Outperforms Automated
Circuit Discovery" (arXiv:2310.10348), equation 3.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnviz.arguments import typed
from attnviz.effects.outcome import (
    AnyOutcome,
    MeasuredOutcome,
    TokenAnswer,
    TokenState,
    measured,
    refuse_no_gradient,
    unchanged,
)
from attnviz.effects.patching import OF_HEADS, Carried, PatchEffects, PatchGrid, states_of
from attnviz.errors import SelectionError, enough_memory
from attnviz.maths.attention import expand_heads
from attnviz.maths.gradients import differentiable
from attnviz.model.capture import forward, recorded
from attnviz.model.changes import Changes
from attnviz.model.interventions import Place
from attnviz.model.variants import OutcomeMeasure
from attnviz.records import Kind, Record, Role

if TYPE_CHECKING:
    from attnviz.model.model import Model
    from attnviz.model.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison(Record):
    """Error of the gradient's outcomes, over the cells whose outcomes were measured."""

    n_cell: int
    mean: float
    """Mean absolute error, in the unit of the outcome."""
    largest: float
    """Largest absolute error."""
    worst: tuple[int, int]
    """Row and column of that cell."""
    correlation: float
    """Pearson's, of approximate and measured changes; NaN where either is the same everywhere."""


def compared(exact: PatchEffects, approximate: PatchEffects) -> Comparison | None:
    """The error of the approximation on the cells that were patched exactly; None if there are no such cells."""
    known = np.isfinite(exact.outcomes) & np.isfinite(approximate.outcomes)
    if not known.any():
        return None
    errors = np.where(known, np.abs(approximate.outcomes - exact.outcomes), -1)
    exact_errors = errors[known].astype(np.float64)
    first, second = (estimates.changes[known].astype(np.float64) for estimates in (exact, approximate))
    first, second = first - first.mean(), second - second.mean()
    size = float(np.sqrt((first @ first) * (second @ second)))
    row, column = np.unravel_index(int(errors.argmax()), errors.shape)
    return Comparison(
        n_cell=len(exact_errors),
        mean=float(exact_errors.mean()),
        largest=float(exact_errors.max()),
        worst=(int(row), int(column)),
        correlation=float(first @ second) / size if size > 0 else float("nan"),
    )


@typed
@differentiable()
def attribute_patches(
    model: "Model",
    receiver: "Trace",
    donor: "Trace",
    outcome: AnyOutcome,
    *,
    carried: Carried = "layer",
    kind: Kind | None = None,
    layer: int | None = None,
    position: int | None = None,
) -> PatchEffects:
    """As `attnviz.effects.patching.patch`, for all rows, with outcomes to first order.

    Raises:
        ArgumentError: as `patch`; also for an outcome without a gradient.
        OutOfMemoryError: the text is too long for the memory that is left.
        SelectionError, ShapeError, UnsupportedArchitectureError: as `patch`; also for an outcome that is the change of a token's
            state, whose gradient is 0 where nothing has changed, or a rank, which has none.
    """
    measure = measured(model, receiver, outcome)
    value = measure.outcome if isinstance(measure, MeasuredOutcome) else None
    if isinstance(value, TokenState):
        raise SelectionError(
            "The gradient of a change of a token's state was asked for; the change is smallest in the unchanged run, where its "
            "gradient is 0. Measure another outcome."
        )
    if isinstance(value, TokenAnswer) and value.by == "rank":
        raise SelectionError(
            "The gradient of a rank was asked for; a rank changes in steps, and has no gradient. Measure a difference of logits "
            "or a probability."
        )
    grid = PatchGrid(receiver, donor, carried=carried, kind=kind, layer=layer, position=position)
    grid.check_family(model)
    unchanged(receiver, measure)
    refuse_no_gradient(receiver, measure, "patch each state (attnviz.patch)")
    terms = _terms(model, receiver, donor, measure, grid)
    cells = grid.cells()
    changes = np.zeros(len(cells))
    for number, (row, column) in enumerate(cells):
        if grid.layer is not None:
            changes[number] = terms[grid.layer][row, column]
        elif grid.is_of_heads:
            of_tokens = terms[row][column]
            changes[number] = of_tokens.sum() if grid.position is None else of_tokens[grid.position]
        else:
            changes[number] = terms[row][0, column]
    return grid.effects(receiver, donor, measure, cells, unchanged(receiver, measure) + changes)


def _terms(
    model: "Model",
    receiver: "Trace",
    donor: "Trace",
    measure: OutcomeMeasure,
    grid: PatchGrid,
) -> Mapping[int, Float[np.ndarray, "head token"]]:
    """Of each layer, (a' - a) · ∂f/∂a of each head and token; hidden states count as one head."""
    kind, carried = grid.kind, grid.carried
    layers = range(receiver.n_layers(kind)) if grid.layer is None else (grid.layer,)
    noted = _NotedTensors()
    with enough_memory():
        with recorded(model.network, noted, keeps=False):
            last = forward(model.network, **model.inputs(receiver.tokens, receiver.target_tokens))
        outcome = measure(last.last_hidden_state.float())
        if carried in OF_HEADS:
            places = [
                noted.heads[carried if carried != "pattern" else "heads", kind, layer] for layer in layers
            ]
        else:
            where: Place = carried  # type: ignore[assignment]
            mine, stream = states_of(model, receiver, where, kind)
            theirs, _ = states_of(model, donor, where, kind)
            places = [noted.states[where, stream, layer] for layer in layers]
        gradients = torch.autograd.grad(outcome.sum(), places, allow_unused=True)
    terms = {}
    for number, layer in enumerate(layers):
        gradient = gradients[number]
        of_place = np.zeros(places[number].shape) if gradient is None else gradient.double().cpu().numpy()
        if carried in OF_HEADS:
            difference = _difference(receiver, donor, carried, kind, layer)
            terms[layer] = np.einsum("htd,htd->ht", of_place[0], difference)
        else:
            difference = theirs[layer].astype(np.float64) - mine[layer]
            terms[layer] = np.einsum("td,td->t", of_place[0], difference)[None]
    return terms


def _difference(
    receiver: "Trace", donor: "Trace", carried: Carried, kind: Kind, layer: int
) -> Float[np.ndarray, "head token d_head"]:
    """The donor's part of each head minus the receiver's; of a pattern, the change of the head's output."""
    mine, theirs = (trace.attention(layer, kind) for trace in (receiver, donor))
    if carried == "pattern":
        weights = donor.layer_weights(layer, kind).astype(np.float64) - receiver.layer_weights(layer, kind)
        values = expand_heads(torch.tensor(mine.value), len(mine.query)).double().numpy()
        return np.asarray(weights @ values)
    if carried == "heads":
        return np.asarray(donor.outputs(layer, kind).astype(np.float64) - receiver.outputs(layer, kind))
    return np.asarray(getattr(theirs, carried).astype(np.float64) - getattr(mine, carried))


class _NotedTensors(Changes):
    """Changes nothing, and keeps what passes as parts of one autograd graph, whose leaves are the inputs of the first layers."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = True
        self.states: dict[tuple[Place, Kind, int], Tensor] = {}
        self.heads: dict[tuple[Role | str, Kind, int], Tensor] = {}

    def changed_states(self, where: Place, kind: Kind, layer: int, states: Tensor) -> Tensor:
        if where == "before" and layer == 0:
            states = states.detach().clone().requires_grad_()
        self.states[where, kind, layer] = states
        return states

    def changed_vectors(
        self, kind: Kind, layer: int, query: Tensor, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        vectors: dict[Role, Tensor] = {"query": query, "key": key, "value": value}
        for role, made in vectors.items():
            self.heads[role, kind, layer] = made
        return query, key, value

    def change_outputs(self, kind: Kind, layer: int, output: Tensor, value: Tensor) -> None:
        self.heads["heads", kind, layer] = output
