"""The interventions of one forward pass, applied to what passes through it.

The last rows may be missing in layers below their first change.
"""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnviz.errors import CaptureError, SelectionError
from attnviz.maths.attention import expand_heads
from attnviz.model.interventions import (
    Intervention,
    MaskedKeys,
    Place,
    ReplacedOutput,
    ReplacedState,
    ReplacedVectors,
    ReplacedWeights,
    ScaledOutput,
    check_mask,
    check_shape,
)
from attnviz.records import Kind, Role, check_index

OneKind = TypeVar("OneKind", bound=Intervention)


class Changes:
    """Interventions of each row of a batch; the numbers that they change are not kept."""

    def __init__(self, rows: Sequence[Sequence[Intervention]] = ((),)) -> None:
        self.rows = tuple(tuple(row) for row in rows)
        self.is_asked = any(self.rows)
        """Whether a pass asks for changes at all, which takes time."""
        self._applied: set[int] = set()  # ids of the states that were replaced

    def allowed(self, kind: Kind, layer: int, shape: tuple[int, int, int, int]) -> Bool[Tensor, "..."] | None:
        """True where the interventions let a query of a layer see a key, [row, 1 or head, query, key], on the CPU.

        None where no intervention masks any key.

        Args:
            shape: rows, heads, queries and keys.

        Raises:
            CaptureError: as `change_outputs`.
            SelectionError: a head that the layer does not have.
            ShapeError: a mask for another number of queries or keys.
        """
        masks: dict[int, np.ndarray] = {}
        n_row, n_head, n_query, n_key = shape
        for row, change in self._of(MaskedKeys, kind, layer):
            self._check_row(row, n_row, layer)
            check_mask(change, layer, n_query, n_key)
            change.check_head(n_head, layer)
            mask = change.allowed[None]
            if change.head is not None:
                mask = mask | (np.arange(n_head) != change.head)[:, None, None]
            masks[row] = mask if row not in masks else masks[row] & mask
        if not masks:
            return None
        if n_row == 1:
            return torch.tensor(masks[0])[None]
        left = torch.ones(shape, dtype=torch.bool)
        for row, mask in masks.items():
            left[row] &= torch.tensor(mask)
        return left

    def changed_vectors(
        self,
        kind: Kind,
        layer: int,
        query: Float[Tensor, "row head query d_head"],
        key: Float[Tensor, "row kv_head key d_head"],
        value: Float[Tensor, "row kv_head key d_value"],
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of a layer after the interventions; the same tensors where there are none.

        Where keys or values change, both have an entry for each head that reads them, even if heads share the model's own.

        Raises:
            CaptureError, SelectionError, ShapeError: as `change_outputs`.
        """
        vectors: dict[Role, Tensor] = {"query": query, "key": key, "value": value}
        wanted = list(self._of(ReplacedVectors, kind, layer))
        if any(change.role != "query" for _, change in wanted):
            vectors["key"], vectors["value"] = (
                expand_heads(vectors, query.shape[1]) for vectors in (key, value)
            )
        for role in {change.role for _, change in wanted}:
            vectors[role] = vectors[role].clone()
        for row, change in wanted:
            made = vectors[change.role]
            n_row, n_head, n_token, d_head = made.shape
            heads = self._heads(change, row, n_row, n_head, layer)
            check_shape(
                f"array of {change.role} vectors",
                change.vectors.shape,
                (n_token, d_head),
                f"a head of layer {layer}",
            )
            given = torch.tensor(change.vectors).to(made).expand(n_token, d_head)
            at = _positions(change.positions, n_token)
            made[row, heads][:, at] = given[at]
        return vectors["query"], vectors["key"], vectors["value"]

    def change_outputs(
        self,
        kind: Kind,
        layer: int,
        output: Float[Tensor, "row head query d_value"],
        value: Float[Tensor, "#row head key d_value"],
    ) -> None:
        """Changes the outputs of the heads of a layer in place: replaced weights first, then outputs.

        Raises:
            CaptureError: the rows of the batch were not separate before this layer.
            SelectionError: a head or position that the layer does not have.
            ShapeError: numbers that do not fit the layer.
        """
        n_row, n_head, n_query, d_value = output.shape
        where = f"a head of layer {layer}"
        for row, weights in self._of(ReplacedWeights, kind, layer):
            check_shape("matrix of weights", weights.weights.shape, (n_query, value.shape[2]), where)
            heads = self._heads(weights, row, n_row, n_head, layer)
            given = torch.tensor(weights.weights).to(output)
            output[row, heads] = given.expand(n_query, value.shape[2]) @ value[row % len(value), heads]
        for row, change in self._of((ScaledOutput, ReplacedOutput), kind, layer):
            heads = self._heads(change, row, n_row, n_head, layer)
            if isinstance(change, ScaledOutput):
                output[row, heads] *= change.factor
            elif isinstance(change, ReplacedOutput):
                check_shape("output", change.output.shape, (n_query, d_value), where)
                given = torch.tensor(change.output).to(output).expand(n_query, d_value)
                at = _positions(change.positions, n_query)
                output[row, heads][:, at] = given[at]

    def changed_states(
        self, where: Place, kind: Kind, layer: int, states: Float[Tensor, "row token d_model"]
    ) -> Float[Tensor, "row token d_model"]:
        """The hidden states of a layer after the interventions; the same tensor where there are none.

        Raises:
            CaptureError: as `change_outputs`.
            SelectionError, ShapeError: positions or numbers that do not fit the layer.
        """
        changed = states
        for row, change in self._of(ReplacedState, kind, layer):
            if change.where != where:
                continue
            self._check_row(row, len(states), layer)
            if changed is states:
                changed = states.clone()
            given = torch.tensor(change.states).to(states)
            check_shape("array of states", tuple(given.shape), tuple(states.shape[1:]), f"layer {layer}")
            at = _positions(change.positions, states.shape[1])
            changed[row, at] = given.expand(states.shape[1:])[at]
            self._applied.add(id(change))
        return changed

    def check_applied(self) -> None:
        """Raises SelectionError where hidden states were to be replaced and the model has no such place."""
        for change in (each for row in self.rows for each in row if isinstance(each, ReplacedState)):
            if id(change) not in self._applied:
                raise SelectionError(
                    f"An intervention was asked for: {change}. This model has no such place that attnviz knows. "
                    "Select another layer, or an output of a head."
                )

    def _of(
        self, wanted: type[OneKind] | tuple[type[OneKind], ...], kind: Kind, layer: int
    ) -> Iterator[tuple[int, OneKind]]:
        for row, of_row in enumerate(self.rows):
            for change in of_row:
                if isinstance(change, wanted) and change.concerns(kind, layer):
                    yield row, change

    def _check_row(self, row: int, n_row: int, layer: int) -> None:
        if row >= n_row:
            raise CaptureError(
                f"{len(self.rows)} variants of a text were to be told apart in layer {layer}, row {row} among them; the "
                f"model ran on {n_row}. Report this model; its numbers are not shown."
            )

    def _heads(self, change: Intervention, row: int, n_row: int, n_head: int, layer: int) -> slice:
        self._check_row(row, n_row, layer)
        change.check_head(n_head, layer)
        return slice(None) if change.head is None else slice(change.head, change.head + 1)


def _positions(positions: tuple[int, ...] | None, n_token: int) -> slice | list[int]:
    if positions is None:
        return slice(None)
    return [check_index("token", position, n_token, "this text") for position in positions]
