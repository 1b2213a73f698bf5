"""The modules that hidden states pass through: each layer, its W_O and its MLP.

Hooks that let the interventions of the current pass change hidden states. They stay on the network, which several
threads share; a pass gets only the changes of its own context (`attnviz.model.capture.current_recording`).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from attnviz.model.capture import Recording, current_recording, recorded
from attnviz.model.forward import forward
from attnviz.model.interventions import Place
from attnviz.model.mlp_modules import find_mlps, is_batch_of_states

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def find_layers(network: "PreTrainedModel", **inputs: Any) -> tuple[str, ...]:
    """Names of the modules of the layers in the order in which they first run, found by running the network once.

    A layer is the entry of the outermost ``ModuleList`` that holds the layer's attention; ALBERT's, which runs once for
    every layer, is listed once.

    Args:
        network: runs on attnviz's attention.
        inputs: arguments of its forward; a batch of one.
    """
    with recorded(network) as recording, torch.inference_mode():
        forward(network, **inputs)
    names = {module: name for name, module in network.named_modules()}
    layers: dict[str, None] = {}
    for attention in recording.modules:
        parts = names[attention].split(".")
        for depth in range(1, len(parts)):
            if isinstance(network.get_submodule(".".join(parts[:depth])), nn.ModuleList):
                layers[".".join(parts[: depth + 1])] = None
                break
    return tuple(layers)


def let_states_change(
    network: "PreTrainedModel", layers: Sequence[str], output_maps: Sequence[str], **inputs: Any
) -> None:
    """Adds hooks that let the interventions of a pass change the hidden states.

    A layer's input gets a row for each variant that begins to differ there. What enters and leaves a layer, and what leaves its
    W_O and its MLP, are the places of `attnviz.model.interventions.Place`.

    Args:
        network: runs on attnviz's attention; it is run to find its MLPs.
        layers: names of their modules, as `find_layers`.
        output_maps: names of the modules of each layer's W_O.
        inputs: arguments of its forward; a batch of one.
    """
    of_layers, joining = (
        tuple(dict.fromkeys(map(network.get_submodule, names))) for names in (layers, output_maps)
    )
    mlps = find_mlps(network, of_layers, joining, **inputs)

    def begin(module: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any] | None:
        recording = current_recording.get()
        if recording is None or not (counts := recording.row_counts):
            return None
        join = _rows_joined(counts)
        return tuple(map(join, args)), {name: join(states) for name, states in named.items()}

    def enter(module: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any] | None:
        recording = current_recording.get()
        if recording is None or not recording.changes.is_asked:
            return None
        given = (*args, *named.values())
        at = next((at for at, value in enumerate(given) if is_batch_of_states(value)), None)
        if at is None:
            return None
        kind, layer = recording.order.entering(module)
        state = recording.changes.changed_states("before", kind, layer, given[at])
        changed = (*given[:at], state, *given[at + 1 :])
        return changed[: len(args)], dict(zip(named, changed[len(args) :], strict=True))

    def leave(where: Place) -> Callable[[nn.Module, Any, Any], Any]:
        def end(_: nn.Module, __: Any, output: Any) -> Any:
            recording = current_recording.get()
            if recording is None or not recording.changes.is_asked:
                return None
            if isinstance(output, tuple):
                return (_changed(recording, where, output[0]), *output[1:])
            return _changed(recording, where, output)

        return end

    for layer in of_layers:
        layer.register_forward_pre_hook(begin, with_kwargs=True)
        layer.register_forward_pre_hook(enter, with_kwargs=True)
    modules: dict[Place, Iterable[nn.Module]] = {"attention": joining, "mlp": mlps, "layer": of_layers}
    for where, of_place in modules.items():
        for module in dict.fromkeys(of_place):
            module.register_forward_hook(leave(where))


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
