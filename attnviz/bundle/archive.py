"""The zip of a bundle and the arrays in it, from an untrusted source.

Sizes, names, types and shapes are checked before any array is built; nothing is executed or written to disk.
"""

import io
import math
import re
import struct
import zipfile
from collections.abc import Sequence

import numpy as np

from attnviz.bundle.bounds import MOST_CHANGES, check_numbers
from attnviz.bundle.refusal import require
from attnviz.bundle.writing import ARRAY_NAMES, NUMBERS, PROVENANCE
from attnviz.records import KINDS

_ARRAY_FILES = {"weights.npy", "last_hidden_state.npy"} | {
    f"{kind}.{name}.npy" for kind in KINDS for name in ARRAY_NAMES
}
_NUMBERED = re.compile(
    rf"(intervention|({'|'.join(KINDS)})\.({'|'.join(ARRAY_NAMES)}))\.(0|[1-9]\d{{0,3}})\.npy"
)
"""The array of one intervention, or of one layer where layers have different numbers of heads."""
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(..){'descr': '(<f4|\|b1)', 'fortran_order': False, "
    rb"'shape': \((\d{1,8}(?:, \d{1,8}){1,3})\), } *\n",
    re.DOTALL,
)
"""What `numpy.save` writes before an array of float32 or bool with two to four axes: version 1.0 of its format, the
header's length, and the header.

Source: NumPy Enhancement Proposal 1.
"""
_MOST_ENTRIES = len(_ARRAY_FILES) + MOST_CHANGES


def open_zip(
    data: bytes, names: Sequence[str] | None = None, optional: Sequence[str] = ()
) -> zipfile.ZipFile:
    """The opened zip, if it has the form that Python writes: a short directory at the very end, with each name once.

    Source: PKWARE, APPNOTE.TXT 6.3.10, section 4.3.16: the end record is 22 bytes without a comment.
    """
    end = data[-22:]
    require(len(end) == 22 and end[:4] == b"PK\x05\x06", "it is not a complete zip file.")
    n_entries, n_bytes = struct.unpack("<HI", end[10:16])
    is_short = n_entries <= _MOST_ENTRIES and n_bytes <= 200 * _MOST_ENTRIES
    require(
        is_short and data[-42:-38] != b"PK\x06\x07", "its files are not those of a bundle."
    )  # the signature of zip64
    archive = zipfile.ZipFile(io.BytesIO(data))
    entries = archive.namelist()
    require(len(set(entries)) == len(entries), "it contains a file twice.")
    if names is not None:
        is_known = set(names) <= set(entries) <= {*names, *optional}
        require(is_known, "its files are not those of a bundle.")
    return archive


def read_entry(archive: zipfile.ZipFile, name: str) -> bytes:
    """The content of an entry; no more is decompressed than the length that the zip's directory gives."""
    entry = archive.getinfo(name)
    require(not entry.flag_bits & 0x1, "it is encrypted.")
    allowed = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) if name == PROVENANCE else (zipfile.ZIP_STORED,)
    require(entry.compress_type in allowed, f"its {name} uses an unsupported compression method.")
    with archive.open(entry) as file:
        content = file.read(entry.file_size + 1)
        require(len(content) == entry.file_size, f"its {name} is truncated.")
    return content


def read_arrays(numbers: bytes) -> dict[str, np.ndarray]:
    """The arrays in a bundle's file of numbers, by name; `attnviz.bundle.reading` checks their axes.

    Raises:
        BundleError: there is a file of another name, or one that is damaged or no array of float32 or bool.
    """
    with open_zip(numbers) as archive:
        others = set(archive.namelist()) - _ARRAY_FILES
        require(
            all(_NUMBERED.fullmatch(name) for name in others),
            f"the arrays of its {NUMBERS} are not those of a bundle.",
        )
        return {name.removesuffix(".npy"): _read_array(archive, name) for name in archive.namelist()}


def _read_array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """An array of float32 or bool; its size must be the size that its header declares."""
    content = read_entry(archive, name)
    header = _HEADER.match(content)
    require(header is not None, f"its {name} is not an array of float32 or bool.")
    assert header is not None
    start = 10 + int.from_bytes(header[1], "little")
    dtype = np.dtype(header[2].decode())
    shape = [int(length) for length in header[3].split(b",")]
    n_bytes = math.prod(shape) * dtype.itemsize
    is_whole = start == header.end() and n_bytes == len(content) - start > 0
    require(is_whole, f"the size of its {name} differs from the size in its header.")
    array = np.frombuffer(content, dtype=np.uint8 if dtype == np.bool_ else dtype, offset=start).reshape(
        shape
    )
    if dtype == np.bool_:
        require(bool((array <= 1).all()), f"its {name} has values other than true and false.")
        array = array.view(np.bool_)
    check_numbers(name, array)
    return array
