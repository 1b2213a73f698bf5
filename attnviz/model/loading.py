"""Loading a Model from a name in the catalogue, a Hub id on disk, a folder or a GGUF file.

Nothing is downloaded here; downloads are in `attnviz.model.download`.
"""

import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from attnviz.arguments import typed
from attnviz.errors import ModelNotAvailableError, failures_of
from attnviz.model.agreement import Checkpoint, compare
from attnviz.model.catalogue import (
    SMOLLM2,
    SMOLLM2_INSTALL,
    Location,
    default_model,
    locate,
    resolve,
    weights_files,
)
from attnviz.model.checkpoint import copy_weights, load_network, load_tokenizer, quiet, refuse_not_finite
from attnviz.model.configuration import generation_config
from attnviz.model.folder import refuse_files
from attnviz.model.gguf import dequantised
from attnviz.model.languages import Languages
from attnviz.model.model import Model
from attnviz.model.reference import listen_to_outputs, make_reference
from attnviz.model.states import let_states_change
from attnviz.model.structure import find_structure
from attnviz.model.weights import loaded_weights, stamps
from attnviz.records import Progress

DType = Literal["float32", "bfloat16", "float16"]


@typed
def load_model(
    name: str | Path | None = None,
    *,
    device: str | None = None,
    dtype: DType = "float32",
    is_mapped: bool = True,
    progress: Progress | None = None,
) -> Model:
    """A model whose weights are on this disk, running on attnviz's attention.

    Args:
        name: a name on offer, any Hub id that has been downloaded, a checkpoint folder or a GGUF file. None for
            bert-base-uncased where it is on disk, and the bundled all-MiniLM-L6-v2 otherwise.
        device: a torch device such as "cpu" or "cuda:1", or "auto" for CUDA where it is available, and the CPU
            otherwise. None for the value of ``ATTNVIZ_DEVICE``, or "auto" if it is not set. A trace is always on the
            CPU.
        dtype: the arithmetic of the forward pass. A trace is always float32.
        is_mapped: whether weights may stay in their file, mapped into memory, which processes share. If the
            file is then truncated, these crash; a server copies all weights but a package's and those attnviz dequantised.
        progress: called with the share that is done, 0 to 1, while a GGUF file is dequantised, once on each machine.

    Raises:
        ArgumentError: an argument of another type, or an empty name.
        ModelNotAvailableError: no such model or device, not on disk, damaged, or not loadable without running
            its own code.
        UnsupportedArchitectureError: its family does not let its attention be replaced.
        ModelFailedError: the code of the model or its tokenizer raises an error of its own.
    """
    place = find_device(device)
    offer = resolve(default_model() if name is None else str(name))
    location = locate(offer)
    if location is None:
        package = f"Install it with `{SMOLLM2_INSTALL}`, or download" if offer.name == SMOLLM2 else "Download"
        raise ModelNotAvailableError(
            f"{offer.name} is not on this disk. {package} it with `attnviz download {offer.repository}`."
        )
    return _load(offer.name, location, place, dtype, is_mapped, progress)


def find_device(name: str | None = None) -> torch.device:
    """The device of this name; see `load_model`.

    Raises:
        ModelNotAvailableError: this machine has no such device.
    """
    asked = name or os.environ.get("ATTNVIZ_DEVICE") or "auto"
    if asked == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(1, device=asked)  # only here does torch raise an error if there is no such device
        return torch.device(asked)
    except (RuntimeError, AssertionError):
        there = ["cpu", *(f"cuda:{number}" for number in range(torch.cuda.device_count()))]
        raise ModelNotAvailableError(
            f"The device {asked!r} was asked for; this machine has {', '.join(there)}. Select one of those, or leave "
            "ATTNVIZ_DEVICE and device= out."
        ) from None


_loading = threading.Lock()
"""transformers 5.23.0 changes its own classes while it reads a checkpoint (`initialization.no_tie_weights`): if two
are read at once, one of them lacks its tied weights, and so may all later checkpoints."""


@torch.inference_mode(False)  # parameters that are made under it can never be differentiated through
def _load(
    name: str,
    location: Location,
    device: torch.device,
    dtype: DType,
    is_mapped: bool,
    progress: Progress | None,
) -> Model:
    folder, gguf, repair = location.folder, location.gguf, location.repair
    # A package's files are never truncated, nor are those that attnviz dequantised.
    is_mapped |= location.is_packaged or gguf is not None
    with failures_of(f"{name} cannot be shown", "Select another model."):
        refuse_files(name, gguf or folder, repair)
        with _loading, quiet():
            quantization = None
            if gguf is not None:
                made = dequantised(name, gguf, progress)
                folder, quantization = made.folder, made.quantization
            files = weights_files(folder)
            own = files if gguf is None else (gguf,)
            before = stamps({*files, *own})
            network, head, classifier, account = load_network(
                name, folder, dtype=getattr(torch, dtype), repair=repair, quantization=quantization
            )
            network.generation_config = generation_config(folder)  # a network without its head has none
            tokenizer = load_tokenizer(name, folder, repair=repair)
            remarks = compare(Checkpoint(name=name, folder=folder, network=network, tokenizer=tokenizer))
            weights = loaded_weights(name, own, account, before, remarks)
            for module in filter(None, (network, head, classifier)):
                refuse_not_finite(name, module, repair=repair)
                if not is_mapped:
                    copy_weights(module)
                module.to(device)  # type: ignore[arg-type]
        return ready(
            network,
            tokenizer,
            name=name,
            revision=location.revision,
            folder=folder,
            weights=weights,
            language_head=head,
            classifier=classifier,
        )


def ready(network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, **others: Any) -> Model:
    """The Model of a network on attnviz's attention, with its reference and its structure.

    Args:
        others: the other fields of the Model.

    Raises:
        CaptureError, ModelFailedError, OutOfMemoryError, UnsupportedArchitectureError: as `attnviz.Model.trace`.
    """
    model = Model(
        network=network,
        tokenizer=tokenizer,
        languages=Languages.of(tokenizer, network.generation_config),
        reference=make_reference(network),
        **others,
    )
    structure = find_structure(
        network, lambda: model.probe(3)
    )  # refuses unsupported architectures here, not later
    listen_to_outputs(model.reference, structure.joining)
    let_states_change(network, structure)
    return replace(model, structure=structure)
