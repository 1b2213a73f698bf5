"""The structure of a network: its layers, the W_O and the MLP of each, and its learned positions, found in one recorded pass.

- A layer is the entry of the outermost ``ModuleList`` that holds its attention; ALBERT's, which runs once for every layer, is one.
- W_O is the linear map that takes the concatenated outputs of the heads, unchanged, and multiplies them by its weight; a map
  after a norm or a gate (BitNet, Qwen3-Next) does not count.
- A layer leaves s + m, or a norm of it, where m is the output of its MLP, or of the norm behind it (Gemma 2), and s a vector that
  passed through the layer before: the stream after the attention; where attention and MLP stand side by side (GPT-NeoX), the
  stream before both plus the output of W_O. A mixture of experts counts as one MLP. A layer that scales what it adds (Granite)
  counts as having none.

Source: Vaswani et al. 2017 (arXiv:1706.03762), section 3.1, for norms after the sum; Xiong et al. 2020 (arXiv:2002.04745) for
norms before.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from attnviz.maths.rounding import dot_bound
from attnviz.model.capture import current_recording
from attnviz.model.normalisation import is_norm
from attnviz.records import Kind, LayerAttention, Record, Tokens

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from attnviz.model.trace import Trace

Linear = nn.Linear | Conv1D
Ingredient = Literal["token", "position", "segment"]

_ROUNDING = 8
"""Largest difference of two sums of the same few numbers, in units of their dtype's rounding of the sum of their sizes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OutputMap(Record):
    """W_O of one layer; shares the memory of the model's parameters where these are float32 on the CPU."""

    name: str
    """Name of the module in the network, such as ``encoder.layer.0.attention.output.dense``."""
    weight: Float[np.ndarray, "head d_value d_model"]
    bias: Float[np.ndarray, " d_model"] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionTable:
    """The embedding table that looks up positions."""

    name: str
    first: int
    """Row of position 0: families such as RoBERTa keep the rows before it for padding."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Structure(Record):
    """Where the parts of a network are, by the names of their modules."""

    layers: tuple[str, ...] = ()
    """In the order in which they first run; ALBERT has one for all layers."""
    output_maps: Mapping[Kind, tuple[OutputMap, ...]] = field(default_factory=dict)
    """W_O of every layer by kind of attention; a kind is missing unless attnviz knows W_O of all its layers."""
    mlps: tuple[str, ...] = ()
    """In the order of the layers; empty unless attnviz knows the MLP of every layer."""
    positions: PositionTable | None = None
    """None where the network has no learned positions."""

    @property
    def joining(self) -> tuple[str, ...]:
        """The modules of W_O."""
        return tuple(dict.fromkeys(output_map.name for of in self.output_maps.values() for output_map in of))

    def with_output_maps(self, calls: Sequence[LayerAttention]) -> tuple[LayerAttention, ...]:
        """The attention of some layers with their W_O; unchanged where W_O is not known."""
        return tuple(map(self.with_output_map, calls))

    def with_output_map(self, call: LayerAttention) -> LayerAttention:
        """The attention of a layer with its W_O; unchanged where W_O is not known."""
        if (maps := self.output_maps.get(call.kind)) is None:
            return call
        output_map = maps[call.layer]
        return replace(call, output_weight=output_map.weight, output_bias=output_map.bias)


Passed = tuple[nn.Module, np.ndarray, np.ndarray]
"""A module with its input and output, [row x token, width] each."""


@dataclass(slots=True)
class LayerRun:
    """One run of a layer, and what passed through the modules within it."""

    layer: nn.Module
    args: tuple[Any, ...]
    named: dict[str, Any]
    state: Tensor | None
    """What enters it, [row, token, d_model]: the first argument of that form."""
    entered: np.ndarray | None
    """The same as rows, which stay as they are if the family changes the state in place."""
    n_before: int
    """Attention calls before it."""
    left: np.ndarray | None = None
    calls: list[Passed] = field(default_factory=list)
    """In the order in which the modules ended."""
    is_over: bool = False
    has_attention: bool = False

    def again(self, states: Tensor) -> Tensor:
        """What leaves the layer when it runs alone, and other states enter it: [row, token, d_model]."""
        made = self.layer(
            *(states if arg is self.state else arg for arg in self.args),
            **{name: states if value is self.state else value for name, value in self.named.items()},
        )
        left: Tensor = made[0] if isinstance(made, tuple) else made
        return left.reshape(states.shape)


class Passing:
    """A context that records what passes through the layers of a network.

    Args:
        network: nothing else may use it meanwhile.
        layers: modules, of which none is within another.
        rows: tokens whose vectors are kept, of all rows of the batch; None for all of them.
        is_within: whether what passes through other modules is recorded too.
    """

    def __init__(
        self,
        network: nn.Module,
        layers: Iterable[nn.Module],
        *,
        rows: Sequence[int] | None = None,
        is_within: bool = True,
    ) -> None:
        self.runs: list[LayerRun] = []
        self.after: list[Passed] = []
        """Modules that ran after the last layer."""
        self._rows = slice(None) if rows is None else list(rows)
        layers = tuple(layers)
        modules = tuple(network.modules()) if is_within else layers
        self._handles = [layer.register_forward_pre_hook(self._enter, with_kwargs=True) for layer in layers]
        self._handles += [module.register_forward_hook(self._leave, with_kwargs=True) for module in modules]

    def __enter__(self) -> "Passing":
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()

    def kept(self, states: Tensor) -> np.ndarray:
        """The vectors that are kept of these, [row x token, width], in float32."""
        return states.reshape(-1, states.shape[-1])[self._rows].float().cpu().numpy().copy()

    def _enter(self, layer: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        state = next((value for value in (*args, *named.values()) if is_batch_of_states(value)), None)
        entered = None if state is None else self.kept(state)
        self.runs.append(LayerRun(layer, args, named, state, entered, _n_attention()))
        self.after.clear()

    def _leave(self, module: nn.Module, args: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
        if not self.runs:
            return
        run, made = self.runs[-1], output[0] if isinstance(output, tuple) and output else output
        ends = module is run.layer and not run.is_over
        if ends:
            run.is_over, run.has_attention = True, _n_attention() > run.n_before
        if run.state is None or not is_state(made, run.state.shape[:-1].numel()):
            return
        if ends:
            run.left = self.kept(made)
            return
        given = next(
            (value for value in (*args, *named.values()) if is_state(value, made.shape[:-1].numel())), None
        )
        if given is not None:
            (self.after if run.is_over else run.calls).append((module, self.kept(given), self.kept(made)))


def _n_attention() -> int:
    recording = current_recording.get()
    return 0 if recording is None else recording.order.n_calls


def find_structure(network: "PreTrainedModel", read: Callable[[], "Trace"]) -> Structure:
    """The structure of a network, found while it reads some tokens.

    Args:
        network: runs on attnviz's attention; nothing else may use it meanwhile.
        read: lets it read a few tokens: with a single one, a position looks like a segment.
    """
    names = {module: name for name, module in network.named_modules()}
    output_maps: dict[tuple[Kind, int], OutputMap] = {}
    lookups: list[tuple[nn.Embedding, Any, Tensor]] = []

    def join(module: Linear, given: tuple[Any, ...], made: object) -> None:
        recording = current_recording.get()
        if recording is None or recording.output is None or not isinstance(made, Tensor):
            return  # a router of experts gives scores and logits (Llama 4)
        place, output = recording.order.last, recording.output
        if place is not None and place not in output_maps:
            output_map = _output_map(names[module], module, output, given[0], made)
            output_maps.update({} if output_map is None else {place: output_map})

    def look_up(table: nn.Embedding, asked: tuple[Any, ...], made: Tensor) -> None:
        if asked and isinstance(made, Tensor):
            lookups.append((table, asked[0], made.reshape(-1, made.shape[-1]).clone()))

    handles = [module.register_forward_hook(join) for module in names if isinstance(module, Linear)]
    handles += [module.register_forward_hook(look_up) for module in names if isinstance(module, nn.Embedding)]
    try:
        with Passing(network, _entries(network)) as passing:
            trace = read()
    finally:
        for handle in handles:
            handle.remove()
    runs = [run for run in passing.runs if run.has_attention]
    structure = Structure(
        layers=tuple(dict.fromkeys(names[run.layer] for run in runs)),
        output_maps={
            kind: tuple(output_maps[kind, layer] for layer in range(trace.n_layers(kind)))
            for kind in trace.kinds
            if all((kind, layer) in output_maps for layer in range(trace.n_layers(kind)))
        },
        positions=_positions(network, names, trace.tokens, lookups),
    )
    joining = set(map(network.get_submodule, structure.joining))
    mlps = [find_mlp(run, joining, torch.finfo(network.dtype).eps) for run in runs]
    return replace(
        structure, mlps=() if None in mlps else tuple(names[mlp] for mlp in mlps if mlp is not None)
    )


def _entries(network: nn.Module) -> list[nn.Module]:
    """The entries of the outermost lists of a network, which its layers are among."""
    lists = {name: module for name, module in network.named_modules() if isinstance(module, nn.ModuleList)}
    outermost = (
        module for name, module in lists.items() if not any(name.startswith(f"{other}.") for other in lists)
    )
    return list(dict.fromkeys(entry for module in outermost for entry in module))


def _output_map(name: str, module: Linear, output: Tensor, given: Tensor, made: Tensor) -> OutputMap | None:
    """The map that a module is of the outputs of the heads, [batch, query, head, d_value]; None where it is none."""
    joined = output.flatten(-2)
    if given.numel() != joined.numel() or not torch.equal(given.reshape(joined.shape), joined):
        return None
    weight, bias = linear_parameters(module)
    if not _is_product(joined, weight, bias, made):
        return None
    weight = weight.float().cpu()
    return OutputMap(
        name=name,
        weight=weight.reshape(output.shape[-2], -1, weight.shape[-1]).numpy(),
        bias=None if bias is None else bias.float().cpu().numpy(),
    )


def linear_parameters(linear: Linear) -> tuple[Tensor, Tensor | None]:
    """Weight [d_in, d_out] and bias [d_out] of a linear map; a `Conv1D` keeps its weight transposed."""
    weight = linear.get_parameter("weight").detach()
    bias = getattr(linear, "bias", None)
    return weight if isinstance(linear, Conv1D) else weight.mT, None if bias is None else bias.detach()


def _is_product(given: Tensor, weight: Tensor, bias: Tensor | None, made: Tensor) -> bool:
    """Whether a module's output is its input times its weight, within the rounding of its dtype."""
    given, made = (array.reshape(-1, array.shape[-1]).double() for array in (given, made))
    expected, sizes = given @ weight.double(), given.abs() @ weight.double().abs()
    if bias is not None:
        expected, sizes = expected + bias.double(), sizes + bias.double().abs()
    return bool(((made - expected).abs() <= 2 * dot_bound(len(weight) + 1, weight.dtype) * sizes).all())


