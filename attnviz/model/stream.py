"""The residual stream of one text: what each layer leaves, what its modules add at one token, and what follows the layers.

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", section "High-Level Architecture".
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnviz.errors import SelectionError, UnsupportedArchitectureError, enough_memory
from attnviz.model.capture import recorded, share_parameters
from attnviz.model.forward import forward
from attnviz.model.model import Model
from attnviz.model.states import NotedStates
from attnviz.model.trace import Trace
from attnviz.records import Kind, Record, check_index


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Call(Record):
    """One call of a module, at one token."""

    module: nn.Module
    given: Float[np.ndarray, " d_given"]
    made: Float[np.ndarray, " d_made"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stream(Record):
    """The residual stream of one text."""

    kind: Kind
    """Kind of its self-attention: the decoder's of an encoder-decoder model, whose states are the model's last."""
    states: Float[np.ndarray, "layer token d_model"]
    """The stream after each layer, before the family's final norm."""
    left: tuple[Float[np.ndarray, " d_model"], ...]
    """The stream after each layer, at the token."""
    start: Float[np.ndarray, " d_model"]
    """The vector that enters the first layer at the token: its embedding, normalised where the family does that."""
    attentions: tuple[Float[np.ndarray, " d_model"], ...]
    """Output of each layer's W_O at the token; empty where attnviz does not know W_O."""
    calls: tuple[tuple[Call, ...], ...]
    """Calls of modules within each layer, at the token, in the order in which they end."""
    final: tuple[Call, ...] | None
    """The modules that make the last hidden state of what the last layer leaves, one after another: none for BERT, a norm
    for GPT-2. None where no chain of modules gives that state."""

    def last_hidden(self, states: Float[Tensor, "*place d_model"]) -> Float[Tensor, "*place d_last"]:
        """States of the stream, sent through the final modules.

        Raises:
            UnsupportedArchitectureError: attnviz does not know the final modules.
        """
        if self.final is None:
            raise UnsupportedArchitectureError(
                "The layers' states were to be read as last hidden states; this family makes these of its last layer's in a "
                "way that attnviz does not know. Select a model of another family, such as BERT or GPT-2."
            )
        for call in self.final:
            states = call.module(states)
        return states


def record_stream(model: Model, trace: Trace, position: int) -> Stream:
    """The residual stream of the text of a trace, and the calls of modules at one of its tokens; see `record_streams`."""
    return record_streams(model, trace, [position])[0]


def record_streams(model: Model, trace: Trace, positions: Sequence[int]) -> tuple[Stream, ...]:
    """The residual stream of the text of a trace, and the calls of modules at each of some tokens, from one pass.

    Raises:
        ModelFailedError, OutOfMemoryError: as `attnviz.model.forward.forward`.
        SelectionError: no such token, or a trace with interventions, which this pass would not make.
    """
    if trace.interventions:
        raise SelectionError(
            f"The residual stream of a trace with an intervention ({trace.interventions[0]}) was asked for; it is that of the "
            "model's own run. Trace the text without interventions."
        )
    n_token = len(trace.last_hidden_state)
    for position in positions:
        check_index("token", position, n_token, "this text")
    kind: Kind = "decoder" if "decoder" in trace.kinds else "encoder"
    before = trace.n_layers("encoder") if kind == "decoder" and "encoder" in trace.kinds else 0
    inputs = model.inputs(trace.tokens, trace.target_tokens)
    network, noted = share_parameters(model.network), NotedStates()
    starts: dict[int, np.ndarray] = {}  # [position, d_model]
    calls: dict[int, list[tuple[nn.Module, np.ndarray, np.ndarray]]] = {}

    def rows(states: Tensor) -> np.ndarray:
        rows_of_states: np.ndarray = (
            states.reshape(-1, states.shape[-1])[list(positions)].float().cpu().numpy()
        )
        return rows_of_states

    def enter(_: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        state = next((value for value in (*args, *named.values()) if is_state(value, n_token)), None)
        if state is not None:
            starts.setdefault(noted.n_layers, rows(state))

    def leave(module: nn.Module, args: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
        given = next((value for value in (*args, *named.values()) if is_state(value, n_token)), None)
        made = output[0] if isinstance(output, tuple) and output else output
        if given is not None and is_state(made, n_token):
            calls.setdefault(noted.n_layers, []).append((module, rows(given), rows(made)))

    with enough_memory(), torch.inference_mode():
        for layer in model.layers:
            network.get_submodule(layer).register_forward_pre_hook(enter, with_kwargs=True)
        handles = [module.register_forward_hook(leave, with_kwargs=True) for module in network.modules()]
        with recorded(network, noted, keeps=False):
            last = rows(forward(network, **inputs).last_hidden_state)
        for handle in handles:  # the final modules are called again
            handle.remove()
    layers = range(trace.n_layers(kind))
    states = np.stack([noted.states["layer"][kind, layer] for layer in layers])
    attentions = noted.states["attention"]

    def calls_at(at: int, layer: int) -> tuple[Call, ...]:
        here = calls.get(before + layer, ())
        return tuple(Call(module=module, given=given[at], made=made[at]) for module, given, made in here)

    return tuple(
        Stream(
            kind=kind,
            states=states,
            left=tuple(state[position] for state in states),
            start=starts[before][at],
            attentions=tuple(
                attentions[kind, layer][position] for layer in layers if (kind, layer) in attentions
            ),
            calls=tuple(calls_at(at, layer) for layer in layers),
            final=_chain(states[-1, position], calls_at(at, len(layers)), last[at]),
        )
        for at, position in enumerate(positions)
    )


def _chain(first: np.ndarray, calls: Iterable[Call], last: np.ndarray) -> tuple[Call, ...] | None:
    """The calls that lead from one vector to another, each with the previous one's output as input; None where none do."""
    chain: list[Call] = []
    reached = first
    for call in calls:
        if np.array_equal(reached, last):
            break
        if np.array_equal(call.given, reached) and not np.array_equal(call.made, reached):
            chain.append(call)
            reached = call.made
    return tuple(chain) if np.array_equal(reached, last) else None


def is_state(given: Any, n_token: int) -> bool:
    """Whether this is a vector for each token of one text; some families join rows and tokens."""
    is_floating = isinstance(given, Tensor) and given.ndim in (2, 3) and given.is_floating_point()
    return is_floating and given.numel() == n_token * given.shape[-1]
