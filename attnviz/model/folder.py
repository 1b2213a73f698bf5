"""Files in a checkpoint's folder that attnviz does not read, recognised by their names and by what is in them.

What a file is, whatever its name says, is in `attnviz.model.contents`; the refusal of a family in
`attnviz.model.families`.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from attnviz.errors import ModelNotAvailableError
from attnviz.model import adapters
from attnviz.model.catalogue import (
    CONFIG_FILE,
    GGUF_FILES,
    PICKLE_FILES,
    SAFETENSORS_FILES,
    SMALL_FILES,
    weights_files,
)
from attnviz.model.contents import fault

_INDEX = ".index.json"
_WRITTEN = "a folder that transformers' save_pretrained wrote, with its tokenizer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format of files that attnviz cannot use as weights."""

    name: str
    """As in "holds GGUF weights"."""
    files: tuple[str, ...]
    """Patterns of its files, from the checkpoint's folder."""
    advice: str
    """What to do instead, a sentence."""
    why: str = "which attnviz does not read"


ADAPTER = Format(
    name="a PEFT adapter",
    files=adapters.FILES,
    advice="Merge it into its base model with PEFT's merge_and_unload and save the result with save_pretrained; where "
    "that is done, delete {file}.",
)
"""Refused even beside weights, which are another model's without these files; in a folder of its own beside weights it is told
in the verdict."""

FORMATS = (
    Format(
        name="GGUF weights",
        files=(GGUF_FILES,),
        why="of which attnviz reads one file by its path",
        advice="Give the path of one on this machine, or select the checkpoint that they were made from, in safetensors.",
    ),
    Format(
        name="ONNX weights",
        files=("*.onnx",),
        advice="Select the checkpoint that they were exported from, in safetensors.",
    ),
    Format(
        name="TensorFlow weights",
        files=("*.h5", "*.ckpt*.index", "*saved_model.pb"),
        advice="Load them with transformers 4 (from_tf=True) and save them with save_pretrained.",
    ),
    Format(
        name="Flax weights",
        files=("*.msgpack",),
        advice="Load them with transformers 4 (from_flax=True) and save them with save_pretrained.",
    ),
    Format(
        name="weights as their maker trained them",
        files=("consolidated*",),
        advice="Select the checkpoint in transformers' own format, which has a config.json and model.safetensors.",
    ),
    Format(
        name="weights under another name",
        files=("*.safetensors", "*.bin", "*.pt", "*.pth", "*.ckpt"),
        advice=f"Call them {SAFETENSORS_FILES[0]}, or {PICKLE_FILES[0]} where torch.save wrote them.",
    ),
)
"""What a folder may hold instead of weights that attnviz reads; an error names the first that is found."""

_OF_TRAINING = ("training_args.bin", "optimizer.*", "scheduler.*", "scaler.*", "rng_state*")
"""Files that transformers' Trainer writes beside the weights."""
_QUANTIZED = {
    "awq": "AWQ",
    "bitsandbytes": "bitsandbytes",
    "compressed-tensors": "compressed-tensors",
    "fbgemm_fp8": "FP8",
    "fp8": "FP8",
    "gptq": "GPTQ",
    "mxfp4": "MXFP4",
}
"""Name of a quantization, by ``quant_method`` of ``quantization_config``; others keep the name there."""


def foreign(names: Collection[str]) -> str | None:
    """What files of these names hold that attnviz does not read, and what to do; None where weights are among them.

    The result continues a sentence that begins with the owner of the files.
    """
    has_weights = bool(_weights(names))
    for kind in (ADAPTER,) if has_weights else (ADAPTER, *FORMATS):
        files_of_kind = [
            name
            for name in names
            if _matches(name, kind.files)
            and not _matches(name, _OF_TRAINING)
            and not (has_weights and "/" in name)
        ]
        if files_of_kind:
            file = files_of_kind[0]
            return f"holds {kind.name} ({file}), {kind.why}. {kind.advice.format(file=file)}"
    return None


def refuse_files(name: str, folder: Path, repair: str) -> None:
    """Does nothing for a folder whose files attnviz may be able to read.

    Args:
        name: of the model, for the message, which must not show the folder's path.
        repair: what to do where files are damaged, as `attnviz.model.catalogue.Location.repair`.

    Raises:
        ModelNotAvailableError: there is no folder or no checkpoint, its weights are missing or in a format that attnviz
            does not read, or files of it are not what their names say: cut off, Git LFS pointers, HTML pages.
    """
    try:
        refusal = _refusal(name, folder, repair)
    except OSError as error:
        refusal = f"The folder of {name} cannot be read ({error.strerror}). Let attnviz's user read it."
    if refusal is not None:
        raise ModelNotAvailableError(refusal)


