"""What each head, each MLP and the embedding add to a logit directly: direct logit attribution.

The last hidden state of a token is a sum of what entered the first layer and what every head and MLP added at that
token, sent through the norms on the way. With each norm's scale frozen at the value that it had, the norms are linear,
and a logit that is a linear function of the last hidden state, u·h + b, is a sum too:

    logit = u_0 · start + sum over layers l of (sum over heads h of u_l · (o_lh W_O^lh) + v_l · m_l + biases_l) + bias

where o_lh is the output of head h at the token, m_l that of the MLP, and u_l and v_l are u carried backwards through the
frozen norms between there and the end. The output of a head is a sum over the tokens that it reads, o_lh = Σ_j A_j v_j, so
what it adds is a sum over these sources too: Σ_j A_j (v_j W_O^lh · u_l). *Direct* leaves out what an addition changes in later
heads, MLPs and scales: switching a head off (`attnviz.effects.ablation`) changes the logit by another number. In BERT, whose
every layer normalises the stream, more is left out than in GPT-2, which has one norm on the way.

BERT's language head is not linear (a dense layer, GELU and a norm): its logits have no such sum, and `attribute_token` raises
an error. `attribute_state` splits the length of the last hidden state instead, for every family: u = h / ‖h‖.

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits"; Wang et al. 2022, "Interpretability in the
Wild" (arXiv:2211.00593), section 2.2 (frozen scale) and 3.1 (direct effects on the logit difference).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float

from attnviz.arguments import typed
from attnviz.effects.outcome import Outcome, TokenAnswer, answer_ids, own_answer
from attnviz.errors import SelectionError, UnsupportedArchitectureError
from attnviz.maths.attention import attention_weights
from attnviz.maths.gradients import differentiable
from attnviz.model.answers import language_head, token_logits
from attnviz.model.direct_path import carried, carried_back, check_parts, final_steps, layer_paths
from attnviz.model.head_attention import score_inputs
from attnviz.model.model import Model
from attnviz.model.stream import record_stream
from attnviz.model.trace import Trace
from attnviz.records import Head, Kind, LayerAttention, Result, check_index, head_table, heads_in, known
from attnviz.records.table import Table

TOLERANCE = 1e-5
"""Largest gap between the sum of the parts and the model's own number, as a share of the sum of the parts' sizes: float32
passes round each vector by about 1e-6 of its length."""
_LINEAR = TOLERANCE
"""Largest departure of a language head from a linear function, as a share of the numbers that it sums; Gemma 2, which
softcaps its logits, departs little where these are small."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DirectParts(Result):
    """A number of a last hidden state, or the mean of several, as a sum of what each part of the model adds to it directly."""

    unit: Literal["logit", "difference of logits", "length"]
    total: float
    """The model's own number."""
    embedding: float
    """From the vector that enters the first layer."""
    heads: Float[np.ndarray, "layer head"]
    """From each head's output, through W_O; NaN where a layer has no such head."""
    mlps: Float[np.ndarray, " layer"]
    """From the rest of each layer: its MLP, biases included."""
    biases: Float[np.ndarray, " layer"]
    """From the biases of each layer's W_O and norms."""
    bias: float
    """From the biases after the last layer: final norm and language head."""

    @property
    def of_attention(self) -> Float[np.ndarray, " layer"]:
        """From all heads of each layer together."""
        return np.asarray(np.nansum(self.heads, axis=1, dtype=np.float64), dtype=np.float32)

    @property
    def summed(self) -> float:
        """The sum of all parts."""
        of_layers = sum(
            float(part.sum(dtype=np.float64)) for part in (known(self.heads), self.mlps, self.biases)
        )
        return self.embedding + of_layers + self.bias

    @property
    def gap(self) -> float:
        """The model's own number minus the sum of the parts: rounding alone."""
        return self.total - self.summed

    @property
    def size(self) -> float:
        """The sum of the absolute values of all parts."""
        of_layers = sum(float(np.abs(part).sum()) for part in (known(self.heads), self.mlps, self.biases))
        return abs(self.embedding) + of_layers + abs(self.bias)

    @property
    def passed(self) -> bool:
        """Whether the parts sum to the model's own number within `TOLERANCE`; False for NaN."""
        return abs(self.gap) <= TOLERANCE * self.size

    def ranked(self) -> list[Head]:
        """All heads, the largest effect first, of either sign."""
        return sorted(heads_in(self.heads), key=lambda place: -abs(float(self.heads[place])))

    def _table(self) -> Table:
        """A row for every part."""
        rows: list[list[object]] = [["", "embedding", self.embedding]]
        for layer, heads in enumerate(self.heads):
            rows += [[layer, f"head {head}", effect] for head, effect in enumerate(known(heads))]
            rows += [[layer, "MLP", self.mlps[layer]], [layer, "biases", self.biases[layer]]]
        rows += [["", "final biases", self.bias], ["", "sum", self.summed], ["", "model", self.total]]
        return ["layer", "part", self.unit], rows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DirectEffects(DirectParts):
    """The parts of a number of one token's last hidden state."""

    kind: Kind
    position: int
    sources: tuple[Float[np.ndarray, "_ key"], ...]
    """From what each head of each layer reads at each token, [head, key]; the sum over the tokens is the head's part."""


