"""Weights as a training script wraps them: a state dict inside a dict or with other things, or a prefix on every name.

transformers finds no tensors in such files.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import safe_open
from torch import Tensor
from transformers.modeling_utils import load_state_dict

from attnviz.model.catalogue import weights_files

_KEYS = ("state_dict", "model_state_dict", "model")
"""Keys of a state dict saved beside an optimizer's, in order: PyTorch Lightning 2, PyTorch's tutorials, fairseq."""
_PREFIXES = ("module.", "_orig_mod.")
"""Prefixes of ``DataParallel`` and ``DistributedDataParallel``, and of ``torch.compile``, in torch 2.13.0."""


def unwrapped(folder: Path) -> dict[str, Tensor] | None:
    """The tensors of a checkpoint by their names in the network; None where its files already have these names.

    Raises:
        Exception: whatever torch and safetensors raise for a damaged file, or for a pickle with code.
    """
    files = weights_files(folder)
    if all(file.suffix == ".safetensors" for file in files) and not _prefix(_names(files)):
        return None
    tensors: dict[str, Any] = {}
    is_wrapped = False
    for file in files:
        given: Any = load_state_dict(file)
        if not isinstance(given, Mapping):
            return None
        held: Mapping[str, Any] = next((given[key] for key in _KEYS if _is_state_dict(given.get(key))), given)
        kept = {name: value for name, value in held.items() if isinstance(value, Tensor)}
        is_wrapped |= held is not given or 0 < len(kept) < len(held)
        tensors |= kept
    while prefix := _prefix(tensors):
        is_wrapped = True
        tensors = {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
    return tensors if is_wrapped else None


def _is_state_dict(given: Any) -> bool:
    return isinstance(given, Mapping) and any(isinstance(value, Tensor) for value in given.values())


def _names(files: tuple[Path, ...]) -> list[str]:
    names: list[str] = []
    for file in files:
        with safe_open(file, framework="pt") as opened:
            names += opened.keys()
    return names


def _prefix(names: Any) -> str:
    """The wrapper's prefix that all names have; empty for none."""
    return next(
        (prefix for prefix in _PREFIXES if names and all(name.startswith(prefix) for name in names)), ""
    )
