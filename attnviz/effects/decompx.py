"""What each token of a text gives to an outcome of an encoder, layer by layer, as parts that sum to the outcome: DecompX.

Every vector is a sum with a part for each token of the text. A token's first vector is its own part. Attention mixes parts at the
weights that it had; a norm keeps the scale that it had; an activation multiplies each dimension by its slope f(z) / z; and a bias b is
divided among the parts z_k in proportion to |b · z_k|. Poolers and heads go the same way, so that the outcome is a sum of a number
for each token. Weights, scales and slopes are taken as given: how a token changes them is left out.

Source: Modarressi et al. 2023, "DecompX: Explaining Transformers Decisions by Propagating Token Decomposition" (arXiv:2306.02873),
section 3.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnviz.arguments import typed
from attnviz.effects.outcome import (
    ClassAnswer,
    MeasuredOutcome,
    Outcome,
    Similarity,
    TokenAnswer,
    TokenState,
    answer_ids,
    measured,
)
from attnviz.errors import SelectionError, UnsupportedArchitectureError, enough_memory
from attnviz.maths.decomposition import (
    through_activation,
    through_attention,
    through_map,
    through_norm,
    with_bias,
)
from attnviz.maths.gradients import differentiable
from attnviz.model.anatomy import projection_of
from attnviz.model.answers import class_number
from attnviz.model.capture import forward, share_parameters
from attnviz.model.direct_path import Affine, FrozenNorm, LayerPath, check_parts, final_steps, layer_paths
from attnviz.model.linear_steps import Slopes, Step, steps_between
from attnviz.model.model import Model
from attnviz.model.parts import modules_of_head
from attnviz.model.stream import Call, Stream, record_whole_stream
from attnviz.model.structure import Linear, OutputMap
from attnviz.model.trace import Trace
from attnviz.records import Axis, Progress, Record, Result, Tokens
from attnviz.records.table import Table, entry_names

TOLERANCE = 1e-4
"""Largest gap between the sum of the parts and the model's own number, as a share of the parts' sizes: float32 rounds each of some
dozens of steps by about 1e-6."""

MOST_TOKENS = 256
"""Longest text, in tokens: there is a part of every vector for every token, 100 MB of them at bert-base's sizes for 256 tokens."""

_MOST_NUMBERS = 2**24
"""Most numbers of parts within an MLP that are held at a time, 64 MB."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DecompX(Result):
    """An outcome of an encoder as a sum with a number for each token of the text."""

    tokens: Tokens
    unit: Literal["logit", "difference of logits", "length", "cosine"]
    """``length`` of a token's last hidden state, along its direction; ``cosine`` of a similarity."""
    total: float
    """The model's own number."""
    values: Float[np.ndarray, " token"]

    @property
    def summed(self) -> float:
        """The sum over all tokens."""
        return float(self.values.sum(dtype=np.float64))

    @property
    def gap(self) -> float:
        """The model's own number minus the sum: rounding alone."""
        return self.total - self.summed

    @property
    def passed(self) -> bool:
        """Whether the parts sum to the model's own number within `TOLERANCE`; False for NaN."""
        return abs(self.gap) <= TOLERANCE * float(np.abs(self.values).sum(dtype=np.float64))

    def _table(self) -> Table:
        """A row for each token."""
        names = entry_names(Axis.of(self.tokens))
        rows: list[list[object]] = [list(row) for row in zip(names, self.values, strict=True)]
        return ["token", self.unit], [*rows, ["sum", self.summed], ["model", self.total]]


@typed
def decompx(
    model: Model, trace: Trace, outcome: Outcome | str, *, progress: Progress | None = None
) -> DecompX:
    """What each token of the text gives to an outcome of an encoder.

    Args:
        trace: of the text without interventions.
        outcome: as `attnviz.effects.outcome.measured` takes it. Of a probability the logit is attributed, of the state of a token
            its length along its own direction, of a similarity the cosine.
        progress: called with the share that is done, 0 to 1, after each layer.

    Raises:
        EmptyTextError, TextTooLongError, InvalidTextError: as `measured`.
        OutOfMemoryError: the text is too long for the memory that is left.
        SelectionError: as `measured`; a rank, a longer text than `MOST_TOKENS`, or a model in another dtype than float32.
        UnsupportedArchitectureError: a decoder, or a family whose layers or head attnviz cannot take apart, such as one with gated MLPs.
    """
    measure = measured(model, trace, outcome)
    check_parts(model, trace, "The parts of every vector were")
    if (reason := _undefined(model, trace, measure.outcome)) is not None:
        raise SelectionError(f"DecompX was asked for; {reason}. Select another outcome, text or method.")
    stream = record_whole_stream(model, trace)
    with enough_memory():
        parts = decomposed_states(model, trace, stream, progress=progress)
        number = _number(model, trace, measure, parts)
    if progress is not None:
        progress(1.0)
    return number


