"""The interventions of a trace as a bundle holds them: their form in provenance.json, their arrays, and checks that they fit.

The changes of a run, written and read without trusting them. Each intervention has at most one array,
``intervention.0`` and so on by its place in the list, so that a file holds the bytes of every array.
"""

from collections.abc import MutableMapping, Sequence
from math import isfinite
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Struct

from attnviz.bundle import bounds
from attnviz.bundle.bounds import LARGEST_NUMBER, MOST_CHANGES, MOST_TOKENS, check_numbers
from attnviz.bundle.refusal import require
from attnviz.errors import BundleError
from attnviz.figures.labels import shortened
from attnviz.model.interventions import (
    Intervention,
    MaskedKeys,
    Place,
    ReplacedOutput,
    ReplacedState,
    ReplacedVectors,
    ReplacedWeights,
    ScaledOutput,
)
from attnviz.model.trace import Trace
from attnviz.records import Kind, Role

Count = Annotated[int, Meta(ge=0, le=np.iinfo(np.int64).max)]
Positions = Annotated[tuple[Count, ...], Meta(max_length=MOST_TOKENS)]

_SAID = 3
"""Most interventions that a line names; of the others it says how many there are."""
_LONGEST_SAID = 120


class _Part(Struct, frozen=True, tag_field="type"):
    """Where an intervention applies."""

    kind: Kind | None
    layer: Count | None
    head: Count | None


class MaskedKeysPart(_Part, frozen=True, tag="MaskedKeys"):
    """The array is ``allowed``."""


class ReplacedWeightsPart(_Part, frozen=True, tag="ReplacedWeights"):
    """The array is ``weights``."""


class ScaledOutputPart(_Part, frozen=True, tag="ScaledOutput"):
    """It has no array."""

    factor: Annotated[float, Meta(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)]


class ReplacedOutputPart(_Part, frozen=True, tag="ReplacedOutput"):
    """The array is ``output``."""

    positions: Positions | None


class ReplacedVectorsPart(_Part, frozen=True, tag="ReplacedVectors"):
    """The array is ``vectors``."""

    role: Role
    positions: Positions | None


class ReplacedStatePart(_Part, frozen=True, tag="ReplacedState"):
    """The array is ``states``."""

    where: Place
    positions: Positions | None


Change = (
    MaskedKeysPart
    | ReplacedWeightsPart
    | ScaledOutputPart
    | ReplacedOutputPart
    | ReplacedVectorsPart
    | ReplacedStatePart
)
Changes = Annotated[tuple[Change, ...], Meta(max_length=MOST_CHANGES)]

_TYPES: dict[type[Intervention], tuple[type[Change], str | None]] = {
    MaskedKeys: (MaskedKeysPart, "allowed"),
    ReplacedWeights: (ReplacedWeightsPart, "weights"),
    ScaledOutput: (ScaledOutputPart, None),
    ReplacedOutput: (ReplacedOutputPart, "output"),
    ReplacedVectors: (ReplacedVectorsPart, "vectors"),
    ReplacedState: (ReplacedStatePart, "states"),
}
"""By intervention, its form in JSON and the field that is its array."""


def changes_document(interventions: Sequence[Intervention]) -> list[Any]:
    """The interventions as in provenance.json, without their arrays."""
    parts = []
    for intervention in interventions:
        form, _ = _form(intervention)
        fields = {name: getattr(intervention, name) for name in form.__struct_fields__}
        parts.append(msgspec.to_builtins(form(**fields)))
    return parts


def changes_arrays(interventions: Sequence[Intervention]) -> dict[str, np.ndarray]:
    """The arrays of the interventions, by name."""
    arrays: dict[str, np.ndarray] = {}
    for number, intervention in enumerate(interventions):
        name = _form(intervention)[1]
        if name is not None:
            dtype = np.bool_ if name == "allowed" else np.float32
            arrays[array_name(number)] = np.ascontiguousarray(getattr(intervention, name), dtype=dtype)
    return arrays


