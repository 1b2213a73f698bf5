"""The weights of a checkpoint's files, compared with what was loaded from them.

The account of the files. Each tensor in them is in the model with the numbers of the file, or belongs to a part that
the loaded class does not have, or is a known constant (`attnviz.model.constants`); for any other, for an adapter's and
for numbers that are no plain ones, the checkpoint is refused. The reference is loaded together with the model, so
comparing the two cannot reveal an error in loading.

Source: ``convert_and_load_state_dict_in_model`` of transformers 5.23.0, which maps the names in a file to the model's.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import file_digest
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from transformers import AutoModel, PreTrainedConfig, PreTrainedModel
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import (
    WeightConverter,
    WeightRenaming,
    rename_source_key,
    revert_weight_conversion,
)
from transformers.modeling_utils import load_state_dict

from attnviz.errors import ModelNotAvailableError
from attnviz.model import adapters
from attnviz.model.catalogue import CONFIG_FILE, weights_digests, weights_files
from attnviz.model.constants import Constants
from attnviz.model.parts import text_path

_MOST_NAMED = 5
"""Most parts that a sentence names; a file may have any number."""
_ADAPTER = "base_model.model."
"""Prefix that PEFT adds to the names of a model that it wraps."""
PLAIN = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
"""Types of numbers that a file may hold for a model that computes with floating point; what rounding them takes is stated."""

_Stamp = tuple[int, int, int]
"""Inode, bytes and time of the last change, in nanoseconds, of a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What became of the tensors of a checkpoint's files; every tensor is counted once."""

    n_used: int
    """Tensors that are in the model with the numbers of the file, rounded where ``rounded`` says so."""
    parts: Mapping[str, int]
    """Number of tensors in each part that the loaded class lacks, such as a head for another task."""
    left_out: tuple[str, ...]
    """Constants such as position ids, and tensors that the loaded class does not read (`attnviz.model.constants`)."""
    quantization: str | None = None
    """How most of the file's numbers are written, such as "Q4_1"; None where it holds plain numbers."""
    rounded: Mapping[str, int] = field(default_factory=dict)
    """Number of tensors that lost precision in memory, by the two types, such as "float64 to float32"."""

    @property
    def n_tensor(self) -> int:
        """Tensors in the files."""
        return self.n_used + sum(self.parts.values()) + len(self.left_out)

    def __str__(self) -> str:
        """How many tensors are used, and what the others are, in sentences: "199 of 201 used: ..."."""
        of_file = (
            "those of the file"
            if self.quantization is None
            else f"the file's, dequantised from {self.quantization}"
        )
        of_file += "".join(
            f", rounded from {types} in {number} tensors" for types, number in self.rounded.items()
        )
        account = f"{self.n_used} of {self.n_tensor} used: the numbers in memory are {of_file}."
        if self.parts:
            names = [f"{name} ({number})" for name, number in self.parts.items()]
            rest = len(names) - _MOST_NAMED
            named = ", ".join(names[:_MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")
            account += f" Parts that are not loaded: {named}."
        if self.left_out:
            account += f" Constants, and what the class does not read: {len(self.left_out)}, such as {self.left_out[0]}."
        return account


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedWeights:
    """The files that a model was loaded from, as they were then, what became of their tensors, and what else is to be known of them."""

    account: Account
    sha256: Mapping[str, str]
    """SHA-256 of each file, by name."""
    stamps: Mapping[Path, _Stamp]
    remarks: tuple[str, ...] = ()
    """What in the folder disagrees without changing the numbers, a sentence each (`attnviz.model.agreement`)."""
    _judged: dict[Path, tuple[_Stamp, bool]] = field(default_factory=dict)
    """For each file written since, its stamp and whether its bytes changed."""

    def changed(self) -> tuple[str, ...]:
        """Names of the files that are gone, or whose bytes differ from those loaded.

        A file's bytes are read only when its stamp has changed.
        """
        return tuple(sorted(path.name for path, stamp in self.stamps.items() if self._is_other(path, stamp)))

    def _is_other(self, path: Path, loaded: _Stamp) -> bool:
        try:
            stamp = _stamp(path)
            if stamp == loaded:
                return False
            if path.name not in self.sha256:  # a dequantised file, which is never written again
                return True
            if path not in self._judged or self._judged[path][0] != stamp:
                with path.open("rb") as file:
                    digest = file_digest(file, "sha256").hexdigest()
                self._judged[path] = stamp, digest != self.sha256[path.name]
        except OSError:
            return True
        return self._judged[path][1]

    def in_words(self, changed: Iterable[str]) -> str:
        """The account and the remarks, or which files have changed since and what to do."""
        names = " and ".join(changed)
        if not names:
            return " ".join([str(self.account), *self.remarks])
        return f"{names} changed on disk after this model was loaded. Load it again, or restart the app."


NO_FILES = LoadedWeights(account=Account(n_used=0, parts={}, left_out=()), sha256={}, stamps={})
"""Of a model that was in memory already."""


def stamps(files: Iterable[Path]) -> dict[Path, _Stamp]:
    """The stamps of the files that exist."""
    return {path: _stamp(path) for path in files if path.is_file()}


def loaded_weights(
    name: str,
    files: Iterable[Path],
    account: Account,
    before: Mapping[Path, _Stamp],
    remarks: tuple[str, ...] = (),
) -> LoadedWeights:
    """The account of files that were not written since ``before``, when their stamps were taken.

    Args:
        files: those that identify the checkpoint; ``before`` may have others, such as dequantised ones.

    Raises:
        ModelNotAvailableError: a file was written since, or is gone.
    """
    sha256 = weights_digests(name, files)
    if stamps(before) != before:
        raise ModelNotAvailableError(
            f"The weights of {name} were written while they were read. Load it again once they are complete."
        )
    return LoadedWeights(account=account, sha256=sha256, stamps=before, remarks=remarks)


def refuse_other_weights(
    name: str, whole: PreTrainedModel, tensors: Iterable[tuple[str, Tensor]], config: PreTrainedConfig
) -> None:
    """Does nothing for a checkpoint whose tensors are the network's own plain numbers.

    Args:
        whole: the model as it was loaded; tensors may be missing in it.
        tensors, config: as `account_for`.

    Raises:
        ModelNotAvailableError: a tensor is an adapter's, or one of the loaded parts is stored as other numbers than `PLAIN`.
    """
    names, constants = _Names(whole, config), Constants(whole)
    of_adapter, coded = list[str](), list[str]()
    for key, tensor in tensors:
        loaded = names.loaded(key, tensor)
        if loaded is None and adapters.is_tensor(key):
            of_adapter.append(key)
        elif tensor.dtype in PLAIN or (loaded is not None and not loaded.is_floating_point()):
            continue
        elif loaded is not None or (
            names.belongs(key, constants) and constants.is_known(names.of(key), tensor) is None
        ):
            coded.append(f"{key} ({_type(tensor)})")
    if of_adapter:
        raise ModelNotAvailableError(adapters.refusal(name, of_adapter))
    if coded:
        raise ModelNotAvailableError(
            f"The weights of {name} are not plain numbers: {len(coded)} tensors are packed or quantized, such as {coded[0]}; attnviz "
            "reads float32, float16, bfloat16 and float64. Select the checkpoint that they were made from, or dequantise them "
            "and save them with save_pretrained."
        )


def account_for(
    name: str,
    whole: PreTrainedModel,
    tensors: Iterable[tuple[str, Tensor]],
    config: PreTrainedConfig,
    quantization: str | None = None,
) -> Account:
    """What became of each tensor of a checkpoint's files, in a model that was loaded from them.

    Args:
        whole: the model with its head, as it was loaded.
        tensors: those of the files, by the names that the files give them.
        config: the checkpoint's own; ``whole`` may be only a part of it.
        quantization: how most of the file's numbers are written; None for plain numbers.

    Raises:
        ModelNotAvailableError: a tensor is not in the model with the numbers of the file, or has no place in it though it
            belongs to a part that is loaded.
    """
    names, constants = _Names(whole, config), Constants(whole)
    n_used, parts, rounded, left_out = 0, Counter[str](), Counter[str](), list[str]()
    other, homeless, altered = list[str](), list[str](), list[str]()
    for key, tensor in tensors:
        loaded = names.loaded(key, tensor)
        if loaded is not None:
            if not _are_equal(tensor, loaded):
                other.append(key)
            if names.is_beside_text(key):
                parts[names.part(key)] += 1
            else:
                n_used += 1
                if _loses(tensor, loaded):
                    rounded[f"{_type(tensor)} to {_type(loaded)}"] += 1
        elif names.belongs(key, constants):
            is_known = constants.is_known(names.of(key), tensor)
            (homeless if is_known is None else left_out if is_known else altered).append(key)
        else:
            parts[names.part(key)] += 1
    if homeless:
        raise ModelNotAvailableError(
            f"The network that {CONFIG_FILE} of {name} describes has no place for {len(homeless)} of the file's tensors, such as "
            f"{homeless[0]}; without them its numbers would not be the checkpoint's. Merge adapters and scales into the weights, "
            f"correct {CONFIG_FILE}, or select another model."
        )
    if altered:
        raise ModelNotAvailableError(
            f"The weights of {name} hold {len(altered)} constants, such as {altered[0]}, that are not those which {CONFIG_FILE} gives. "
            f"Correct {CONFIG_FILE}, such as its rope_parameters, delete them from the weights, or select another model."
        )
    if other:
        raise ModelNotAvailableError(
            f"{len(other)} of the tensors of {name}, such as {other[0]}, do not have the numbers of the file after loading. "
            "Save the checkpoint again with transformers' save_pretrained, or select another model."
        )
    return Account(
        n_used=n_used,
        parts=dict(sorted(parts.items())),
        left_out=tuple(left_out),
        quantization=quantization,
        rounded=dict(sorted(rounded.items())),
    )


class _Names:
    """Maps the names of tensors in a file to their places in a loaded model."""

    def __init__(self, whole: PreTrainedModel, config: PreTrainedConfig) -> None:
        self._whole, self._prefix = whole, whole.base_model_prefix
        self._state: dict[str, Tensor] = whole.state_dict()
        conversions = get_model_conversion_mapping(whole)
        self._renamings = [conversion for conversion in conversions if isinstance(conversion, WeightRenaming)]
        self._converters = [
            conversion for conversion in conversions if isinstance(conversion, WeightConverter)
        ]
        self._written = cache(lambda: revert_weight_conversion(whole, self._state))
        self._parts_of_class = cache(lambda: _parts(_empty(config)))
        self._parts = _parts(whole.base_model)
        self._buffers = dict(whole.named_buffers())
        self._text = text_path(cast(PreTrainedModel, whole.base_model)) or ""

    def loaded(self, key: str, tensor: Tensor) -> Tensor | None:
        """The model's counterpart of a tensor of the file, in the file's form; None if there is none."""
        name, converter = self._renamed(key)
        if name in self._state:
            return self._state[name] if converter is None else self._find(key, self._written())
        if tensor.is_floating_point():
            return None
        made = self._find(key, self._buffers)  # integer buffers, such as position ids, can still be compared
        return made if made is not None and made.shape == tensor.shape else None

    def _find(self, key: str, tensors: Mapping[str, Tensor]) -> Tensor | None:
        """The tensor of this name, which may have the network's prefix in the file but not in the model, or vice versa."""
        variants = (key, f"{self._prefix}.{key}", key.removeprefix(f"{self._prefix}."))
        return next((tensors[variant] for variant in variants if variant in tensors), None)

    def of(self, key: str) -> tuple[str, str]:
        """A tensor's name in the file and in the model."""
        return key, self._renamed(key)[0]

    def belongs(self, key: str, constants: Constants) -> bool:
        """Whether a tensor without a place belongs to the loaded network, or to a layer of the loaded head."""
        return any(self._is_within(name, constants) for name in self.of(key))

    def is_beside_text(self, key: str) -> bool:
        """Whether a tensor of the model's network lies outside the part for text, the only part that is kept."""
        path = self._renamed(key)[0]
        if self._whole.base_model is not self._whole:
            path, is_prefixed = self._path(path)
            if not is_prefixed:
                return False
        return bool(self._text) and not path.startswith(f"{self._text}.")

    def part(self, key: str) -> str:
        """The part of the checkpoint that a tensor belongs to, such as "cls" or "pooler"."""
        return self._path(key)[0].split(".")[0]

    def _renamed(self, key: str) -> tuple[str, str | None]:
        """The model's name for a tensor of the file, and its conversion's pattern if it is more than renamed."""
        name, converter = rename_source_key(key, self._renamings, self._converters, self._prefix, self._state)
        if name not in self._state and key in self._state:
            return key, None
        return name, converter

    def _path(self, name: str) -> tuple[str, bool]:
        """A name relative to the network or the head, and whether its prefix says that it is the network's."""
        name = name.removeprefix(_ADAPTER)
        path = name.removeprefix(f"{self._prefix}.")
        return path, path != name

    def _is_within(self, name: str, constants: Constants) -> bool:
        path, is_prefixed = self._path(name)
        part = path.split(".")[0]
        if part in self._parts:
            return True
        if (
            is_prefixed
        ):  # the class of the network alone may have parts that are not loaded, such as BERT's pooler
            return part not in self._parts_of_class() and not constants.is_unread(name)
        steps = path.split(".")
        return any(".".join(steps[:n]) in self._layers_of_head() for n in range(1, len(steps)))

    def _layers_of_head(self) -> set[str]:
        """Paths of modules that have parameters of their own."""
        tied = self._whole.named_parameters(
            remove_duplicate=False
        )  # to the embeddings, as a head's last layer may be
        return {name.rpartition(".")[0] for name, _ in tied}


def _parts(network: nn.Module) -> set[str]:
    """Names of a network's top-level parts."""
    return {name.split(".")[0] for name in network.state_dict()} | {
        name for name, _ in network.named_children()
    }


def _empty(config: PreTrainedConfig) -> PreTrainedModel:
    """The network of a configuration, without its head and without numbers."""
    with torch.device("meta"):
        return AutoModel.from_config(config, trust_remote_code=False)  # type: ignore[no-any-return, no-untyped-call]


def read_tensors(folder: Path) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a checkpoint's files, by name, mapped into memory where the format allows it."""
    for path in weights_files(folder):
        yield from load_state_dict(path).items()


def _are_equal(tensor: Tensor, loaded: Tensor) -> bool:
    """Whether a tensor of a file equals what was loaded; NaN equals NaN."""
    if tensor.shape != loaded.shape:
        return False
    if not loaded.is_floating_point():  # integers of any type
        return torch.equal(tensor.to(torch.complex128), loaded.to(torch.complex128))
    cast = tensor.to(loaded.dtype)
    return torch.equal(cast, loaded) or bool(
        torch.isclose(cast, loaded, rtol=0, atol=0, equal_nan=True).all()
    )


def _loses(tensor: Tensor, loaded: Tensor) -> bool:
    """Whether the type in memory cannot hold every number of the file's type, both being plain."""
    types = tensor.dtype, loaded.dtype
    return all(kind in PLAIN for kind in types) and torch.promote_types(*types) != loaded.dtype


def _type(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _stamp(path: Path) -> _Stamp:
    stat = path.stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns
