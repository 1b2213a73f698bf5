"""What a file of a checkpoint is, by its first bytes and its length, whatever its name says.

Source: https://github.com/huggingface/safetensors, "Format"; https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md, "The
Pointer"; https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; torch 2.13.0's ``torch.save``, whose files are zip archives.
"""

import json
import re
import zipfile
from pathlib import Path

from attnviz.model.catalogue import PICKLE_FILES, SAFETENSORS_FILES

_HEAD = 512
"""Bytes at a file's beginning that are looked at."""
_SHOWN = 40
"""Characters of a text in place of a file that are shown."""
_POINTER = b"version https://git-lfs.github.com/spec/"
_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<!--.*?-->\s*)?<(?:!doctype\s+html|html|head|body|\?xml)\b", re.DOTALL | re.I
)
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
_MAGIC = {
    b"GGUF": "a GGUF file",
    b"\x89HDF\r\n": "an HDF5 file, such as TensorFlow's",
    b"\x1f\x8b": "a gzip archive",
    b"\xfd7zXZ": "an xz archive",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"7z\xbc\xaf": "a 7z archive",
}
"""First bytes of formats that are never what a name of `_ENDINGS` says, but for GGUF."""
_SAFETENSORS, _TORCH = "a safetensors file", "a file that torch.save wrote"
_ENDINGS = {
    ".safetensors": _SAFETENSORS,
    ".bin": _TORCH,
    ".gguf": _MAGIC[b"GGUF"],
    ".json": "a JSON document",
}
"""What a file with this ending should be; all others are texts or binary files of tokenizers."""
_NAMES = {
    _SAFETENSORS: f"Call it {SAFETENSORS_FILES[0]}",
    _TORCH: f"Call it {PICKLE_FILES[0]}",
    _MAGIC[b"GGUF"]: "Give it the ending .gguf",
}
"""What to do with weights under the name of another format."""


def fault(name: str, file: Path, repair: str) -> str | None:
    """What a file of a checkpoint is, if that is not what its name says, and what to do; None if it may be as it should.

    Args:
        name: of the model, for the message.
        repair: what to do where it is damaged, as `attnviz.model.catalogue.Location.repair`.

    Raises:
        OSError: the file cannot be read.
    """
    with file.open("rb") as opened:
        head = opened.read(_HEAD)
    size = file.stat().st_size
    of_model = f"{file.name} of {name}"
    if head.startswith(_POINTER):
        return f"{of_model} is a Git LFS pointer of {size} bytes, not the file itself. Run `git lfs pull` in its folder."
    expected, content = _ENDINGS.get(file.suffix), _content(file, head)
    again = f"{repair}." if file.suffix == ".gguf" else f"{repair}, or copy the right file there."
    if content == "empty":
        return None if file.suffix == ".jinja" else f"{of_model} is empty (0 bytes). {again}"
    if content == "an HTML page":
        return f"{of_model} is an HTML page, which a server sent in its place, not the file itself. {again}"
    if expected is None:
        return None
    if content != expected:
        begins = f", which begins with “{_begin(head)}”" if content in ("a text", "a JSON document") else ""
        what = content or "of no format that attnviz knows"
        advice = f"{_NAMES[content]}, or copy the right file there." if content in _NAMES else again
        return f"{of_model} is {what}{begins}, not {expected}. {advice}"
    damage = {_SAFETENSORS: _cut_safetensors, _TORCH: _cut_archive, _ENDINGS[".json"]: _bad_json}.get(
        expected
    )
    if damage is not None and (reason := damage(file)):
        return f"{of_model} {reason}. {again}"
    return None


def _content(file: Path, head: bytes) -> str:
    """The kind of a file, with its article; empty where it is not known."""
    if not head:
        return "empty"
    if _HTML.match(head):
        return "an HTML page"
    for magic, content in _MAGIC.items():
        if head.startswith(magic):
            return content
    if head.startswith(b"PK\x03\x04"):
        return "a zip archive" if _is_other_zip(file) else _TORCH
    if _PICKLE.match(head):
        return _TORCH
    if head[8:9] == b"{" and b"\0" in head[:8]:
        return _SAFETENSORS
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        return _ENDINGS[".json"]
    written = head.decode("utf-8", errors="replace").rstrip("\N{REPLACEMENT CHARACTER}")
    return (
        "a text"
        if all(character.isprintable() or character.isspace() for character in written)
        and ("\N{REPLACEMENT CHARACTER}" not in written)
        else ""
    )


def _begin(head: bytes) -> str:
    line = " ".join(head.decode("utf-8", errors="replace").split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


def _is_other_zip(file: Path) -> bool:
    """Whether a zip archive is whole and holds no pickle of torch.save."""
    if not zipfile.is_zipfile(file):
        return False
    with zipfile.ZipFile(file) as archive:
        return not any(entry.endswith("data.pkl") for entry in archive.namelist())


def _cut_archive(file: Path) -> str | None:
    """Why a file of torch.save is cut off, as the end of a sentence: a zip archive's table of contents is its end."""
    with file.open("rb") as opened:
        is_zip = opened.read(2) == b"PK"
    return "is cut off: its end is missing" if is_zip and not zipfile.is_zipfile(file) else None


def _cut_safetensors(file: Path) -> str | None:
    """Why a file of safetensors is cut off, as the end of a sentence: its header says how long it is."""
    size = file.stat().st_size
    with file.open("rb") as opened:
        n_header = int.from_bytes(opened.read(8), "little")
        if 8 + n_header > size:
            return f"is cut off: its header alone has {n_header:,} bytes, and the file {size:,}"
        try:
            header = json.loads(opened.read(n_header))
            ends = [entry["data_offsets"][1] for key, entry in header.items() if key != "__metadata__"]
            whole = 8 + n_header + max(map(int, ends), default=0)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError):
            return "is damaged: its header is not that of a safetensors file"
    return f"is cut off: {size:,} of its {whole:,} bytes are there" if size < whole else None


def _bad_json(file: Path) -> str | None:
    """Why a file is not the JSON that transformers reads, as the end of a sentence."""
    try:
        parsed = json.loads(file.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        return f"is not text in UTF-8 (byte {error.start + 1:,})"
    except (ValueError, RecursionError) as error:
        place = (
            f" (line {error.lineno}, column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
        )
        return f"is not valid JSON{place}"
    return None if isinstance(parsed, dict) else "is not a JSON object, as files of a checkpoint are"