def find_mlp(run: LayerRun, joining: set[nn.Module], eps: float) -> nn.Module | None:
    """The module whose output is the last that a layer adds; of several modules with this output the innermost.

    Args:
        joining: the modules of W_O.
        eps: rounding of the network's dtype.
    """
    last = max((at for at, (module, _, _) in enumerate(run.calls) if module in joining), default=None)
    if last is None or run.left is None or run.entered is None:
        return None
    sums = [run.left]
    sums += [given for module, given, made in run.calls if is_norm(module) and np.array_equal(made, run.left)]
    streams = [run.entered + run.calls[last][2]]
    for at, (module, given, made) in enumerate(run.calls):
        if at > last and made.any():
            for stream in streams:
                if stream.any() and any(is_sum(total, stream, made, eps=eps) for total in sums):
                    return module
        streams += [given, made]  # what the MLP is added to exists before it
    return None


def is_sum(total: np.ndarray, *terms: np.ndarray, eps: float = float(np.finfo(np.float32).eps)) -> bool:
    """Whether a vector is the sum of others, in any order, within the rounding of that sum."""
    if {term.shape for term in terms} != {total.shape}:
        return False
    sizes = np.sum([np.abs(term) for term in terms], axis=0, dtype=np.float64)
    off = np.abs(total - np.sum(terms, axis=0, dtype=np.float64))
    return bool((off <= _ROUNDING * eps * sizes).all())


