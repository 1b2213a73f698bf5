"""What each layer adds to the residual stream, and how an addition reaches the last hidden state.

A layer is ``middle = N1(x + a)`` and ``x' = N2(middle + m)``, where a is the output of W_O, possibly normalised, m what
the rest of the layer adds (the MLP), and N1 and N2 norms that families with pre-normalisation do not have. Which norms
there are is found from what passed through the layer's modules. A norm is frozen: with the scale that it had for this
token it is linear, so that a direction after it can be carried back before it.

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits"; for frozen norms Wang et al. 2022
(arXiv:2211.00593), section 2.2, and the appendix of Elhage et al.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import nn
from transformers.pytorch_utils import Conv1D

from attnviz.errors import SelectionError, UnsupportedArchitectureError
from attnviz.model.model import Model
from attnviz.model.normalisation import Normalisation, is_norm, normalisation_of
from attnviz.model.stream import Call, Stream, check_own_run
from attnviz.model.structure import OutputMap, is_sum, linear_parameters
from attnviz.model.trace import Trace
from attnviz.records import Record


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrozenNorm(Record):
    """A norm with the scale that it had for one vector, or for each token's: ``gain * (x - mean(x)) + bias``, or without the mean (RMS)."""

    gain: Float[np.ndarray, "*token d_model"]
    """Its weight, divided by the scale."""
    is_centred: bool
    bias: Float[np.ndarray, " d_model"]

    def linear(
        self, parts: Float[np.ndarray, "*part d_model"], tokens: slice = slice(None)
    ) -> Float[np.ndarray, "*part d_model"]:
        """What it makes of parts of its input, without the bias.

        Args:
            parts: where it has a gain for each token, [token, part, d_model].
            tokens: those whose parts are given.
        """
        centred = parts - parts.mean(axis=-1, keepdims=True) if self.is_centred else parts
        return np.asarray(centred * (self.gain if self.gain.ndim == 1 else self.gain[tokens, None]))

    def before(
        self, direction: Float[np.ndarray, "*direction d_model"]
    ) -> Float[np.ndarray, "*direction d_model"]:
        """The direction whose product with an input equals the given direction's product with the output, without the bias."""
        scaled = self.gain * direction
        return np.asarray(scaled - scaled.mean(axis=-1, keepdims=True) if self.is_centred else scaled)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Affine(Record):
    """A linear map with its bias, ``x @ weight + bias``, such as that after OPT's last layer."""

    weight: Float[np.ndarray, "d_model d_last"]
    bias: Float[np.ndarray, " d_last"]

    def before(
        self, direction: Float[np.ndarray, "*direction d_last"]
    ) -> Float[np.ndarray, "*direction d_model"]:
        """As `FrozenNorm.before`."""
        return np.asarray(direction @ self.weight.T)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayerPath(Record):
    """What one layer adds to the residual stream at one token, or at all, and the norms on the way, frozen."""

    middle: Float[np.ndarray, "*token d_model"]
    """The stream after the output of W_O is added, normalised where the family does that; where attention and MLP stand side by
    side (GPT-NeoX), the sum without the MLP's output."""
    rest: Float[np.ndarray, "*token d_model"]
    """What the rest of the layer adds: the MLP's output."""
    of_attention: FrozenNorm | None
    """Norm of the output of W_O alone, before it is added (OLMo 2, Gemma 3)."""
    after_attention: FrozenNorm | None
    """Norm of the stream after the output of W_O is added (BERT)."""
    after_rest: FrozenNorm | None
    """Norm of the stream after the rest is added (BERT)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CarriedBack(Record):
    """Directions of the stream after a layer, carried back through it, with their products part by part.

    A direction's product with what leaves the layer is the product of ``entering`` with what enters it, plus that of
    ``of_attention`` with the outputs of its heads through W_O, plus ``rest`` and ``biases``.
    """

    entering: Float[np.ndarray, "*direction d_model"]
    of_attention: Float[np.ndarray, "*direction d_model"]
    rest: Float[np.ndarray, "*direction"]
    """Products with what the rest of the layer adds: the MLP's output."""
    biases: Float[np.ndarray, "*direction"]
    """Products with the bias of W_O and those of the norms."""


def carried(
    step: FrozenNorm | Affine | None, directions: Float[np.ndarray, "*direction d_after"]
) -> tuple[Float[np.ndarray, "*direction d_before"], Float[np.ndarray, "*direction"]]:
    """Directions carried back through a step, and their products with its bias; unchanged and 0 for no step."""
    if step is None:
        return directions, np.zeros(directions.shape[:-1])
    return step.before(directions), np.asarray(directions @ step.bias)


def carried_back(
    path: LayerPath, output_map: OutputMap, directions: Float[np.ndarray, "*direction d_model"]
) -> CarriedBack:
    """Directions of the stream after a layer, carried back through that layer."""
    directions, after_rest = carried(path.after_rest, directions)
    entering, after_attention = carried(path.after_attention, directions)
    of_attention, of_norm = carried(path.of_attention, entering)
    of_map = 0.0 if output_map.bias is None else of_attention @ output_map.bias
    return CarriedBack(
        entering=entering,
        of_attention=of_attention,
        rest=np.asarray(directions @ path.rest),
        biases=np.asarray(after_rest + after_attention + of_norm + of_map),
    )