@typed
@differentiable()
def attribute_token(
    model: Model, trace: Trace, position: int, token: str, *, against: str | None = None
) -> DirectEffects:
    """What each part adds directly to the logit of a token, predicted at a position of a trace.

    Args:
        trace: of the text without interventions.
        token: as `attnviz.model.answers.token_id`.
        against: another token, whose logit is subtracted.

    Raises:
        OutOfMemoryError: the text is too long for the memory that is left.
        SelectionError: no such position or token, a trace with interventions, or a model in another dtype than float32.
        UnsupportedArchitectureError: no language head, one that is not linear (BERT's), or a family whose layers attnviz
            cannot take apart.
    """
    language_head(model, f"what adds to the answer “{token}”")
    check_index("token", position, len(trace.last_hidden_state), "this text")
    chosen, other = answer_ids(model, TokenAnswer(position=position, token=token, against=against))
    direction, bias, total = _linear_logit(
        model, torch.tensor(trace.last_hidden_state[position]), chosen, other
    )
    unit: Literal["logit", "difference of logits"] = "logit" if other is None else "difference of logits"
    return _attributed(model, trace, position, direction, bias, total, unit)


@differentiable()
def has_linear_head(model: Model, trace: Trace, position: int, token: str) -> bool:
    """Whether the logit of a token is a linear function of the last hidden state of a position.

    Raises:
        SelectionError: no such position or token.
    """
    check_index("token", position, len(trace.last_hidden_state), "this text")
    chosen, _ = answer_ids(model, TokenAnswer(position=position, token=token))
    try:
        _linear_logit(model, torch.tensor(trace.last_hidden_state[position]), chosen, None)
    except UnsupportedArchitectureError:
        return False
    return True


def _linear_logit(
    model: Model, vector: torch.Tensor, chosen: int, other: int | None
) -> tuple[np.ndarray, float, float]:
    """A logit, or a difference of two, as a function of a last hidden state: its direction and its bias, and the number itself.

    Raises:
        UnsupportedArchitectureError: the function is not linear.
    """

    def number(states: torch.Tensor) -> torch.Tensor:
        logits = token_logits(model, states)
        return logits[chosen] if other is None else logits[chosen] - logits[other]

    given = vector.clone().requires_grad_()
    own = number(given)
    (gradient,) = torch.autograd.grad(own, given)
    with torch.no_grad():
        bias, total = float(number(torch.zeros_like(vector))), float(own)
        for factor in (1, -1, 2):
            expected = bias + factor * float(gradient.double() @ vector.double())
            size = abs(bias) + 2 * float((gradient * vector).abs().sum())
            if not abs(float(number(factor * vector)) - expected) <= _LINEAR * size:
                raise UnsupportedArchitectureError(
                    f"What adds to the logit of “{model.name_of(chosen)}” was asked for; the language head of {model.name} is not "
                    "linear, so its logits are no sum. Ask for the parts of the last hidden state (attribute_state), or select a "
                    "model with a linear head, such as gpt2."
                )
    return gradient.double().cpu().numpy(), bias, total


