"""The zip of a bundle, and the arrays in it, which may come from anywhere.

One concept: bytes to arrays. Sizes, names, types and shapes are checked before anything is made of them; nothing is
executed or written to disk.
"""

import io
import math
import re
import struct
import zipfile
from collections.abc import Sequence

import numpy as np

from attnviz.bundle.refusal import require
from attnviz.bundle.writing import ARRAY_NAMES, NUMBERS, PROVENANCE, check_numbers
from attnviz.records import KINDS

_ARRAY_FILES = {"weights.npy", "last_hidden_state.npy"} | {
    f"{kind}.{name}.npy" for kind in KINDS for name in ARRAY_NAMES
}
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(..){'descr': '(<f4|\|b1)', 'fortran_order': False, "
    rb"'shape': \((\d{1,8}(?:, \d{1,8}){1,3})\), } *\n",
    re.DOTALL,
)
"""What `numpy.save` writes before an array of float32 or bool with two to four axes: its version 1.0, the
header's length, and the header.

Source: NumPy Enhancement Proposal 1.
"""
_MOST_ENTRIES = len(_ARRAY_FILES)


def open_zip(data: bytes, names: Sequence[str] | None = None) -> zipfile.ZipFile:
    """A zip as Python writes it: its directory at the very end, short, with each name once.

    Source: PKWARE, APPNOTE.TXT 6.3.10, section 4.3.16: the end record is 22 bytes without a comment.
    """
    end = data[-22:]
    require(len(end) == 22 and end[:4] == b"PK\x05\x06", "it is no zip, or not all of it.")
    n_entries, n_bytes = struct.unpack("<HI", end[10:16])
    is_short = n_entries <= _MOST_ENTRIES and n_bytes <= 200 * _MOST_ENTRIES
    require(
        is_short and data[-42:-38] != b"PK\x06\x07", "it holds other files than a bundle."
    )  # zip64's mark
    archive = zipfile.ZipFile(io.BytesIO(data))
    found = archive.namelist()
    require(len(set(found)) == len(found), "it holds a file twice.")
    require(names is None or sorted(found) == sorted(names), "it holds other files than a bundle.")
    return archive


def read_entry(archive: zipfile.ZipFile, name: str) -> bytes:
    """An entry, whose length is what its directory says; more is not decompressed."""
    entry = archive.getinfo(name)
    require(not entry.flag_bits & 0x1, "it is encrypted.")
    allowed = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) if name == PROVENANCE else (zipfile.ZIP_STORED,)
    require(entry.compress_type in allowed, f"its {name} is packed in another way.")
    with archive.open(entry) as file:
        content = file.read(entry.file_size + 1)
        require(len(content) == entry.file_size, f"its {name} is cut off.")
    return content


def read_arrays(numbers: bytes) -> dict[str, np.ndarray]:
    with open_zip(numbers) as archive:
        require(set(archive.namelist()) <= _ARRAY_FILES, f"its {NUMBERS} holds other arrays than a bundle.")
        return {name.removesuffix(".npy"): _read_array(archive, name) for name in archive.namelist()}


def _read_array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """An array of float32 or bool whose header declares no more and no less than there is."""
    content = read_entry(archive, name)
    header = _HEADER.match(content)
    require(header is not None, f"its {name} is no array of float32 or bool.")
    assert header is not None
    start = 10 + int.from_bytes(header[1], "little")
    dtype = np.dtype(header[2].decode())
    shape = [int(length) for length in header[3].split(b",")]
    n_bytes = math.prod(shape) * dtype.itemsize
    is_whole = start == header.end() and n_bytes == len(content) - start > 0
    require(is_whole, f"its {name} has another size than it declares.")
    array = np.frombuffer(content, dtype=np.uint8 if dtype == np.bool_ else dtype, offset=start).reshape(
        shape
    )
    if dtype == np.bool_:
        require(bool((array <= 1).all()), f"its {name} holds more than true and false.")
        array = array.view(np.bool_)
    check_numbers(name, array)
    return array
