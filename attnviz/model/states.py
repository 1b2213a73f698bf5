"""The hidden states of one text before and after every layer, and the outputs of every W_O and MLP: changed, and noted.

The hooks that let the interventions of the current pass change hidden states stay on the network, which several threads
share; a pass gets only the changes of its own context (`attnviz.model.capture.current_recording`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnviz.model.capture import Recording, current_recording, forward, recorded
from attnviz.model.changes import Changes
from attnviz.model.interventions import Place
from attnviz.model.structure import Structure, is_batch_of_states
from attnviz.records import Kind, Record

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from attnviz.model.model import Model
    from attnviz.model.trace import Trace


def let_states_change(network: "PreTrainedModel", structure: Structure) -> None:
    """Adds hooks that let the interventions of a pass change the hidden states.

    A layer's input gets a row for each variant that begins to differ there. What enters and leaves a layer, and what leaves its
    W_O and its MLP, are the places of `attnviz.model.interventions.Place`.
    """

    def enter(module: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any] | None:
        recording = current_recording.get()
        if recording is None:
            return None
        given = [*args, *named.values()]
        if counts := recording.row_counts:
            given = list(map(_rows_joined(counts), given))
        at = next((at for at, value in enumerate(given) if is_batch_of_states(value)), None)
        if recording.changes.is_asked and at is not None:
            kind, layer = recording.order.entering(module)
            given[at] = recording.changes.changed_states("before", kind, layer, given[at])
        return tuple(given[: len(args)]), dict(zip(named, given[len(args) :], strict=True))

    def leave(where: Place) -> Callable[[nn.Module, Any, Any], Any]:
        def end(_: nn.Module, __: Any, output: Any) -> Any:
            recording = current_recording.get()
            if recording is None or not recording.changes.is_asked:
                return None
            if isinstance(output, tuple):
                return (_changed(recording, where, output[0]), *output[1:])
            return _changed(recording, where, output)

        return end

    for name in structure.layers:
        network.get_submodule(name).register_forward_pre_hook(enter, with_kwargs=True)
    places: dict[Place, Iterable[str]] = {
        "attention": structure.joining,
        "mlp": dict.fromkeys(structure.mlps),
        "layer": structure.layers,
    }
    for where, names in places.items():
        for name in names:
            network.get_submodule(name).register_forward_hook(leave(where))


def _changed(recording: Recording, where: Place, states: Tensor) -> Tensor:
    if recording.order.last is None or recording.output is None:
        return states
    kind, layer = recording.order.last
    if where != "attention" and kind == "cross":  # the last attention of a decoder's layer
        kind = "decoder"
    rows = states.reshape(len(recording.output), -1, states.shape[-1])  # some families join rows and tokens
    return recording.changes.changed_states(where, kind, layer, rows).reshape(states.shape)


def _rows_joined(counts: Sequence[int]) -> Callable[[Any], Any]:
    """A function that extends hidden states, [row, token, d_model], to as many rows as the last count.

    New rows are copies of the first. Arguments whose length is no count so far, such as a bias for each head, are left as
    they are.
    """

    def join(given: Any) -> Any:
        if not is_batch_of_states(given) or len(given) not in (1, *counts[:-1]) or len(given) == counts[-1]:
            return given
        if len(given) == 1:
            return given.expand(counts[-1], -1, -1)
        return torch.cat([given, given[:1].expand(counts[-1] - len(given), -1, -1)])

    return join


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HiddenStates(Record):
    """What `attnviz.model.interventions.ReplacedState` can replace, of one text."""

    places: Mapping[Place, Mapping[tuple[Kind, int], Float[np.ndarray, "token d_model"]]]
    """By place, then by kind and layer; layers whose W_O or MLP attnviz does not know are missing there."""

    def of(self, where: Place) -> Mapping[tuple[Kind, int], Float[np.ndarray, "token d_model"]]:
        """The states of one place, by kind and layer."""
        return self.places[where]

    @property
    def layers(self) -> Mapping[tuple[Kind, int], Float[np.ndarray, "token d_model"]]:
        """The residual stream after each layer; the last one is before the family's final norm."""
        return self.of("layer")

    @property
    def attentions(self) -> Mapping[tuple[Kind, int], Float[np.ndarray, "token d_model"]]:
        """The output of W_O of each layer."""
        return self.of("attention")


class NotedStates(Changes):
    """Changes nothing, and keeps the states that pass."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = True
        self.states: dict[Place, dict[tuple[Kind, int], np.ndarray]] = {
            place: {} for place in get_args(Place)
        }

    @property
    def n_layers(self) -> int:
        """Number of layers that have run, of all kinds."""
        return len(self.states["layer"])

    def changed_states(self, where: Place, kind: Kind, layer: int, states: torch.Tensor) -> torch.Tensor:
        """The same states, [1, token, d_model], which are kept."""
        self.states[where][kind, layer] = states[0].float().cpu().numpy().copy()
        return states


def hidden_states(model: "Model", trace: "Trace") -> HiddenStates:
    """The hidden states of the text of a trace, without the trace's interventions.

    Raises:
        ModelFailedError, OutOfMemoryError: as `attnviz.model.capture.forward`.
    """
    noted = NotedStates()
    with recorded(model.network, noted, keeps=False), torch.inference_mode():
        forward(model.network, **model.inputs(trace.tokens, trace.target_tokens))
    return HiddenStates(places=noted.states)
