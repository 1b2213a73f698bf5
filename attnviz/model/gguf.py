"""A GGUF file, dequantised once on this machine into a checkpoint folder that every process maps.

transformers maps its configuration, tokenizer and tensor names to a network's; the package gguf dequantises its
numbers. A tensor that transformers has no place for is refused.

Source: the format, https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; transformers 5.23.0,
``modeling_gguf_pytorch_utils.load_gguf_checkpoint``, which leaves out tensors without a word.
"""

import json
import os
import re
import shutil
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from tempfile import mkdtemp
from time import time
from typing import TYPE_CHECKING, Any

import torch
import transformers
from filelock import FileLock
from huggingface_hub import cached_assets_path
from safetensors.torch import save_file
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel
from transformers.modeling_gguf_pytorch_utils import (
    TENSOR_PROCESSORS,
    TensorProcessor,
    get_gguf_hf_weights_map,
)

from attnviz.errors import AttnvizError, ModelNotAvailableError, cause, lacks_memory
from attnviz.model.catalogue import SAFETENSORS_FILES
from attnviz.records import Progress

if TYPE_CHECKING:
    from gguf import GGUFReader  # takes a third of a second to import, which most processes never need

_VERSIONS = (2, 3)
"""Those that transformers and gguf read."""
_OF_A_CUT_FILE = "cannot reshape array of size"
"""What numpy says where gguf takes a tensor's bytes from a file that has too few."""
_PART = re.compile(r"-(\d+)-of-(\d+)$")
"""End of the name of a part, as llama.cpp's ``llama_split_path`` writes it."""
_WEIGHTS = SAFETENSORS_FILES[0]
_MADE = "dequantised.json"
"""How the file's numbers were written, and how to tell that the weights are unchanged: their size and the time of their last
change, in whole seconds since copies keep no finer ones, or their SHA-256 if that time differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dequantised:
    """A checkpoint folder with the numbers of a GGUF file, in float32."""

    folder: Path
    quantization: str
    """How most of the file's numbers are written, such as "Q4_1"."""


def dequantised(name: str, file: Path, progress: Progress | None = None) -> Dequantised:
    """The checkpoint folder of a GGUF file; made if this machine has none yet, or if its weights were changed.

    It is kept in the assets of huggingface_hub's cache, by the file's SHA-256 and the version of transformers. If several
    processes ask at once, one makes it; all may map it into memory, since nothing writes to it again.

    Args:
        name: of the model, for messages, which leave out the file's path.
        progress: called with the share of the tensors that are dequantised.

    Raises:
        ModelNotAvailableError: the file cannot be read, is damaged, is of a family that transformers does not read from
            GGUF, or holds tensors that transformers has no place for; or there is no room for the folder.
        MemoryError, RuntimeError: as `attnviz.errors.lacks_memory`.
    """
    try:
        folder = _folder(name, file)
        folder_made = _made(folder)
        if folder_made is None:
            with FileLock(folder.with_suffix(".lock")):
                folder_made = _made(folder)
                if folder_made is None:
                    _make(name, file, folder, progress)
                    folder_made = _made(folder)
    except OSError as error:
        raise ModelNotAvailableError(
            f"{name} is dequantised into a folder once, which failed ({error.strerror or cause(error)}). Make room in HF_HOME, the "
            "folder of models, or let attnviz's user write there."
        ) from None
    assert folder_made is not None  # it was made just now, or by a process that had the lock
    return folder_made


def _folder(name: str, file: Path) -> Path:
    with file.open("rb") as opened:
        version = opened.read(8)[4:]  # after the format's first bytes
    if int.from_bytes(version, "big") in _VERSIONS:
        raise ModelNotAvailableError(
            f"The GGUF file of {name} is written for big-endian machines, which transformers does not read. Convert it with "
            "gguf-py's gguf_convert_endian, or select another model."
        )
    if len(version) == 4 and (number := int.from_bytes(version, "little")) not in _VERSIONS:
        raise ModelNotAvailableError(
            f"The GGUF file of {name} is of version {number}; versions {' and '.join(map(str, _VERSIONS))} are read. Convert the "
            "checkpoint that it was made from with llama.cpp again, or select that checkpoint, in safetensors."
        )
    if (part := _PART.search(file.stem)) and int(part[2]) > 1:
        raise ModelNotAvailableError(
            f"{name} is part {int(part[1])} of {int(part[2])} of a GGUF file; attnviz reads whole files. Join the parts with "
            "llama.cpp's `llama-gguf-split --merge`."
        )
    parent = cached_assets_path("attnviz", "gguf", f"transformers-{transformers.__version__}")
    return parent / _sha256(file)


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return file_digest(opened, "sha256").hexdigest()


