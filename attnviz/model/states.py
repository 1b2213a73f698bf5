"""The hidden states of one text before and after every layer, and the outputs of every W_O and MLP."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

import numpy as np
import torch
from jaxtyping import Float

from attnviz.model.capture import recorded
from attnviz.model.changes import Changes
from attnviz.model.forward import forward
from attnviz.model.interventions import Place
from attnviz.records import Kind, Record

if TYPE_CHECKING:
    from attnviz.model.model import Model
    from attnviz.model.trace import Trace


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
        ModelFailedError, OutOfMemoryError: as `attnviz.model.forward.forward`.
    """
    noted = NotedStates()
    with recorded(model.network, noted, keeps=False), torch.inference_mode():
        forward(model.network, **model.inputs(trace.tokens, trace.target_tokens))
    return HiddenStates(places=noted.states)
