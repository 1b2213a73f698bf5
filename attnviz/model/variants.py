"""Many variants of one text through one forward pass: each row of the batch has interventions of its own.

Below its first change a variant equals the unchanged run, so its row joins at the layer of that change, as a copy of
the first row, which belongs to the variant whose first change comes last.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnviz.errors import CaptureError, SelectionError
from attnviz.model.capture import forward, recorded
from attnviz.model.changes import Changes
from attnviz.model.interventions import Intervention, check_layers
from attnviz.records import Progress

if TYPE_CHECKING:
    from attnviz.model.model import Model
    from attnviz.model.trace import Trace

Variant = Sequence[Intervention]
OutcomeMeasure = Callable[[Tensor], Tensor]
"""A number of the last hidden states of each variant, [variant, token, d_model] -> [variant]."""

TOKENS_AT_ONCE = 1024
"""Most tokens of all rows of a batch: more are no faster on two cores, and need more memory. At bert-base's sizes,
12 variants of 64 tokens take as long per variant as 36."""
MOST_SCORES = 2**24
"""Most scores of all heads and rows at a time, 64 MB in float32."""

_ALL_ROWS = frozenset({"gpt_bigcode"})
"""Families that expect as many rows after their layers as before them, so that every layer runs on all rows. transformers
5.23.0: ``hidden_states.view(output_shape)`` in GPTBigCodeModel.forward."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Variants that run together, by their index among those asked for."""

    variants: tuple[int, ...]
    """The variant of each row."""
    joins: tuple[int, ...]
    """How many layers run before each row joins, in ascending order: 0 for the first row, which all others copy."""


def measured_variants(
    model: "Model",
    trace: "Trace",
    variants: Sequence[Variant],
    measure: OutcomeMeasure,
    *,
    progress: Progress | None = None,
) -> Float[np.ndarray, " variant"]:
    """A number of each variant's last hidden states, in the order of the variants.

    Args:
        trace: of the text without interventions.
        measure: called with some variants at a time, [variant, token, d_model].
        progress: called with the share that is done, 0 to 1, after each layer.

    Raises:
        SelectionError, ShapeError, CaptureError, ModelFailedError, OutOfMemoryError: as `states_of_variants`.
    """
    numbers = np.zeros(len(variants), dtype=np.float32)
    for places, states in states_of_variants(model, trace, variants, progress=progress):
        with torch.inference_mode():
            numbers[list(places)] = measure(states).float().cpu().numpy()
    return numbers


def states_of_variants(
    model: "Model", trace: "Trace", variants: Sequence[Variant], *, progress: Progress | None = None
) -> Iterator[tuple[tuple[int, ...], Float[Tensor, "variant token d_model"]]]:
    """The last hidden states of some variants at a time, after their indices in ``variants``.

    Args:
        trace: of the text without interventions.
        variants: the interventions of each.
        progress: as `measured_variants`.

    Raises:
        CaptureError: the family does not keep variants separate in one pass.
        ModelFailedError, OutOfMemoryError: as `attnviz.model.capture.forward`.
        SelectionError: an intervention at a layer, head or token that does not exist, or a trace that has interventions.
        ShapeError: an intervention whose numbers do not fit the text.
    """
    if trace.interventions:
        raise SelectionError(
            f"Variants of a trace with an intervention ({trace.interventions[0]}) were asked for; they begin from the model's "
            "own run. Trace the text without interventions."
        )
    n_layers = {kind: trace.n_layers(kind) for kind in trace.kinds}
    check_layers([change for variant in variants for change in variant], n_layers)
    inputs = model.inputs(trace.tokens, trace.target_tokens)
    n_call, n_done = sum(n_layers.values()), 0
    for batch in batches(trace, variants):
        some = [variants[variant] for variant in batch.variants]

        def tell(n_called: int, before: int = n_done, n_row: int = len(some)) -> None:
            if progress is not None:
                progress((before + n_row * n_called / n_call) / len(variants))

        states = run_rows(model, inputs, Changes(some), batch.joins, tell)
        assert states is not None  # these changes do not stop the pass
        yield batch.variants, states
        n_done += len(some)


def batches(trace: "Trace", variants: Sequence[Variant]) -> list[Batch]:
    """The variants in batches, as many as fit, ordered by the layer of their first change."""
    most = most_rows(trace)
    begins = [first_layer(trace, variant) for variant in variants]
    order = sorted(range(len(variants)), key=begins.__getitem__)
    groups = []
    for start in range(0, len(order), most):
        *others, last = order[start : start + most]
        groups.append(Batch(variants=(last, *others), joins=(0, *(begins[other] for other in others))))
    return groups


def first_layer(trace: "Trace", variant: Variant) -> int:
    """Number of layers that run before the first one that a variant changes; an encoder's run before a decoder's."""
    n_encoder = trace.n_layers("encoder") if "encoder" in trace.kinds and len(trace.kinds) > 1 else 0
    firsts = []
    for change in variant:
        kinds = trace.kinds if change.kind is None else (change.kind,)
        firsts += [(change.layer or 0) + (0 if kind == "encoder" else n_encoder) for kind in kinds]
    return min(firsts, default=0)


class Stopped(BaseException):
    """Raised by changes to end the pass once they have what they need; not an Exception, so that no handler reports it."""


def run_rows(
    model: "Model",
    inputs: dict[str, Any],
    changes: Changes,
    joins: Sequence[int] | None,
    after_call: Callable[[int], None] | None = None,
) -> Float[Tensor, "row token d_model"] | None:
    """The last hidden states of the rows of some changes; None where the changes stop the pass.

    Args:
        inputs: of the network, a batch of one.
        joins, after_call: as `attnviz.model.capture.Recording`.

    Raises:
        CaptureError, ModelFailedError, OutOfMemoryError, SelectionError, ShapeError: as `states_of_variants`.
    """
    n_row = len(changes.rows)
    if model.network.config.model_type in _ALL_ROWS:
        joins, inputs = None, {name: _repeated(value, n_row) for name, value in inputs.items()}
    try:
        with (
            recorded(model.network, changes, joins=joins, keeps=False, after_call=after_call),
            torch.inference_mode(),
        ):
            states: Tensor = forward(model.network, **inputs).last_hidden_state
    except Stopped:
        return None
    changes.check_applied()
    if len(states) != n_row:
        raise CaptureError(
            f"{n_row} variants of a text were to run together; {type(model.network).__name__} gave the states of "
            f"{len(states)}. Report this model; its numbers are not shown."
        )
    return states


def _repeated(given: Any, n_rows: int) -> Any:
    return given.expand(n_rows, *given.shape[1:]) if isinstance(given, Tensor) else given


def most_rows(trace: "Trace") -> int:
    """Most variants that run at once."""
    n_token = max(len(trace.query_tokens(kind)) for kind in trace.kinds)
    n_score = max(
        trace.shape(kind)[1] * len(trace.query_tokens(kind)) * len(trace.key_tokens(kind))
        for kind in trace.kinds
    )
    return max(1, min(TOKENS_AT_ONCE // n_token, MOST_SCORES // n_score))
