"""A Model of a network that is in memory already: trained a moment ago, with adapters, hooks or quantisation on it.

attnviz runs a copy of its modules that shares its parameters; the network itself is not touched, by loading, by a trace or by
a verification.

Source: ``state_dict``-free sharing by ``copy.deepcopy(model, memo)``, Python 3.11; ``BaseTunerLayer`` of peft 0.21.2.
"""

import copy
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING,
    MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING,
    MODEL_MAPPING,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from attnviz.arguments import described, typed
from attnviz.errors import ArgumentError, ModelNotAvailableError, UnsupportedArchitectureError, failures_of
from attnviz.model.capture import IMPLEMENTATION, run_on
from attnviz.model.checkpoint import quiet, refuse_not_finite
from attnviz.model.families import ADVICE, refuse_unsupported
from attnviz.model.loading import ready
from attnviz.model.model import LIVE, Model
from attnviz.model.own_attention import take_over
from attnviz.model.parts import split_classifier, split_head, text_part
from attnviz.model.structure import Linear

_WITH_HEAD = (
    MODEL_FOR_MASKED_LM_MAPPING,
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
)
_WRAPPERS = ("module", "_orig_mod")
"""Where ``DataParallel``, ``DistributedDataParallel`` and ``torch.compile`` keep the network, in torch 2.13.0."""

_SAMPLED = 64
"""Numbers of each tensor that are compared to see whether it has changed."""


@typed
@torch.inference_mode(False)  # parameters that are made under it can never be differentiated through
def wrap(model: nn.Module, tokenizer: PreTrainedTokenizerBase, *, name: str | None = None) -> Model:
    """A Model of a network in memory, which stays as it is: its mode, hooks, attention, parameters and outputs.

    attnviz works on a copy of the modules, in evaluation mode, that shares the parameters. Hooks of others run in it as in the
    network. An adapter of peft is merged into copies of the weights that it changes. Should the parameters or the adapters that are
    on change later, as by a step of training, traces are refused until it is wrapped again; what changes single numbers of a tensor
    behind torch's back, through ``.data``, may go unnoticed.

    Args:
        model: a ``PreTrainedModel`` of transformers, with its head or without; also one within a ``PeftModel``, ``torch.compile``
            or ``DataParallel``.
        tokenizer: its tokenizer; a copy of it is used.
        name: a name for captions and exports; None for the name that it was loaded by, or that of its class.

    Raises:
        ArgumentError: something else than a ``PreTrainedModel``, or no tokenizer.
        UnsupportedArchitectureError: its family does not let its attention be replaced, or its adapter adds tokens.
        ModelNotAvailableError: parameters are not in memory, or hold NaN or infinity.
        ModelFailedError: it cannot be copied, or its own code raises an error.
    """
    network = _network_within(model)
    loaded_by = str(network.config.name_or_path)
    name = name or (Path(loaded_by).name if Path(loaded_by).exists() else loaded_by) or type(network).__name__
    if any(parameter.is_meta for parameter in network.parameters()):
        raise ModelNotAvailableError(
            f"Parameters of {name} are not in memory (device “meta”), as where they are offloaded to a disk. Load the model "
            "without offloading, and wrap it again."
        )
    refuse_unsupported(name, network.config)
    with failures_of(f"{name} cannot be wrapped", "Load it with attnviz.load_model from a folder."), quiet():
        whole = _copied(network)
        _merge_adapters(whole)
        refuse_not_finite(name, whole, repair="Correct them")
        parts = _parts(whole)
        run_on(parts["network"], IMPLEMENTATION)
        take_over(parts["network"])
        parts["network"].generation_config = getattr(network, "generation_config", None)
        return ready(
            tokenizer=copy.deepcopy(tokenizer),
            name=name,
            revision=LIVE,
            is_unchanged=_Unchanged(network),
            **parts,
        )


