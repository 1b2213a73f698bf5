"""The kind and layer of each attention call of a model, by the order of the calls."""

from collections import Counter
from typing import TYPE_CHECKING

from torch import nn

from attnviz.records import Kind

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class CallOrder:
    """The kind and layer of each attention call, by the order of the calls.

    Some families do not name the layer, and ALBERT calls the same module for every layer.
    """

    def __init__(self, network: "PreTrainedModel") -> None:
        self._encoder_modules: frozenset[int] | None = None
        if network.config.is_encoder_decoder:
            self._encoder_modules = frozenset(id(module) for module in network.get_encoder().modules())
        self.counts: Counter[Kind] = Counter()
        """Calls of each kind so far."""
        self.n_calls = 0
        """Calls of all kinds so far."""
        self.last: tuple[Kind, int] | None = None
        """Kind and layer of the last call."""

    def upcoming(self, module: nn.Module) -> tuple[Kind, int]:
        """Kind and layer of the next call."""
        kind = self._kind_of(module)
        return kind, self.counts[kind]

    def next(self, module: nn.Module) -> tuple[Kind, int]:
        """Kind and layer of the current call, which is counted."""
        self.last = kind, _ = self.upcoming(module)
        self.counts[kind] += 1
        self.n_calls += 1
        return self.last

    @property
    def n_layers(self) -> int:
        """Layers that have begun so far; a decoder's come after all of its encoder's."""
        return self.counts["encoder"] + self.counts["decoder"]

    def entering(self, layer: nn.Module) -> tuple[Kind, int]:
        """Kind and number of a layer that is about to run, by its module."""
        if self._encoder_modules is not None:
            kind: Kind = "encoder" if id(layer) in self._encoder_modules else "decoder"
        else:
            is_causal = any(getattr(module, "is_causal", False) for module in layer.modules())
            kind = "decoder" if is_causal else "encoder"
        return kind, self.counts[kind]

    def _kind_of(self, module: nn.Module) -> Kind:
        is_causal = bool(getattr(module, "is_causal", False))
        if self._encoder_modules is None:
            return "decoder" if is_causal else "encoder"
        if id(module) in self._encoder_modules:
            return "encoder"
        return "decoder" if is_causal else "cross"