def array_name(number: int) -> str:
    """Name of the array of the intervention at this place of the list."""
    return f"intervention.{number}"


def read_changes(
    parts: Sequence[Change], arrays: MutableMapping[str, np.ndarray]
) -> tuple[Intervention, ...]:
    """The interventions; their arrays are removed from ``arrays``. `check_changes` checks whether they fit a trace.

    Raises:
        BundleError: an array is missing, or has the wrong type.
    """
    kinds = {form: (kind, name) for kind, (form, name) in _TYPES.items()}
    interventions = []
    for number, part in enumerate(parts):
        kind, name = kinds[type(part)]
        fields: dict[str, Any] = {
            struct_field: getattr(part, struct_field) for struct_field in part.__struct_fields__
        }
        if name is not None:
            array = arrays.pop(array_name(number), None)
            require(array is not None, f"the array of its intervention {number} is missing.")
            assert array is not None
            dtype = np.bool_ if name == "allowed" else np.float32
            require(
                array.ndim == 2 and array.dtype == dtype,
                f"the array of its intervention {number} has the wrong number of axes or the wrong type.",
            )
            fields[name] = array
        interventions.append(kind(**fields))
    return tuple(interventions)


def check_changes(trace: Trace) -> None:
    """Raises BundleError for an intervention that does not fit the trace, or whose numbers become too large."""
    n_changed = n_replaced = 0
    for number, intervention in enumerate(trace.interventions):
        name = _form(intervention)[1]
        places = [
            (kind, layer)
            for kind in trace.kinds
            for layer in range(trace.n_layers(kind))
            if intervention.concerns(kind, layer)
        ]
        if not places:
            raise _unfit(intervention, "is at a layer or kind of attention that the bundle does not contain")
        for kind, layer in places:
            if intervention.head is not None and intervention.head >= trace.n_heads(layer, kind):
                raise _unfit(
                    intervention, f"is at a head that layer {layer} of {kind} attention does not have"
                )
        for kind in dict.fromkeys(kind for kind, _ in places):
            _check_kind(intervention, None if name is None else getattr(intervention, name), trace, kind)
        if name is not None:
            check_numbers(array_name(number), np.asarray(getattr(intervention, name)))
        if isinstance(intervention, ScaledOutput) and not (
            isfinite(intervention.factor) and abs(intervention.factor) <= LARGEST_NUMBER
        ):
            raise _unfit(intervention, "has a factor that is not finite or too large")
        for kind, layer in places:
            n_head = trace.n_heads(layer, kind) if intervention.head is None else 1
            n_changed += n_head
            n_replaced += isinstance(intervention, ReplacedWeights) * n_head * _n_cells(trace, kind)
    if n_changed > MOST_CHANGES or n_replaced > bounds.MOST_WEIGHTS:
        raise BundleError(
            f"The interventions change heads {n_changed:,} times and replace {n_replaced / 1e6:,.0f} million attention weights; a "
            f"bundle holds at most {MOST_CHANGES:,} changes and {bounds.MOST_WEIGHTS / 1e6:,.0f} million weights. Use fewer "
            "interventions."
        )
    _check_replaced(trace)
    _check_outputs(trace)


def changes_in_words(interventions: Sequence[Intervention]) -> str:
    """What was changed, in one line: "layer 3, head 1: output × 0; and 4 more"."""
    shown = [shortened(str(intervention), _LONGEST_SAID) for intervention in interventions[:_SAID]]
    n_more = len(interventions) - len(shown)
    return "; ".join([*shown, *([f"and {n_more:,} more"] if n_more else [])])


def _form(intervention: Intervention) -> tuple[type[Change], str | None]:
    if type(intervention) not in _TYPES:
        raise BundleError(
            f"A bundle of a run with an intervention of type {type(intervention).__name__} was asked for; a bundle can hold "
            f"{', '.join(kind.__name__ for kind in _TYPES)}. Use one of those."
        )
    return _TYPES[type(intervention)]