def refuse_settings(name: str, config: Mapping[str, Any]) -> None:
    """Does nothing for a configuration whose weights are plain numbers, one for each parameter of its network.

    Raises:
        ModelNotAvailableError: its weights are quantized, or some of its heads were removed.
    """
    if quantization := config.get("quantization_config"):
        raise ModelNotAvailableError(
            f"The weights of {name} are quantized ({_quantization(quantization)}); attnviz computes with plain numbers. "
            "Select the checkpoint that they were made from; where the weights are plain numbers again, delete "
            f"quantization_config from {CONFIG_FILE}."
        )
    if pruned := config.get("pruned_heads"):
        layers = sorted(int(layer) for layer in pruned)
        named = f"layer {layers[0]}" if len(layers) == 1 else f"layers {', '.join(map(str, layers))}"
        raise ModelNotAvailableError(
            f"Heads were pruned from {name} (pruned_heads in {CONFIG_FILE}: {named}), which transformers 5 does not "
            "load. Select the checkpoint before pruning."
        )


def _refusal(name: str, folder: Path, repair: str) -> str | None:
    """Why a folder's files cannot be read; None where they may be."""
    if folder.match(GGUF_FILES) and folder.is_file():
        return fault(name, folder, repair)
    if folder.is_file():
        return f"{name} {foreign([folder.name]) or f'is a file, not a checkpoint. Give {_WRITTEN}.'}"
    names = files_within(folder)
    small = (*SMALL_FILES, SAFETENSORS_FILES[0] + _INDEX, PICKLE_FILES[0] + _INDEX)
    read = [folder / file for file in names if "/" not in file and _matches(file, small)]
    if faulty := _first_fault(name, read, repair):
        return faulty
    if inner := _inner(names):
        return (
            f"The folder of {name} has no {CONFIG_FILE}; a checkpoint is in the folder {inner} in it. Give that folder, with the "
            "tokenizer in it."
        )
    if held := foreign(names):
        return f"The folder of {name} {held}"
    return _missing(name, folder, names) or _first_fault(name, weights_files(folder), repair)


def _first_fault(name: str, files: Iterable[Path], repair: str) -> str | None:
    return next(filter(None, (fault(name, file, repair) for file in files)), None)


def _inner(names: Collection[str]) -> str | None:
    """The folder of a folder that holds a checkpoint, as of sentence-transformers or a pipeline of diffusers; None if it is one."""
    if CONFIG_FILE in names:
        return None
    folders = [name.removesuffix(f"/{CONFIG_FILE}") for name in names if name.endswith(f"/{CONFIG_FILE}")]
    return next(
        (path for path in folders if _weights([name.removeprefix(f"{path}/") for name in names])), None
    )


def files_within(folder: Path) -> list[str]:
    """Paths of the files of a folder and of the folders in it, two deep, relative to the folder."""
    if not folder.is_dir():
        return []
    files = [*folder.iterdir(), *folder.glob("*/*"), *folder.glob("*/*/*")]
    return sorted(file.relative_to(folder).as_posix() for file in files if file.is_file())


def _matches(name: str, patterns: Collection[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _weights(names: Collection[str]) -> list[str]:
    """The names of weights that attnviz reads, and of their indices."""
    return [name for name in names if _matches(name, (*SAFETENSORS_FILES, *PICKLE_FILES)) and "/" not in name]


def _missing(name: str, folder: Path, names: Collection[str]) -> str | None:
    if CONFIG_FILE not in names:
        return f"The folder of {name} has no {CONFIG_FILE}, so it is not a checkpoint. Give {_WRITTEN}."
    if not (weights := _weights(names)):
        return (
            f"The folder of {name} has no weights, neither {SAFETENSORS_FILES[0]} nor {PICKLE_FILES[0]}. "
            f"Give {_WRITTEN}."
        )
    whole = next(
        (name for name in (SAFETENSORS_FILES[0], PICKLE_FILES[0]) if {name, name + _INDEX} & set(weights)),
        None,
    )  # in transformers' order
    if whole is None:
        return (
            f"The folder of {name} has {weights[0]}, a part of its weights, and no {_INDEX} file that lists the parts. "
            "Copy that file there, too."
        )
    if whole in weights:
        return None
    if not (shards := _shards(folder / (whole + _INDEX))):
        return (
            f"{whole + _INDEX} of {name} lists no file of weights (weight_map). Copy there the one that was saved with "
            "the weights."
        )
    if absent := sorted(shards - set(names)):
        return (
            f"{whole + _INDEX} of {name} lists {absent[0]}, which is not in its folder ({len(absent)} missing in all). "
            "Copy what is missing there."
        )
    return None


def _shards(index: Path) -> set[str]:
    """The files that an index of weights lists; none if it lists them in no form that transformers reads."""
    try:
        return set(map(str, json.loads(index.read_bytes())["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError):
        return set()


def _quantization(settings: Any) -> str:
    """Method and bits of a quantization: "GPTQ, 4 bits"."""
    given = settings if isinstance(settings, Mapping) else vars(settings)
    method = str(given.get("quant_method") or "bitsandbytes")
    bits = given.get("bits") or (4 if given.get("load_in_4bit") else 8 if given.get("load_in_8bit") else None)
    written = _QUANTIZED.get(method, method)
    return f"{written}, {bits} bits" if bits else written
