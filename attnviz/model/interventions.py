"""Changes inside a forward pass: what is changed, in which layers and heads.

The Intervention, and its kinds is applied during one forward pass (`attnviz.model.changes`); the model itself is
not changed, so that passes do not affect each other.

In each attention, queries, keys and values are changed first, then the keys that may be seen, then weights, then outputs;
several of one kind are applied in the order in which they are given. numpy only.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float

from attnviz.errors import SelectionError, ShapeError
from attnviz.records import ROLE_NAMES, Head, Kind, Record, Role, check_index

Place = Literal["before", "layer", "attention", "mlp"]
"""Where a hidden state is replaced: ``before``, the residual stream before the layer; ``layer``, the residual stream after it;
``attention``, the output of its W_O, and ``mlp``, what its MLP adds to the residual stream, each before it is added."""
_PLACE_NAMES: Mapping[Place, str] = {
    "before": "residual stream before it",
    "layer": "residual stream",
    "attention": "attention output",
    "mlp": "MLP output",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Intervention(Record):
    """Base of the changes: in one layer or all layers, and in one head or all heads."""

    kind: Kind | None = None
    """Kind of attention; None for all kinds of the model. A change with an array names the kind whose shape the array has."""
    layer: int | None = None
    """Layer, from 0; None for every layer."""
    head: int | None = None
    """Head, from 0; None for every head."""

    def concerns(self, kind: Kind, layer: int) -> bool:
        """Whether this layer is changed."""
        return self.kind in (None, kind) and self.layer in (None, layer)

    def check_head(self, n_head: int, layer: int) -> None:
        """Raises SelectionError where a layer with so many heads does not have the head."""
        if self.head is not None:
            check_index("head", self.head, n_head, f"layer {layer}")

    @property
    def place(self) -> str:
        """Where the change applies, as in "layer 3, head 1" or "every layer, every head"."""
        if self.layer is not None and self.head is not None:
            words = Head(self.layer, self.head).words
        else:
            layer = "every layer" if self.layer is None else f"layer {self.layer}"
            words = f"{layer}, {'every head' if self.head is None else f'head {self.head}'}"
        return words if self.kind is None else f"{self.kind} {words}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MaskedKeys(Intervention):
    """Queries see fewer keys: the scores of the others are minus infinity, so that the rows still sum to 1."""

    allowed: Bool[np.ndarray, "query key"]
    """Keys that each query may see from now on; those that the model forbids stay forbidden."""

    def __str__(self) -> str:
        return f"{self.place}: {int((~self.allowed).sum())} of {self.allowed.size} cells masked"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplacedWeights(Intervention):
    """Attention weights that replace the softmax's; used as they are, whatever is masked."""

    weights: Float[np.ndarray, "query key"]

    def __str__(self) -> str:
        return f"{self.place}: weights replaced"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScaledOutput(Intervention):
    """The head's output times a number: 0 switches the head off, 1 changes nothing."""

    factor: float

    def __str__(self) -> str:
        return f"{self.place}: output × {self.factor:g}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplacedOutput(Intervention):
    """An output that replaces the head's: its mean over other sentences, or its output for another text."""

    output: Float[np.ndarray, "#query d_value"]
    """One row for each query, or one row for all of them."""
    positions: tuple[int, ...] | None = None
    """Queries whose output is replaced; None for all."""

    def __str__(self) -> str:
        return f"{self.place}: output replaced{_at(self.positions)}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplacedVectors(Intervention):
    """Queries, keys or values that replace the head's own, in the form in which scores and weighted mean read them.

    Heads are query heads: where several share keys and values, the other heads still read the model's own.
    """

    role: Role
    vectors: Float[np.ndarray, "#token d_head"]
    """One row for each query or key, or one row for all of them."""
    positions: tuple[int, ...] | None = None
    """Tokens whose vector is replaced; None for all."""

    def __str__(self) -> str:
        return f"{self.place}: {ROLE_NAMES[self.role]} replaced{_at(self.positions)}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplacedState(Intervention):
    """Hidden states that replace a layer's own, such as those of another text. There is no head.

    The residual stream of an encoder-decoder model's decoder is of kind "decoder".
    """

    states: Float[np.ndarray, "token d_model"]
    where: Place = "layer"
    positions: tuple[int, ...] | None = None
    """Tokens whose state is replaced; None for all."""

    def __str__(self) -> str:
        layer = "every layer" if self.layer is None else f"layer {self.layer}"
        kind = "" if self.kind is None else f"{self.kind} "
        return f"{kind}{layer}: {_PLACE_NAMES[self.where]} replaced{_at(self.positions)}"


def replaced_weights(
    interventions: Iterable[Intervention], kind: Kind, layer: int, n_head: int
) -> dict[int, Float[np.ndarray, "query key"]]:
    """The weights that replace those of heads of a layer after all interventions, by head; most heads keep their own."""
    weights = {}
    for intervention in interventions:
        if isinstance(intervention, ReplacedWeights) and intervention.concerns(kind, layer):
            heads = range(n_head) if intervention.head is None else [intervention.head]
            weights.update(dict.fromkeys(heads, intervention.weights))
    return weights


def check_layers(interventions: Iterable[Intervention], n_layers: Mapping[Kind, int]) -> None:
    """Raises SelectionError where an intervention names a layer or kind that the model does not have."""
    for intervention in interventions:
        if not any(
            intervention.concerns(kind, layer) for kind, count in n_layers.items() for layer in range(count)
        ):
            where = ", ".join(f"{count} of {kind} attention" for kind, count in n_layers.items())
            raise SelectionError(
                f"An intervention at layer {intervention.layer} of {intervention.kind or 'any'} attention was asked for; the model "
                f"has layers counted from 0, {where}. Select one of those."
            )


def check_shape(what: str, given: tuple[int, ...], wanted: tuple[int, ...], where: str) -> None:
    """Raises ShapeError where the numbers of an intervention do not fit a layer; a length of 1 fits any."""
    if len(given) != len(wanted) or any(
        size not in (1, other) for size, other in zip(given, wanted, strict=True)
    ):
        asked, has = (" x ".join(map(str, shape)) for shape in (given, wanted))
        raise ShapeError(f"The intervention's {what} is {asked}; {where} has {has}. Make it as large.")


def check_mask(masked: MaskedKeys, layer: int, n_query: int, n_key: int) -> None:
    """Raises ShapeError where a mask is of another number of queries or keys than the layer's."""
    if masked.allowed.shape != (n_query, n_key):
        raise ShapeError(
            f"The intervention's mask is {masked.allowed.shape[0]} x {masked.allowed.shape[1]}; layer {layer} has "
            f"{n_query} queries and {n_key} keys. Make the mask as large."
        )


def _at(positions: tuple[int, ...] | None) -> str:
    if positions is None:
        return ""
    return f" at token{'s' * (len(positions) != 1)} {', '.join(map(str, positions))}"
