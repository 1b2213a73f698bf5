"""Which earlier heads does a head, or the outcome, read directly? One path at a time is patched from one run into another.

In a first run the sender, a head, has its output for the donor's text and every other head its output for the
receiver's; MLPs and norms are recomputed. What then reaches the end of the path (the queries, keys or values of a later
head) is patched into a second run, where everything else is recomputed. If the end is the outcome, there is no second
run.

Paths go through the residual stream, MLPs and norms, not through another head. They need a model with one stream: an encoder or a
decoder.

Source: Wang et al. 2022, "Interpretability in the Wild" (arXiv:2211.00593), section 3.1 and appendix B; Goldowsky-Dill et al. 2023,
"Localizing Model Behavior with Path Patching" (arXiv:2304.05969), section 3.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnviz.arguments import typed
from attnviz.effects.outcome import AnyOutcome, measured, unchanged
from attnviz.effects.patching import PatchEffects, PatchGrid, PathEnd
from attnviz.errors import SelectionError, UnsupportedArchitectureError
from attnviz.model.changes import Changes
from attnviz.model.interventions import ReplacedOutput, ReplacedVectors
from attnviz.model.variants import Stopped, measured_variants, most_rows, run_rows
from attnviz.records import ROLE_NAMES, Head, Kind, Progress, check_index, progress_within

if TYPE_CHECKING:
    from attnviz.model.model import Model
    from attnviz.model.trace import Trace


@typed
def patch_paths(
    model: "Model",
    receiver: "Trace",
    donor: "Trace",
    outcome: AnyOutcome,
    end: PathEnd,
    *,
    position: int | None = None,
    layers: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> PatchEffects:
    """The receiver's outcome with the path from one head at a time to an end patched from the donor's text.

    Args:
        receiver, donor, outcome: as `attnviz.effects.patching.patch`.
        end: the outcome, or the queries, keys or values of a later head; of shared keys and values, only that head's.
        position: the token at which senders have their output for the donor's text; None for all.
        layers: of the senders; None for all below the end.

    Returns:
        A row for each layer, NaN from the end's layer on.

    Raises:
        CaptureError, OutOfMemoryError, SelectionError, ShapeError: as `patch`; also for an end with no head below it.
        UnsupportedArchitectureError: an encoder-decoder model, or as `patch`.
    """
    measure = measured(model, receiver, outcome)
    if len(receiver.kinds) > 1:
        raise UnsupportedArchitectureError(
            f"The paths between heads of {model.name} were asked for; attnviz follows them in one residual stream, and this model "
            "has an encoder's and a decoder's. Select a model with one, such as GPT-2 or BERT."
        )
    grid = PatchGrid(receiver, donor, position=position)
    n_below = receiver.n_layers(grid.kind)
    if end.head is not None:
        check_index("layer", end.head.layer, n_below, model.name)
        check_index(
            "head", end.head.head, receiver.n_heads(end.head.layer, grid.kind), f"layer {end.head.layer}"
        )
        PatchGrid(receiver, donor, carried=end.role).check_family(model)
        n_below = end.head.layer
    if n_below == 0:
        raise SelectionError(
            f"The heads that the {ROLE_NAMES[end.role]} of layer 0 read were asked for; no head is before layer 0. Select a head "
            "of a later layer."
        )
    chosen = range(n_below) if layers is None else [layer for layer in layers if layer < n_below]
    senders = [Head(*cell) for cell in grid.cells(chosen)]
    unchanged(receiver, measure)  # refuses what is no outcome before the run
    reading: list[Tensor] = []  # what reaches the end from each sender
    outcomes = np.zeros(len(senders), dtype=np.float32)
    inputs, most = model.inputs(receiver.tokens, receiver.target_tokens), max(1, most_rows(receiver) - 1)
    first_run = progress_within(progress, 0.0, 1.0 if end.head is None else 0.5)
    for start in range(0, len(senders), most):
        some = senders[start : start + most]
        changes = _Path([(end, _given(donor, end, grid)) for end in some], end)
        states = run_rows(model, inputs, changes, (0, *(end.layer for end in some)))
        if end.head is None:
            assert states is not None  # the pass runs to its end
            with torch.inference_mode():
                outcomes[start : start + len(some)] = measure(states[1:]).float().cpu().numpy()
        else:
            assert changes.reading is not None  # the pass has stopped there
            reading += list(changes.reading)
        first_run((start + len(some)) / len(senders))
    if end.head is not None and senders:
        variants = [
            [
                ReplacedVectors(
                    kind=grid.kind,
                    layer=end.head.layer,
                    head=end.head.head,
                    role=end.role,
                    vectors=vectors.float().cpu().numpy(),
                )
            ]
            for vectors in reading
        ]
        outcomes = measured_variants(
            model, receiver, variants, measure, progress=progress_within(progress, 0.5, 0.5)
        )
    return grid.effects(receiver, donor, measure, senders, outcomes, end=end)


def _given(donor: "Trace", sender: Head, grid: PatchGrid) -> ReplacedOutput:
    """The intervention that gives a sender its output for the donor's text."""
    return ReplacedOutput(
        kind=grid.kind,
        layer=sender.layer,
        head=sender.head,
        output=donor.output(*sender, grid.kind),
        positions=None if grid.position is None else (grid.position,),
    )


class _Path(Changes):
    """The first row is the unchanged run; each other row has a sender, above which heads have the first row's outputs.

    Senders are ordered by layer, so that those below a layer are in the first rows.

    The pass stops where the end has been read.
    """

    def __init__(self, senders: Sequence[tuple[Head, ReplacedOutput]], end: PathEnd) -> None:
        super().__init__([(), *([change] for _, change in senders)])
        self._end = end
        self._layers = [sender.layer for sender, _ in senders]
        self.reading: Float[Tensor, "sender token d_head"] | None = None
        """What reaches the end of each path."""

    def change_outputs(self, kind: Kind, layer: int, output: Tensor, value: Tensor) -> None:
        n_later = sum(of_sender < layer for of_sender in self._layers)
        output[1 : 1 + n_later] = output[0].clone()  # torch refuses an input that overlaps the output
        super().change_outputs(kind, layer, output, value)

    def changed_vectors(
        self, kind: Kind, layer: int, query: Tensor, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        if self._end.head is not None and layer == self._end.head.layer:
            made = {"query": query, "key": key, "value": value}[self._end.role]
            self.reading = made[1:, self._end.head.head * made.shape[1] // query.shape[1]].clone()
            raise Stopped
        return query, key, value