def _made(folder: Path) -> Dequantised | None:
    """The folder, if it exists and its weights are unchanged."""
    weights = folder / _WEIGHTS
    try:
        made = json.loads((folder / _MADE).read_bytes())
        if made.get("stamp") == _stamp(weights) or made["sha256"] == _sha256(weights):
            return Dequantised(folder=folder, quantization=made["quantization"])
    except (FileNotFoundError, ValueError, KeyError):
        pass
    return None


def _stamp(weights: Path) -> list[int]:
    stat = weights.stat()
    return [stat.st_size, stat.st_mtime_ns]


def _make(name: str, file: Path, folder: Path, progress: Progress | None) -> None:
    """Writes the folder, whole or not at all; the caller has the lock."""
    for left in folder.parent.glob(f"{folder.name}.*/"):  # by a process that was ended while it wrote
        shutil.rmtree(left, ignore_errors=True)
    unfinished = Path(mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    try:
        with _damage_named(name):
            config = AutoConfig.from_pretrained(file.parent, gguf_file=file.name, local_files_only=True)
            tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name, local_files_only=True)
            with torch.device("meta"):
                network = AutoModelForCausalLM.from_config(config, trust_remote_code=False)  # type: ignore[no-untyped-call]
            weights, quantization = _read(name, file, network, progress or (lambda _: None))
        config.architectures, config.dtype = [type(network).__name__], torch.float32
        config.save_pretrained(unfinished)
        tokenizer.save_pretrained(unfinished)
        save_file(weights, unfinished / _WEIGHTS, metadata={"format": "pt"})
        now = int(time())
        os.utime(unfinished / _WEIGHTS, (now, now))
        made = {
            "quantization": quantization,
            "stamp": _stamp(unfinished / _WEIGHTS),
            "sha256": _sha256(unfinished / _WEIGHTS),
        }
        (unfinished / _MADE).write_text(json.dumps(made))
        unfinished.chmod(0o755)  # other users may read it, as they may other models
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(unfinished, folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _read(
    name: str, file: Path, network: PreTrainedModel, progress: Progress
) -> tuple[dict[str, Tensor], str]:
    """The numbers of all tensors, by their names in the network, and how most of them are written."""
    from gguf import GGUFReader, dequantize

    reader = GGUFReader(file)
    of_family = TENSOR_PROCESSORS.get(_architecture(reader), TensorProcessor)
    processor = of_family(config=network.config.to_dict())  # type: ignore[no-untyped-call]
    places: dict[str, str] = get_gguf_hf_weights_map(network, processor)
    if homeless := [tensor.name for tensor in reader.tensors if tensor.name not in places]:
        raise ModelNotAvailableError(
            f"The GGUF file of {name} holds {len(homeless)} of its tensors, such as {homeless[0]}, in a way that transformers "
            "leaves out; without them its numbers would not be the file's. Select the checkpoint that it was made from, in "
            "safetensors."
        )
    parsed: dict[str, Any] = {"tensors": {}}  # some processors put their results there, such as experts
    n_number: Counter[str] = Counter()
    for number, tensor in enumerate(reader.tensors, 1):
        n_number[tensor.tensor_type.name] += int(tensor.n_elements)
        read = processor.process(  # type: ignore[no-untyped-call]
            weights=dequantize(tensor.data, tensor.tensor_type),
            name=tensor.name,
            tensor_key_mapping=places,
            parsed_parameters=parsed,
        )
        if read.name in places:
            parsed["tensors"][places[read.name]] = torch.tensor(read.weights, dtype=torch.float32)
        progress(number / len(reader.tensors))
    return parsed["tensors"], n_number.most_common(1)[0][0]


def _architecture(reader: "GGUFReader") -> str:
    field = reader.fields["general.architecture"]
    return bytes(field.parts[field.data[0]]).decode()


@contextmanager
def _damage_named(name: str) -> Iterator[None]:
    """A context in which whatever transformers and gguf raise for a file becomes one sentence."""
    try:
        yield
    except Exception as error:
        if isinstance(error, AttnvizError) or lacks_memory(error):
            raise
        is_cut = isinstance(error, struct.error) or _OF_A_CUT_FILE in str(error)
        reason = "It is cut off." if is_cut else cause(error)
        raise ModelNotAvailableError(
            f"The GGUF file of {name} cannot be read: {reason} Copy it there again, or select the checkpoint that "
            "it was made from, in safetensors."
        ) from None