def _check_kind(intervention: Intervention, array: np.ndarray | None, trace: Trace, kind: Kind) -> None:
    """Raises BundleError where an intervention does not fit a kind of attention that it changes."""
    n_query, n_key = len(trace.query_tokens(kind)), len(trace.key_tokens(kind))
    n_token = n_key if isinstance(intervention, ReplacedVectors) and intervention.role != "query" else n_query
    positions = (
        intervention.positions
        if isinstance(intervention, ReplacedOutput | ReplacedVectors | ReplacedState)
        else None
    )
    if any(not 0 <= at < n_token for at in positions or ()):
        raise _unfit(intervention, f"is at a token that is not one of the {n_token} of the text")
    match intervention:
        case MaskedKeys() | ReplacedWeights():
            fits = _is(array, (n_query,), (n_key,))
            wanted = f"{n_query} x {n_key}"
        case ReplacedOutput():
            d_value = trace.attention(0, kind).value.shape[2]
            fits = _is(array, (1, n_query), (1, d_value))
            wanted = f"{n_query} x {d_value}"
        case ReplacedVectors():
            d_head = getattr(trace.attention(0, kind), intervention.role).shape[2]
            fits = _is(array, (1, n_token), (1, d_head))
            wanted = f"{n_token} x {d_head}"
        case ReplacedState():  # a stream may be wider than the last hidden state, as OPT's is
            fits = _is(array, (1, n_query))
            wanted = f"{n_query} rows"
        case _:
            return
    if not fits:
        shape = " x ".join(map(str, () if array is None else array.shape))
        raise _unfit(intervention, f"has an array of {shape} numbers where {kind} attention has {wanted}")


def _is(array: np.ndarray | None, rows: tuple[int, ...], columns: tuple[int, ...] | None = None) -> bool:
    if array is None or array.ndim != 2 or array.shape[0] not in rows:
        return False
    return columns is None or array.shape[1] in columns


def _n_cells(trace: Trace, kind: Kind) -> int:
    return len(trace.query_tokens(kind)) * len(trace.key_tokens(kind))


def _check_replaced(trace: Trace) -> None:
    """Raises BundleError where replaced weights are not from 0 to 1, or so large that rollout would overflow."""
    sums = {
        number: float(replaced.weights.sum(axis=1, dtype=np.float64).max())
        for number, replaced in enumerate(trace.interventions)
        if isinstance(replaced, ReplacedWeights)
    }
    for number in sums:
        replaced = trace.interventions[number]
        assert isinstance(replaced, ReplacedWeights)
        if not 0 <= float(replaced.weights.min()) <= float(replaced.weights.max()) <= 1:
            raise _unfit(replaced, "has weights that are not from 0 to 1, as pages draw them")
    for kind in trace.kinds:
        reached = 1.0  # no number of a rollout is larger
        for layer in range(trace.n_layers(kind)):
            here = [of for number, of in sums.items() if trace.interventions[number].concerns(kind, layer)]
            reached *= 0.5 + 0.5 * max([1.0, *here])
            if reached > LARGEST_NUMBER:
                raise BundleError(
                    "The rows of the weights that interventions put in place sum to so much that a rollout through the layers is too "
                    "large. Use weights whose rows sum to 1."
                )


def _check_outputs(trace: Trace) -> None:
    """Raises BundleError where outputs of heads that interventions change are not finite, or too large."""
    of_outputs = [
        intervention
        for intervention in trace.interventions
        if isinstance(intervention, ReplacedWeights | ScaledOutput | ReplacedOutput)
    ]
    for kind in trace.kinds:
        for layer in range(trace.n_layers(kind)):
            if any(of_output.concerns(kind, layer) for of_output in of_outputs):
                check_numbers(f"the output of the heads of layer {layer}", trace.outputs(layer, kind))


def _unfit(intervention: Intervention, reason: str) -> BundleError:
    return BundleError(
        f"An intervention of this bundle ({shortened(str(intervention), _LONGEST_SAID)}) {reason}. Export the run again, or select another "
        "file."
    )