def is_state(given: Any, n_token: int) -> bool:
    """Whether this is a vector for each token of one text; some families join rows and tokens."""
    is_floating = isinstance(given, Tensor) and given.ndim in (2, 3) and given.is_floating_point()
    return is_floating and given.numel() == n_token * given.shape[-1]


def is_batch_of_states(given: Any) -> bool:
    """Whether an argument of a layer is a vector for each row and token."""
    return isinstance(given, Tensor) and given.ndim == 3 and given.is_floating_point()


def looked_up_by(asked: Any, numbers: np.ndarray) -> bool:
    """Whether a table was asked for these rows; Marian passes only a shape to its table of positions, mBART the tokens' vectors."""
    if not isinstance(asked, Tensor) or asked.is_floating_point():
        return False
    return np.array_equal(asked.reshape(-1).cpu().numpy(), numbers)


def ingredient_of(table: nn.Embedding, asked: Any, tokens: Tokens, network: "PreTrainedModel") -> Ingredient:
    """What a table other than the tokens' holds, judged by its lookups; BART's decoder passes ids to its table of positions."""
    is_of_segments = table.num_embeddings == getattr(network.config, "type_vocab_size", 0)
    # RoBERTa has one row for both sentences of a pair
    segments = np.minimum(tokens.segment, table.num_embeddings - 1)
    return "segment" if is_of_segments and looked_up_by(asked, segments) else "position"


def _positions(
    network: "PreTrainedModel",
    names: Mapping[nn.Module, str],
    tokens: Tokens,
    lookups: Iterable[tuple[nn.Embedding, Any, Tensor]],
) -> PositionTable | None:
    """The first table that was asked for positions, one for each token."""
    for table, asked, rows in lookups:
        if len(rows) != len(tokens) or looked_up_by(asked, tokens.ids):
            continue
        if ingredient_of(table, asked, tokens, network) == "position":
            apart = (table.get_parameter("weight") - rows[0]).abs().sum(dim=1)
            return PositionTable(name=names[table], first=int(apart.argmin()))
    return None