def missing(model: Model, trace: Trace, outcome: object) -> str | None:
    """Why an outcome of a text is not decomposed; None where it is."""
    if (reason := _undefined(model, trace, outcome)) is not None:
        return reason
    assert isinstance(outcome, Outcome)
    if model.network not in _unknown_layers:
        _unknown_layers[model.network] = _reason(
            lambda: decomposed_layers(model, trace, record_whole_stream(model, trace))
        )
    return _unknown_layers[model.network] or _reason(lambda: _head(model, trace, outcome))


_unknown_layers: WeakKeyDictionary[torch.nn.Module, str | None] = WeakKeyDictionary()
"""By network, why its layers are not decomposed, None where they are: the same for every text, and asked for often."""


def _reason(tried: Callable[[], object]) -> str | None:
    try:
        tried()
    except UnsupportedArchitectureError as error:
        return error.reason or str(error)
    return None


def _undefined(model: Model, trace: Trace, outcome: object) -> str | None:
    if trace.kinds != ("encoder",):
        return f"it is defined for encoders, and {model.name} is none"
    if not isinstance(outcome, Outcome):
        return "it attributes a logit, a token's state or a similarity, and no function of one's own"
    if isinstance(outcome, TokenAnswer) and outcome.by == "rank":
        return "a rank is no sum"
    if len(trace.tokens) > MOST_TOKENS:
        return f"it is computed for at most {MOST_TOKENS} tokens, and the text has {len(trace.tokens)}"
    return None


def decomposed_states(
    model: Model, trace: Trace, stream: Stream, *, progress: Progress | None = None
) -> Float[Tensor, "token part d_last"]:
    """Each token's part of each last hidden state.

    Args:
        stream: recorded at all tokens.
        progress: as `decompx`.

    Raises:
        UnsupportedArchitectureError: as `decompx`.
    """
    layers = decomposed_layers(model, trace, stream)
    start = torch.tensor(stream.start)
    parts = torch.zeros(len(start), *start.shape)
    parts[range(len(start)), range(len(start))] = start
    with torch.inference_mode():
        for number, layer in enumerate(layers):
            parts = _through_layer(parts, layer)
            if progress is not None:
                progress((number + 1) / (len(layers) + 1))
        return _through(parts, final_steps(stream))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Layer(Record):
    """What a layer does to parts."""

    path: LayerPath
    before_attention: tuple[Step, ...]
    """From what enters the layer to what its values are made of: a norm, or nothing."""
    weights: Float[np.ndarray, "head query key"]
    value_weight: Float[np.ndarray, "head d_model d_value"]
    value_bias: Float[np.ndarray, "head d_value"] | None
    output_map: OutputMap
    mlp: tuple[Step, ...]
    mlp_reads_entering: bool
    """Whether the MLP reads what enters the layer, beside the attention, and not what comes after it."""