def check_parts(model: Model, trace: Trace, asked: str) -> None:
    """Raises where attnviz does not take a model's hidden states apart.

    Args:
        asked: what was asked for, as in "The parts of a hidden state were".

    Raises:
        SelectionError: as `check_own_run`, or a model in another dtype than float32.
        UnsupportedArchitectureError: a model with an encoder and a decoder.
    """
    check_own_run(trace)
    if model.network.dtype != torch.float32:
        raise SelectionError(
            f"{asked} asked for; {model.name} computes in {model.provenance.dtype}, which rounds too much for that. Load "
            "it with dtype float32."
        )
    if "cross" in trace.kinds:
        raise UnsupportedArchitectureError(
            f"{asked} asked for; {model.name} has attention from its decoder to its encoder, whose additions attnviz does not take "
            "apart. Select a model without, such as BERT or GPT-2."
        )


def layer_paths(stream: Stream, n_layer: int | None = None) -> tuple[LayerPath, ...]:
    """What each layer adds to the stream at the token that was recorded, or at each token.

    Args:
        n_layer: number of layers, from the first; None for all.

    Raises:
        UnsupportedArchitectureError: a layer does not add the output of its W_O to the stream, or does so in a way that
            attnviz does not know, such as with a factor.
    """
    paths = []
    entered = stream.start
    for layer, calls in enumerate(stream.calls[:n_layer]):
        left = stream.left[layer]
        path = None
        if layer < len(stream.attentions):
            path = next(_fitting(entered, stream.attentions[layer], left, calls), None)
        if path is None:
            raise UnsupportedArchitectureError(
                "The parts of the residual stream were asked for; attnviz does not know how layer "
                f"{layer} of this family adds the output of its heads to it. Select a model of another family, such as BERT, "
                "GPT-2 or Llama."
            )
        paths.append(path)
        entered = left
    return tuple(paths)


def final_steps(stream: Stream) -> tuple[FrozenNorm | Affine, ...]:
    """The linear steps from what the last layer leaves to the last hidden state, at the token that was recorded.

    Raises:
        UnsupportedArchitectureError: attnviz does not know these steps, or they are not linear.
    """
    steps = None if stream.final is None else [_final_step(step) for step in stream.final]
    if steps is None or None in steps:
        raise UnsupportedArchitectureError(
            "The parts of the last hidden state were asked for; this family makes it of its last layer's state in a way that "
            "attnviz does not know. Select a model of another family, such as BERT, GPT-2 or Llama."
        )
    return tuple(step for step in steps if step is not None)


def _final_step(call: Call) -> FrozenNorm | Affine | None:
    if not isinstance(call.module, nn.Linear | Conv1D):
        return _frozen(call)
    weight, bias = linear_parameters(call.module)
    return Affine(
        weight=weight.double().cpu().numpy(),
        bias=np.zeros(weight.shape[1]) if bias is None else bias.double().cpu().numpy(),
    )


def _fitting(
    entered: np.ndarray, attention: np.ndarray, left: np.ndarray, calls: Sequence[Call]
) -> Iterator[LayerPath]:
    """The ways in which a layer's output can be made of its input, the output of W_O and the output of another module."""
    norms = [call for call in calls if is_norm(call.module)]
    added: list[tuple[np.ndarray, Call | None]] = [(attention, None)]
    added += [(norm.made, norm) for norm in norms if np.array_equal(norm.given, attention)]
    for own, of_attention in added:
        middles: list[tuple[tuple[np.ndarray, ...], Call | None]] = [((entered, own), None)]
        middles += [((norm.made,), norm) for norm in norms if is_sum(norm.given, entered, own)]
        for middle, after_attention in middles:
            for rest in calls:
                if rest.made.shape != left.shape:
                    continue
                terms = (*middle, rest.made)
                ends: list[Call | None] = [None] if is_sum(left, *terms) else []
                ends += [
                    norm for norm in norms if np.array_equal(norm.made, left) and is_sum(norm.given, *terms)
                ]
                for after_rest in ends:
                    norms_there = [of_attention, after_attention, after_rest]
                    steps = [None if call is None else _frozen(call) for call in norms_there]
                    if [call is None for call in norms_there] == [step is None for step in steps]:
                        yield LayerPath(
                            middle=np.sum(middle, axis=0),
                            rest=rest.made,
                            of_attention=steps[0],
                            after_attention=steps[1],
                            after_rest=steps[2],
                        )


def _frozen(call: Call) -> FrozenNorm | None:
    """A norm with the scale that it had in this call; None where it follows no known formula."""
    rows = [vectors.reshape(-1, vectors.shape[-1]) for vectors in (call.given, call.made)]
    norm = normalisation_of(call.module, *rows) if is_norm(call.module) else None
    return None if norm is None else frozen_norm(norm, call.given)


def frozen_norm(norm: Normalisation, given: Float[np.ndarray, "*token d_model"]) -> FrozenNorm:
    """A norm with the scale that it has for a vector, or for each token's."""
    centred = given.astype(np.float64)
    if norm.method == "layer":
        centred -= centred.mean(axis=-1, keepdims=True)
    return FrozenNorm(
        gain=norm.weight / np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + norm.eps),
        is_centred=norm.method == "layer",
        bias=np.zeros(centred.shape[-1]) if norm.bias is None else norm.bias,
    )
