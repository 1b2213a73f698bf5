"""The residual stream of one text: what each layer leaves, what its modules add at one token or at all, and what follows the layers.

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", section "High-Level Architecture".
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnviz.errors import SelectionError, UnsupportedArchitectureError, enough_memory
from attnviz.model.capture import forward, recorded, share_parameters
from attnviz.model.model import Model
from attnviz.model.states import NotedStates
from attnviz.model.structure import LayerRun, Passed, Passing
from attnviz.model.trace import Trace
from attnviz.records import Kind, Record, check_index

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Call(Record):
    """One call of a module, at one token or at all."""

    module: nn.Module
    given: Float[np.ndarray, "*token d_given"]
    made: Float[np.ndarray, "*token d_made"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stream(Record):
    """The residual stream of one text, and what passed through its modules at one token, or at all of them."""

    kind: Kind
    """Kind of its self-attention: the decoder's of an encoder-decoder model, whose states are the model's last."""
    states: Float[np.ndarray, "layer token d_model"]
    """The stream after each layer, before the family's final norm."""
    left: tuple[Float[np.ndarray, "*token d_model"], ...]
    """The stream after each layer, at the token."""
    start: Float[np.ndarray, "*token d_model"]
    """The vector that enters the first layer at the token: its embedding, normalised where the family does that."""
    attentions: tuple[Float[np.ndarray, "*token d_model"], ...]
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


def check_own_run(trace: Trace) -> None:
    """Raises SelectionError for a trace with interventions, or of numbers that were given as arrays."""
    trace.refuse_given("a residual stream")
    if trace.interventions:
        raise SelectionError(
            f"The residual stream of a trace with an intervention ({trace.interventions[0]}) was asked for; it is that of the "
            "model's own run. Trace the text without interventions."
        )


def record_stream(model: Model, trace: Trace, position: int) -> Stream:
    """The residual stream of the text of a trace, and the calls of modules at one of its tokens; see `record_streams`."""
    return record_streams(model, trace, [position])[0]


def record_streams(model: Model, trace: Trace, positions: Sequence[int]) -> tuple[Stream, ...]:
    """The residual stream of the text of a trace, and the calls of modules at each of some tokens, from one pass.

    Raises:
        ModelFailedError, OutOfMemoryError: as `attnviz.model.capture.forward`.
        SelectionError: no such token, or a trace with interventions, which this pass would not make.
    """
    for position in positions:
        check_index("token", position, len(trace.last_hidden_state), "this text")
    return _recorded(model, trace, positions, range(len(positions)))


def record_whole_stream(model: Model, trace: Trace) -> Stream:
    """The residual stream of the text of a trace, and the calls of modules at all of its tokens, [token, ...].

    Raises:
        As `record_streams`.
    """
    return _recorded(model, trace, range(len(trace.last_hidden_state)), [slice(None)])[0]


def _recorded(
    model: Model, trace: Trace, positions: Sequence[int], places: Sequence[int | slice]
) -> tuple[Stream, ...]:
    """A stream for each place among the positions."""
    check_own_run(trace)
    kind: Kind = "decoder" if "decoder" in trace.kinds else "encoder"
    before = trace.n_layers("encoder") if kind == "decoder" and "encoder" in trace.kinds else 0
    inputs = model.inputs(trace.tokens, trace.target_tokens)
    network, noted = share_parameters(model.network), NotedStates()
    layers_of_network = map(network.get_submodule, model.structure.layers)
    with (
        enough_memory(),
        torch.inference_mode(),
        Passing(network, layers_of_network, rows=positions) as passing,
        recorded(network, noted, keeps=False),
    ):
        last = passing.kept(forward(network, **inputs).last_hidden_state)
    layers = range(trace.n_layers(kind))
    runs = passing.runs[before : before + len(layers)]
    states = np.stack([noted.states["layer"][kind, layer] for layer in layers])
    attentions = noted.states["attention"]
    rows = list(positions)

    def calls_at(at: int | slice, calls: Iterable[Passed]) -> tuple[Call, ...]:
        return tuple(Call(module=module, given=given[at], made=made[at]) for module, given, made in calls)

    entered = runs[0].entered
    assert entered is not None
    return tuple(
        Stream(
            kind=kind,
            states=states,
            left=tuple(state[rows][at] for state in states),
            start=entered[at],
            attentions=tuple(
                attentions[kind, layer][rows][at] for layer in layers if (kind, layer) in attentions
            ),
            calls=tuple(calls_at(at, run.calls) for run in runs),
            final=_chain(states[-1][rows][at], calls_at(at, passing.after), last[at]),
        )
        for at in places
    )


def layer_runs(model: Model, network: "PreTrainedModel", trace: Trace, kind: Kind) -> Sequence[LayerRun]:
    """How a network calls each of its layers while it reads the text of a trace; the layers can run alone again.

    Args:
        network: a copy of the model's, which nothing else uses.

    Raises:
        ModelFailedError, OutOfMemoryError: as `attnviz.model.capture.forward`.
    """
    inputs = model.inputs(trace.tokens, trace.target_tokens)
    before = trace.n_layers("encoder") if kind == "decoder" and "encoder" in trace.kinds else 0
    layers = map(network.get_submodule, model.structure.layers)
    with (
        enough_memory(),
        torch.no_grad(),
        Passing(network, layers, is_within=False) as passing,
        recorded(network, keeps=False),
    ):
        forward(network, **inputs)
    return passing.runs[before : before + trace.n_layers(kind)]


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