@typed
def attribute_state(model: Model, trace: Trace, position: int) -> DirectEffects:
    """What each part adds directly to the length of a token's last hidden state, along its direction.

    Args:
        trace: of the text without interventions.

    Raises:
        As `attribute_token`, but no language head is needed.
    """
    check_index("token", position, len(trace.last_hidden_state), "this text")
    vector = trace.last_hidden_state[position].astype(np.float64)
    length = float(np.linalg.norm(vector))
    return _attributed(model, trace, position, vector / length, 0.0, length, "length")


def attribute_answer(
    model: Model, trace: Trace, position: int, outcome: Outcome | None = None
) -> tuple[TokenAnswer | None, DirectEffects]:
    """What each part adds to an outcome that is an answer, and otherwise to the model's own answer at a token.

    With None as the answer, what each part adds to the length of the last hidden state: if there is no language head, if it
    is not linear (BERT's), or if the vocabulary has no entry for the model's own answer.

    Raises:
        As `attribute_token`, for an answer that was given, and `attribute_state`.
    """
    if model.language_head is not None:
        answer = outcome if isinstance(outcome, TokenAnswer) else own_answer(model, trace, position)
        assert answer is not None  # there is a language head and a position
        position = answer.place(len(trace.last_tokens))
        try:
            return answer, attribute_token(model, trace, position, answer.token, against=answer.against)
        except (SelectionError, UnsupportedArchitectureError) as error:
            if answer is outcome and isinstance(error, SelectionError):
                raise
            # attributing the state raises the reason if that is impossible, too
    return None, attribute_state(model, trace, position)


def _attributed(
    model: Model,
    trace: Trace,
    position: int,
    direction: np.ndarray,
    bias: float,
    total: float,
    unit: Literal["logit", "difference of logits", "length"],
) -> DirectEffects:
    """The parts of ``direction · last hidden state + bias``, found from the last layer down to the embedding."""
    check_parts(model, trace, "The parts of a hidden state were")
    stream = record_stream(model, trace, position)
    for step in final_steps(stream)[::-1]:
        direction, of_step = carried(step, direction)
        bias += float(of_step)
    paths = layer_paths(stream)
    n_layer = len(paths)
    heads: list[np.ndarray] = [np.zeros(0)] * n_layer  # of each layer
    sources: list[np.ndarray] = [np.zeros((0, 0))] * n_layer
    mlps, biases = np.zeros(n_layer), np.zeros(n_layer)
    for layer in reversed(range(n_layer)):
        output_map = model.output_maps[stream.kind][layer]
        back = carried_back(paths[layer], output_map, direction)
        direction, mlps[layer], biases[layer] = back.entering, back.rest, back.biases
        outputs = trace.outputs(layer, stream.kind)[:, position]  # [head, d_value]
        along = output_map.weight @ back.of_attention  # [head, d_value]
        heads[layer] = np.einsum("hv,hv->h", outputs, along)
        sources[layer] = _of_sources(trace.attention(layer, stream.kind), position, along)
    return DirectEffects(
        kind=stream.kind,
        position=position,
        unit=unit,
        total=total,
        embedding=float(direction @ stream.start),
        heads=head_table(heads),
        sources=tuple(source.astype(np.float32) for source in sources),
        mlps=mlps.astype(np.float32),
        biases=biases.astype(np.float32),
        bias=bias,
    )


def _of_sources(
    call: LayerAttention, position: int, along: Float[np.ndarray, "head d_value"]
) -> Float[np.ndarray, "head key"]:
    """What each head of a layer reads at each token, along a direction of its values."""
    given = score_inputs(call)
    for name in ("query", "allowed", "bias"):
        if given[name] is not None and given[name].shape[-2] > 1:
            given[name] = given[name][..., position : position + 1, :]
    weights = attention_weights(**given)[:, 0].numpy()  # [head, key]
    shared = np.arange(len(along)) // (len(along) // len(call.value))
    products = np.einsum("hkv,hv->hk", call.value[shared], along, optimize=True)
    return np.asarray(weights * products)