class _Unchanged:
    """Whether a network computes with the numbers of when this was made."""

    def __init__(self, network: nn.Module) -> None:
        self._network = network
        self._then = self._now()

    def __call__(self) -> bool:
        numbers, others = self._now()
        return others == self._then[1] and torch.equal(numbers, self._then[0])

    def _now(self) -> tuple[Tensor, list[object]]:
        """Some numbers of each tensor; where each is, how often it was written, and which adapters are on.

        The numbers, since torch does not count what is written through ``.data`` or in inference mode.
        """
        tensors = [*self._network.parameters(), *self._network.buffers()]
        kept = [
            tensor.detach().reshape(-1)[:: max(1, tensor.numel() // _SAMPLED)].float().cpu()
            for tensor in tensors
        ]
        written = [(tensor.data_ptr(), 0 if tensor.is_inference() else tensor._version) for tensor in tensors]
        layers: list[Any] = [
            module for module in self._network.modules() if hasattr(module, "get_base_layer")
        ]
        adapters = [(layer.merged, layer.disable_adapters, tuple(layer.active_adapters)) for layer in layers]
        return torch.nan_to_num(torch.cat(kept)) if kept else torch.empty(0), [*written, *adapters]


def _wrapped_by(given: Any) -> nn.Module | None:
    """What a wrapper of torch holds; None where it is no wrapper."""
    held = dict(given.named_children()) if isinstance(given, nn.Module) else {}
    return next((held[name] for name in _WRAPPERS if name in held), None)


def _network_within(model: Any) -> PreTrainedModel:
    """The transformers model within its wrappers.

    Raises:
        ArgumentError: there is none.
        UnsupportedArchitectureError: its adapter adds tokens or keys of its own.
    """
    given = model
    while not isinstance(given, PreTrainedModel) and (within := _wrapped_by(given)) is not None:
        given = within
    if callable(get_base := getattr(given, "get_base_model", None)) and "peft" in sys.modules:
        if given.active_peft_config.is_prompt_learning:
            raise UnsupportedArchitectureError(
                f"This model has an adapter ({given.active_peft_config.peft_type.value}) that puts vectors of its own beside the "
                f"text's, so its matrices have columns that are no tokens. {ADVICE}"
            )
        given = get_base()
    if not isinstance(given, PreTrainedModel):
        raise ArgumentError(
            f"wrap() was given {described(model)} as model; it takes a PreTrainedModel of transformers, such as "
            "AutoModel.from_pretrained gives. For weights from elsewhere, attnviz.show(attention, tokens) takes arrays."
        )
    return given


def _copied(network: PreTrainedModel) -> PreTrainedModel:
    """A copy in evaluation mode whose parameters have the memory of the network's, but not their gradients."""
    shared: dict[int, Any] = {id(buffer): buffer for buffer in network.buffers()}
    for module in network.modules():  # deepcopy refuses tensors that a hook or a forward has left there
        shared |= {id(kept): kept.detach() for kept in vars(module).values() if isinstance(kept, Tensor)}
    for parameter in network.parameters():
        is_plain = type(parameter) is nn.Parameter  # others are quantised
        shared[id(parameter)] = (
            nn.Parameter(parameter.detach(), requires_grad=False) if is_plain else parameter
        )
    copied: PreTrainedModel = copy.deepcopy(network, shared)
    copied.train(False)
    return copied


def _merge_adapters(network: nn.Module) -> None:
    """Replaces each layer that peft has adapted by one layer with the same effect; quantised ones stay as they are."""
    if "peft" not in sys.modules:
        return
    from peft.tuners.tuners_utils import BaseTunerLayer  # type: ignore[import-not-found, unused-ignore]

    for path, module in list(network.named_modules()):
        if not isinstance(module, BaseTunerLayer):
            continue
        base = module.get_base_layer()
        if not isinstance(base, Linear | nn.Embedding):
            continue
        if not (module.merged or module.disable_adapters):
            for name, parameter in list(base.named_parameters(recurse=False)):  # peft writes into a bias, too
                setattr(base, name, nn.Parameter(parameter.detach().clone(), requires_grad=False))
            module.merge()
        parent, _, child = path.rpartition(".")
        setattr(network.get_submodule(parent), child, base)


def _parts(whole: PreTrainedModel) -> dict[str, Any]:
    """The network that reads text, and its language head and classifier, each None where it has none."""
    config = type(whole.config)

    def is_one_of(families: Any) -> bool:
        return config in families and isinstance(whole, families[config])

    if whole.config.is_encoder_decoder:
        return {"network": _without_head(whole)}
    if whole.base_model is not whole:
        if any(map(is_one_of, _WITH_HEAD)):
            network, head = split_head(whole)
            return {"network": network, "language_head": head}
        if is_one_of(MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING):
            network, classifier = split_classifier(whole)
            return {"network": network, "classifier": classifier}
    return {"network": text_part(whole.base_model)}  # type: ignore[arg-type]


def _without_head(whole: PreTrainedModel) -> PreTrainedModel:
    """The network of an encoder-decoder model: T5's class with a head is not built around it, but beside it."""
    bare: Any = MODEL_MAPPING[type(whole.config)]
    if whole.base_model is not whole or isinstance(whole, bare):
        return whole.base_model  # type: ignore[return-value]
    with torch.device("meta"):
        network: PreTrainedModel = bare(whole.config)
    for child in dict(network.named_children()):
        setattr(network, child, getattr(whole, child))
    network.train(False)
    return network