def decomposed_layers(model: Model, trace: Trace, stream: Stream) -> tuple[_Layer, ...]:
    """What each layer does to parts of its vectors.

    Raises:
        UnsupportedArchitectureError: attnviz does not know the way of its values, or its MLP is no chain of maps, norms and
            activations.
    """
    layers, entered = [], stream.start
    for number, (path, calls) in enumerate(zip(layer_paths(stream), stream.calls, strict=True)):
        call = trace.attention(number, stream.kind)
        ran = [
            (called.module, torch.tensor(called.given), torch.tensor(called.made))
            for called in calls
            if isinstance(called.module, Linear)
        ]
        projection = projection_of(call.value, ran)
        before = None if projection is None else steps_between(entered, projection[0], calls)
        if projection is None or before is None or not all(isinstance(step, FrozenNorm) for step in before):
            raise _unknown(model, f"how layer {number} makes its values of the residual stream")
        mlp, reads_entering = steps_between(path.middle, path.rest, calls), False
        if mlp is None:
            mlp, reads_entering = steps_between(entered, path.rest, calls), True
        if mlp is None:
            raise _unknown(
                model, f"a sum of parts through the MLP of layer {number}, such as one with a gate"
            )
        output_map = model.output_maps[stream.kind][number]
        shared = np.arange(len(output_map.weight)) // (len(output_map.weight) // len(call.value))
        weight, bias = projection[1].weight, projection[1].bias
        layers.append(
            _Layer(
                path=path,
                before_attention=before,
                weights=trace.layer_weights(number, stream.kind),
                value_weight=weight[shared],
                value_bias=None if bias is None else bias[shared],
                output_map=output_map,
                mlp=mlp,
                mlp_reads_entering=reads_entering,
            )
        )
        entered = stream.left[number]
    return tuple(layers)


def _unknown(model: Model, what: str) -> UnsupportedArchitectureError:
    reason = f"attnviz does not know {what} of {model.name}"
    return UnsupportedArchitectureError(
        f"DecompX was asked for; {reason}. Select a model of another family, such as BERT.", reason=reason
    )


