"""Queries, keys and values as linear functions of the vectors that enter their layer, with the norms frozen.

The linear form of one vector of a head is found by differentiation, whatever the family has between the stream and
its attention: a norm, W_Q with its bias, a norm of queries and keys, a turn by rotary positions. Norms are frozen as in
`attnviz.model.direct_path`. That the form gives the model's own vector is true by construction; that nothing nonlinear
is left in between is checked, by what the same layer makes of zeros.

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", section "QK and OV circuits"; rotary
positions, a rotation of each query and key: Su et al. 2021 (arXiv:2104.09864), equation 14.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor, nn

from attnviz.errors import CaptureError, SelectionError, UnsupportedArchitectureError, enough_memory
from attnviz.maths.gradients import differentiable
from attnviz.model.capture import AttentionCall, Recording, recorded_in, share_parameters
from attnviz.model.changes import Changes
from attnviz.model.model import Model
from attnviz.model.normalisation import is_norm, normalisation_of
from attnviz.model.stream import layer_runs
from attnviz.model.structure import LayerRun
from attnviz.model.trace import Trace
from attnviz.records import ROLE_NAMES, Kind, Record, Role

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_ROUNDING = 1e-4
"""Largest distance of a form's bias from what the layer makes of zeros, as a share of the sizes of their terms: float32 rounds
each of a few successive products by about 1e-6 of these; a norm that is not frozen is off by as much as the vector itself."""

_MOST_SLOPES = 2**24
"""Most numbers of slopes that are held at a time."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearForm(Record):
    """One vector of one head at one token: ``weight @ entering + bias``, where ``entering`` is what enters the layer there."""

    weight: Float64[np.ndarray, "d_head d_model"]
    bias: Float64[np.ndarray, " d_head"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A vector whose form is asked for."""

    layer: int
    role: Role
    head: int
    """Number of the head among those of its role; keys and values may have fewer heads than queries."""
    position: int


@differentiable()
def linear_forms(model: Model, trace: Trace, kind: Kind, wanted: Sequence[Wanted]) -> tuple[LinearForm, ...]:
    """The forms of some vectors of self-attention, for the text of a trace.

    Args:
        trace: of the text without interventions.

    Raises:
        ModelFailedError, OutOfMemoryError: as `attnviz.model.capture.forward`.
        SelectionError: a model in another dtype than float32, which rounds too much.
        UnsupportedArchitectureError: the vectors do not depend only on what enters the layer, or depend on it in a way that
            attnviz does not know, such as by a norm without weights.
    """
    if model.network.dtype != torch.float32:
        raise SelectionError(
            f"What queries, keys and values are made of was asked for; {model.name} computes in {model.provenance.dtype}, which "
            "rounds too much for a sum of them. Load it with dtype float32."
        )
    network = share_parameters(model.network)
    runs = layer_runs(model, network, trace, kind)
    forms: dict[Wanted, LinearForm] = {}
    for layer in dict.fromkeys(asked.layer for asked in wanted):
        run = runs[layer]
        assert run.state is not None
        with _FrozenNorms(run.layer) as norms, enough_memory():
            entering = run.state.detach().clone().requires_grad_()
            made = _vectors(network, run, entering)
            norms.replay()
            with torch.no_grad():
                of_zeros = _vectors(network, run, torch.zeros_like(entering))
            for asked in (asked for asked in wanted if asked.layer == layer):
                form = _form(asked, entering, made[asked.role], of_zeros[asked.role])
                if form is None:
                    raise UnsupportedArchitectureError(
                        "What queries, keys and values are made of was asked for; attnviz does not know how this family makes "
                        f"the {ROLE_NAMES[asked.role]} of layer {layer} of the residual stream. Select a model of another family, "
                        "such as BERT, GPT-2 or Llama."
                    )
                forms[asked] = form
    return tuple(forms[asked] for asked in wanted)


def _vectors(network: "PreTrainedModel", run: LayerRun, entering: Tensor) -> Mapping[Role, Tensor]:
    """What a layer's attention gets, [batch, head, token, d_head], when other states enter the layer."""
    recording = _UntilAttention(network, Changes())
    try:
        with recorded_in(recording):
            run.again(entering)
    except _StoppedError as stopped:
        return stopped.vectors
    raise CaptureError(
        f"{type(run.layer).__name__} did not call its attention when it ran alone. Report this model; its numbers are not shown."
    )


def _form(asked: Wanted, entering: Tensor, made: Tensor, of_zeros: Tensor) -> LinearForm | None:
    """The form of one vector of ``made``, [batch, head, token, d_head]; None where it is not linear in what enters at its token."""
    vector = made[0, asked.head, asked.position]
    unit = torch.eye(len(vector), dtype=vector.dtype, device=vector.device)
    slopes = [
        torch.autograd.grad(
            vector, entering, rows, retain_graph=True, is_grads_batched=True, allow_unused=True
        )[0]
        for rows in torch.split(unit, max(1, _MOST_SLOPES // entering.numel()))
    ]
    if any(rows is None for rows in slopes):
        return None
    flat = torch.cat([rows.reshape(len(rows), -1, rows.shape[-1])[:, asked.position] for rows in slopes])
    weight, own = flat.double().cpu().numpy(), vector.detach().double().cpu().numpy()
    state = entering.detach().reshape(-1, entering.shape[-1])[asked.position].double().cpu().numpy()
    bias = own - weight @ state
    expected = of_zeros[0, asked.head, asked.position].double().cpu().numpy()
    size = np.linalg.norm(np.abs(weight) @ np.abs(state)) + np.linalg.norm(own) + np.linalg.norm(expected)
    is_linear = bool(np.linalg.norm(bias - expected) <= _ROUNDING * size)  # False for NaN
    return LinearForm(weight=weight, bias=bias) if is_linear else None


class _StoppedError(Exception):
    """Raised when the layer calls its attention, with the vectors of that call."""

    def __init__(self, vectors: Mapping[Role, Tensor]) -> None:
        super().__init__()
        self.vectors = vectors


class _UntilAttention(Recording):
    """Ends the pass at its first attention call."""

    def add(self, module: nn.Module, call: AttentionCall) -> None:
        """Raises `_StoppedError`: only these vectors are needed."""
        raise _StoppedError({"query": call.query, "key": call.key, "value": call.value})


class _FrozenNorms:
    """A context in which the norms of a layer keep the scales of its first run.

    Args:
        layer: of a copy of the network, which nothing else uses.
    """

    def __init__(self, layer: nn.Module) -> None:
        self._kept: list[tuple[Tensor, Tensor | None, bool] | None] = []
        """For each call in turn: factor, bias and whether the mean is subtracted; None for a module that is no known norm."""
        self._again: Iterator[tuple[Tensor, Tensor | None, bool] | None] | None = None
        self._handles = [norm.register_forward_hook(self._call) for norm in filter(is_norm, layer.modules())]

    def __enter__(self) -> "_FrozenNorms":
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()

    def replay(self) -> None:
        """Lets the layer run once more, with the scales of its first run."""
        self._again = iter(self._kept)

    def _call(self, module: nn.Module, args: tuple[Any, ...], made: Tensor) -> Tensor | None:
        given: Tensor = args[0]
        if self._again is None:
            self._kept.append(_frozen(module, given.detach(), made.detach()))
        frozen = self._kept[-1] if self._again is None else next(self._again)
        if frozen is None:
            return None
        factor, bias, is_centred = frozen
        scaled = (given - given.mean(dim=-1, keepdim=True) if is_centred else given) * factor
        return scaled if bias is None else scaled + bias


def _frozen(module: nn.Module, given: Tensor, made: Tensor) -> tuple[Tensor, Tensor | None, bool] | None:
    rows, results = (array.reshape(-1, array.shape[-1]).float().cpu().numpy() for array in (given, made))
    norm = normalisation_of(module, rows, results)
    if norm is None:
        return None
    centred = given - given.mean(dim=-1, keepdim=True) if norm.method == "layer" else given
    scale = (centred.double().square().mean(dim=-1, keepdim=True) + norm.eps).sqrt().to(given.dtype)
    bias = None if norm.bias is None else torch.tensor(norm.bias).to(given)
    return torch.tensor(norm.weight).to(given) / scale, bias, norm.method == "layer"