def _through_layer(
    entering: Float[Tensor, "token part d_model"], layer: _Layer
) -> Float[Tensor, "token part d_model"]:
    path, weights = layer.path, torch.tensor(layer.weights)
    output_weight = torch.tensor(layer.output_map.weight)
    added = through_attention(
        weights, _through(entering, layer.before_attention), torch.tensor(layer.value_weight), output_weight
    )
    added = with_bias(added, _bias_of_attention(layer, weights, output_weight))
    middle = _through(entering + _through(added, [path.of_attention]), [path.after_attention])
    read = entering if layer.mlp_reads_entering else middle
    widest = max(step.weight.shape[1] for step in layer.mlp if isinstance(step, Affine))
    n_at_once = max(1, _MOST_NUMBERS // (len(read) * widest))
    for start in range(0, len(read), n_at_once):
        some = slice(start, start + n_at_once)
        middle[some] += _through(read[some], layer.mlp, some)
    return _through(middle, [path.after_rest])


def _bias_of_attention(
    layer: _Layer,
    weights: Float[Tensor, "head query key"],
    output_weight: Float[Tensor, "head d_value d_model"],
) -> Float[Tensor, "query d_model"]:
    """The bias of W_O, with those of the values, which each query reads as far as its weights sum to 1."""
    bias = torch.zeros(weights.shape[1], output_weight.shape[-1])
    if layer.value_bias is not None:
        of_values = torch.einsum("hv,hvd->hd", torch.tensor(layer.value_bias), output_weight)
        bias += weights.sum(dim=-1).T @ of_values
    if layer.output_map.bias is not None:
        bias += torch.tensor(layer.output_map.bias)
    return bias


def _through(
    parts: Float[Tensor, "*vector part d"],
    steps: Sequence[Step | None],
    tokens: slice = slice(None),
    rows: list[int] | None = None,
) -> Float[Tensor, "*vector part d_after"]:
    """The parts after some steps; None is no step.

    Args:
        tokens: those whose parts are given, of steps at all tokens.
        rows: the dimensions of the last map's output that are asked for; None for all.
    """

    def at(numbers: np.ndarray) -> Tensor:
        own = numbers[tokens] if numbers.ndim > 1 else numbers
        return torch.tensor(own, dtype=torch.float32)

    for number, step in enumerate(steps):
        match step:
            case Affine():
                asked = rows if number == len(steps) - 1 else None
                parts = through_map(parts, torch.tensor(step.weight), torch.tensor(step.bias), asked)
            case FrozenNorm():
                parts = through_norm(parts, at(step.gain), at(step.bias), is_centred=step.is_centred)
            case Slopes():
                parts = through_activation(parts, at(step.slopes))
    return parts


@differentiable()
def _number(
    model: Model, trace: Trace, measure: MeasuredOutcome, parts: Float[Tensor, "token part d_last"]
) -> DecompX:
    """The outcome, of the parts of the last hidden states."""
    states, outcome = torch.tensor(trace.last_hidden_state), measure.outcome
    match outcome:
        case TokenState():
            place = outcome.place(len(states))
            direction = torch.zeros_like(states)
            direction[place] = states[place] / states[place].norm()
            return _along(trace, parts, direction, "length", float(states[place].norm()))
        case Similarity():
            given = states.clone().requires_grad_()
            (slope,) = torch.autograd.grad(measure(given[None]).sum(), given)
            # of cos = m · v / |m| the slope lacks what the length of the mean m adds, cos m / |m|^2; with |m| fixed it is linear
            mean = states.mean(dim=0)
            direction = slope + measure.value * mean / mean.square().sum() / len(states)
            return _along(trace, parts, direction, "cosine", measure.value)
        case _:
            head = _head(model, trace, outcome)
            assert head is not None  # of an answer and of a class
            of_start = parts.mean(dim=0) if head.place is None else parts[head.place]
            with torch.inference_mode():
                values = _through(of_start, head.steps, rows=list(head.rows)) @ torch.tensor(head.signs)
            return DecompX(
                tokens=trace.tokens,
                unit="logit" if len(head.rows) == 1 else "difference of logits",
                total=head.total,
                values=values.numpy().copy(),
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Head(Record):
    """How a head makes a logit, or a difference of two, of the last hidden states."""

    place: int | None
    """The token whose state it reads; None for the mean of all."""
    steps: tuple[Step, ...]
    rows: tuple[int, ...]
    """The logits."""
    signs: Float[np.ndarray, " logit"]
    """1 for the logit, -1 for the one that is subtracted."""
    total: float


def _head(model: Model, trace: Trace, outcome: Outcome) -> _Head | None:
    """The steps of an answer or of a class; None for other outcomes.

    Raises:
        UnsupportedArchitectureError: attnviz does not know them.
    """
    states = torch.tensor(trace.last_hidden_state)
    chosen: tuple[int | None, ...]
    places: list[int | None]
    match outcome:
        case TokenAnswer():
            chosen, places = answer_ids(model, outcome), [outcome.place(len(states))]
            calls, logits = _calls(model.language_head, states[outcome.place(len(states))][None, None])
        case ClassAnswer():
            labels = outcome.label, outcome.against
            chosen = tuple(None if label is None else class_number(model, label) for label in labels)
            places = [*range(len(states)), None]
            calls, logits = _calls(model.classifier, states[None])
        case _:
            return None
    rows = tuple(number for number in chosen if number is not None)
    signs = np.array([1, -1], dtype=np.float32)[: len(rows)]
    for place in places:
        start = states.mean(dim=0) if place is None else states[place]
        steps = steps_between(start.numpy(), logits, calls)
        if steps is not None:
            total = float(logits[list(rows)].astype(np.float64) @ signs)
            return _Head(place=place, steps=steps, rows=rows, signs=signs, total=total)
    raise _unknown(model, "a sum of parts through the head")


def _along(
    trace: Trace,
    parts: Float[Tensor, "token part d_last"],
    direction: Float[Tensor, "token d_last"],
    unit: Literal["length", "cosine"],
    total: float,
) -> DecompX:
    """A number that is a linear function of the last hidden states."""
    values = torch.einsum("tkd,td->k", parts.clone(), direction.detach())
    return DecompX(tokens=trace.tokens, unit=unit, total=total, values=values.numpy().copy())


def _calls(head: Any, states: Float[Tensor, "1 token d_last"]) -> tuple[tuple[Call, ...], np.ndarray]:
    """The calls of a head's modules on one vector, in the order in which they end, and its logits."""
    copied, calls = share_parameters(head), []

    def note(module: torch.nn.Module, args: tuple[Any, ...], made: Any) -> None:
        given = args[0] if args else None
        if not (isinstance(given, Tensor) and isinstance(made, Tensor)):
            return
        if all(each.numel() == each.shape[-1] for each in (given, made)):
            vectors = [each.reshape(-1).float().cpu().numpy().copy() for each in (given, made)]
            calls.append(Call(module=module, given=vectors[0], made=vectors[1]))

    for module in modules_of_head(copied):
        module.register_forward_hook(note)
    with torch.inference_mode():
        logits: Tensor = forward(copied, inputs_embeds=states).logits
    return tuple(calls), logits.reshape(-1).float().cpu().numpy()
