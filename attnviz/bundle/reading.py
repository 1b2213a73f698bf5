"""Reading a bundle, which may come from anywhere: nothing in it is trusted.

One concept: from bytes to a Bundle, or to a clear refusal. Sizes, names, types and shapes are checked before
anything is made of them; nothing is executed or written to disk.
"""

import io
import json
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np

from attnviz.bundle.writing import (
    ARRAY_NAMES,
    FORMAT,
    LARGEST_BUNDLE,
    LARGEST_NUMBER,
    MATRIX,
    MOST_TOKENS,
    NUMBERS,
    PAGE,
    PROVENANCE,
    VERSION,
    Bundle,
    check_numbers,
    check_sizes,
)
from attnviz.errors import AttnvizError, BundleError
from attnviz.figures.heatmap import Shown
from attnviz.figures.theme import Colour, ThemeName
from attnviz.maths.rounding import dot_bound
from attnviz.model.tokenization import CHARACTER_LIMIT
from attnviz.model.tolerances import UNITS
from attnviz.model.trace import Trace
from attnviz.records import (
    KINDS,
    WEIGHTS,
    Axis,
    Check,
    Kind,
    LayerAttention,
    Provenance,
    Tokens,
    VerificationReport,
)

_LARGEST_ENTRIES = {PROVENANCE: 16_000_000, PAGE: 64_000_000, MATRIX: 64_000_000, NUMBERS: LARGEST_BUNDLE}
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
_LONGEST_WORDS = 1000  # characters of any string but a text
_MOST_ENTRIES = len(_ARRAY_FILES)
_DAMAGED = "This file is not a bundle of attnviz, or it is damaged: {} Export it again, or pick another file."


def read_bundle(data: bytes) -> Bundle:
    """The bundle in a zip that `write_bundle` wrote.

    Nothing in it is trusted, executed or written to disk; what its page and its CSV say is not read at all.

    Raises:
        BundleError: any other file, a damaged one, or one of another version.
    """
    if len(data) > LARGEST_BUNDLE:
        raise BundleError(
            f"This file has {len(data) / 1e6:,.0f} MB; a bundle has at most {LARGEST_BUNDLE / 1e6:,.0f} MB. "
            "Pick another file."
        )
    try:
        with _open_zip(data, list(_LARGEST_ENTRIES)) as archive:
            for entry in archive.infolist():
                _require(
                    entry.file_size <= _LARGEST_ENTRIES[entry.filename], f"its {entry.filename} is too large."
                )
            document, numbers = _read_entry(archive, PROVENANCE), _read_entry(archive, NUMBERS)
        return _bundle(_parse(document), numbers)
    except BundleError:
        raise
    except (
        AttnvizError,
        KeyError,
        ValueError,
        TypeError,
        OverflowError,
        IndexError,
        RecursionError,
    ) as error:
        raise BundleError(_DAMAGED.format("its contents do not fit each other.")) from error
    except (
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        EOFError,
        RuntimeError,
    ) as error:
        raise BundleError(_DAMAGED.format("its zip cannot be read.")) from error


def _require(holds: bool, found: str) -> None:
    if not holds:
        raise BundleError(_DAMAGED.format(found))


def _open_zip(data: bytes, names: Sequence[str] | None = None) -> zipfile.ZipFile:
    """A zip as Python writes it: its directory at the very end, short, with each name once.

    Source: PKWARE, APPNOTE.TXT 6.3.10, section 4.3.16: the end record is 22 bytes without a comment.
    """
    end = data[-22:]
    _require(len(end) == 22 and end[:4] == b"PK\x05\x06", "it is no zip, or not all of it.")
    n_entries, n_bytes = struct.unpack("<HI", end[10:16])
    is_short = n_entries <= _MOST_ENTRIES and n_bytes <= 200 * _MOST_ENTRIES
    _require(
        is_short and data[-42:-38] != b"PK\x06\x07", "it holds other files than a bundle."
    )  # zip64's mark
    archive = zipfile.ZipFile(io.BytesIO(data))
    found = archive.namelist()
    _require(len(set(found)) == len(found), "it holds a file twice.")
    _require(names is None or sorted(found) == sorted(names), "it holds other files than a bundle.")
    return archive


def _read_entry(archive: zipfile.ZipFile, name: str) -> bytes:
    """An entry, whose length is what its directory says; more is not decompressed."""
    entry = archive.getinfo(name)
    _require(not entry.flag_bits & 0x1, "it is encrypted.")
    allowed = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) if name == PROVENANCE else (zipfile.ZIP_STORED,)
    _require(entry.compress_type in allowed, f"its {name} is packed in another way.")
    with archive.open(entry) as file:
        content = file.read(entry.file_size + 1)
        _require(len(content) == entry.file_size, f"its {name} is cut off.")
    return content


def is_provenance(content: bytes) -> bool:
    """Whether this is the provenance of a bundle, of whatever version."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and document.get("format") == FORMAT


def _parse(document: bytes) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no number of JSON")

    _require(is_provenance(document), f"its {PROVENANCE} is of another kind.")
    parsed = json.loads(document, parse_constant=refuse)
    version = parsed.get("version")
    if version != VERSION:
        raise BundleError(
            f"This bundle has version {str(version)[:20]} of the format; this attnviz reads version {VERSION}. "
            "Open it with the attnviz that wrote it."
        )
    checked: dict[str, Any] = parsed
    return checked


def _bundle(document: dict[str, Any], numbers: bytes) -> Bundle:
    model, view, verdict = (_section(document, name) for name in ("model", "view", "verification"))
    provenance = Provenance(
        model=_words(model["name"]),
        revision=_words(model["revision"]),
        dtype=_words(model["dtype"]),
        versions=_named_words(model["versions"]),
    )
    digests = _named_words(model["weights_sha256"])
    _require(all(re.fullmatch("[0-9a-f]{64}", one) for one in digests.values()), "a SHA-256 in it is none.")
    tokens = _tokens(_section(document, "tokens"))
    target = None if document["target_tokens"] is None else _tokens(_section(document, "target_tokens"))
    arrays = _read_arrays(numbers)
    shared = arrays.pop("weights"), arrays.pop("last_hidden_state")
    layers = {
        _one_of(kind, KINDS): _layers(_one_of(kind, KINDS), _object(section), arrays)
        for kind, section in _section(document, "attention").items()
    }
    _require(bool(layers) and not arrays, f"its {NUMBERS} holds other arrays than a bundle.")
    if target is None:
        _require(len(layers) == 1 and "cross" not in layers, "it lacks the text of the decoder.")
    trace = Trace(
        tokens=tokens,
        target_tokens=target,
        layers=layers,
        last_hidden_state=_shaped(shared[1], "last_hidden_state", 2),
        provenance=provenance,
    )
    _require(
        len(shared[1]) == len(tokens if target is None else target), "its last_hidden_state has other tokens."
    )
    check_sizes(trace)
    kind = _one_of(view["kind"], tuple(layers))
    bundle = Bundle(
        trace=trace,
        report=_report(verdict, trace),
        kind=kind,
        layer=_integer(view["layer"], trace.n_layers(kind) - 1),
        head=_integer(view["head"], trace.n_heads(kind) - 1),
        queries=_axis(view["queries"], trace.query_tokens(kind)),
        keys=_axis(view["keys"], trace.key_tokens(kind)),
        renormalised=_boolean(view["renormalised"]),
        query=_integer(view["query"], len(trace.query_tokens(kind)) - 1),
        key=_integer(view["key"], len(trace.key_tokens(kind)) - 1),
        show=_one_of(view["show"], get_args(Shown)),
        colour=_one_of(view["colour"], get_args(Colour)),
        theme=_one_of(view["theme"], get_args(ThemeName)),
        settings=_named_words(view["settings"], CHARACTER_LIMIT),
        weights_sha256=digests,
    )
    weights = trace.weights(bundle.layer, bundle.head, kind)
    _require(
        shared[0].dtype == np.float32
        and shared[0].shape == weights.shape
        and bool((np.abs(shared[0] - weights) <= _rounding(bundle)).all()),
        "its weights are not those of its queries and keys.",
    )
    _ = bundle.pattern  # raises where the measure is not to be had
    return bundle


def _rounding(bundle: Bundle) -> float:
    """How far weights of the shown head may be apart that two machines make of the same queries and keys.

    Half of what roundings can move a score by, at most scale |q| |k| and the bias, and those of the softmax: see
    `attnviz.model.tolerances`.
    """
    call = bundle.trace.attention(bundle.layer, bundle.kind)
    place = bundle.layer, bundle.head, bundle.kind
    longest = [np.linalg.norm(of(*place), axis=1).max() for of in (bundle.trace.query, bundle.trace.key)]
    bias = 0.0 if call.bias is None else float(np.abs(call.bias).max())
    scores = dot_bound(2 * call.query.shape[2] + 8) * (call.scale * float(np.prod(longest)) + bias)
    return scores / 2 + 2 * dot_bound(call.key.shape[1] + 8)


def _read_arrays(numbers: bytes) -> dict[str, np.ndarray]:
    with _open_zip(numbers) as archive:
        _require(set(archive.namelist()) <= _ARRAY_FILES, f"its {NUMBERS} holds other arrays than a bundle.")
        return {name.removesuffix(".npy"): _read_array(archive, name) for name in archive.namelist()}


def _read_array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """An array of float32 or bool whose header declares no more and no less than there is."""
    content = _read_entry(archive, name)
    header = _HEADER.match(content)
    _require(header is not None, f"its {name} is no array of float32 or bool.")
    assert header is not None
    start = 10 + int.from_bytes(header[1], "little")
    dtype = np.dtype(header[2].decode())
    shape = [int(length) for length in header[3].split(b",")]
    n_bytes = math.prod(shape) * dtype.itemsize
    is_whole = start == header.end() and n_bytes == len(content) - start > 0
    _require(is_whole, f"its {name} has another size than it declares.")
    array = np.frombuffer(content, dtype=np.uint8 if dtype == np.bool_ else dtype, offset=start).reshape(
        shape
    )
    if dtype == np.bool_:
        _require(bool((array <= 1).all()), f"its {name} holds more than true and false.")
        array = array.view(np.bool_)
    check_numbers(name, array)
    return array


def _layers(kind: Kind, section: dict[str, Any], arrays: dict[str, np.ndarray]) -> tuple[LayerAttention, ...]:
    """The layers of one kind; the arrays that they take are taken out."""

    def stacked(name: str, n_axes: int, *, optional: bool = False) -> np.ndarray | None:
        found = arrays.pop(f"{kind}.{name}", None)
        _require(found is not None or optional, f"its {NUMBERS} lacks {kind}.{name}.")
        return None if found is None else _shaped(found, name, n_axes)

    query, key, value = (stacked(name, 4) for name in ("query", "key", "value"))
    products = stacked("value_products", 4, optional=True)
    allowed, bias = stacked("allowed", 4, optional=True), stacked("bias", 4, optional=True)
    assert query is not None and key is not None and value is not None
    n_layer, n_head = query.shape[:2]
    _require(len(key) == len(value) == n_layer, "its layers are not as many everywhere.")
    if products is not None:
        _require(
            products.shape == (n_layer, n_head, n_head, key.shape[2]), "its value_products have other axes."
        )
    scales = _list(section["scale"], n_layer)
    masks = _by_layer(allowed, _list(section["allowed"], n_layer))
    biases = _by_layer(bias, _list(section["bias"], n_layer))
    return tuple(
        LayerAttention(
            kind=kind,
            layer=layer,
            query=query[layer],
            key=key[layer],
            value=value[layer],
            scale=_real(scales[layer], 0.0, 1e6),
            allowed=masks[layer],
            bias=biases[layer],
            value_products=None if products is None else products[layer],
        )
        for layer in range(n_layer)
    )


def _by_layer(matrices: np.ndarray | None, numbers: list[Any]) -> list[np.ndarray | None]:
    """For each layer the matrix of its number, or None; every matrix belongs to one."""
    n_matrix = 0 if matrices is None else len(matrices)
    for number in numbers:
        _require(
            number is None or (type(number) is int and 0 <= number < n_matrix), "a mask in it is missing."
        )
    _require(set(numbers) - {None} == set(range(n_matrix)), "a mask in it belongs to no layer.")
    return [None if matrices is None or number is None else matrices[number] for number in numbers]


def _shaped(array: np.ndarray, name: str, n_axes: int) -> np.ndarray:
    dtype = np.bool_ if name == "allowed" else np.float32
    _require(array.ndim == n_axes and array.dtype == dtype, f"{name} has other axes or another type.")
    return array


def _tokens(section: dict[str, Any]) -> Tokens:
    n_token = len(_list(section["ids"]))
    _require(1 <= n_token <= MOST_TOKENS, f"it has {n_token:,} tokens.")
    pair, unknown = section["text_pair"], section["unknown_id"]
    largest = np.iinfo(np.int64).max
    return Tokens(
        text=_words(section["text"], CHARACTER_LIMIT),
        text_pair=None if pair is None else _words(pair, CHARACTER_LIMIT),
        ids=np.array([_integer(one, largest) for one in section["ids"]], dtype=np.int64),
        labels=tuple(_words(one) for one in _list(section["labels"], n_token)),
        is_special=np.array([_boolean(one) for one in _list(section["is_special"], n_token)]),
        segment=np.array([_integer(one, 1) for one in _list(section["segment"], n_token)], dtype=np.int64),
        word=np.array(
            [_integer(one, largest, -1) for one in _list(section["word"], n_token)], dtype=np.int64
        ),
        unknown_id=None if unknown is None else _integer(unknown, largest),
        n_cut=tuple(_integer(one, largest) for one in _list(section["n_cut"])[:2]),
        masked={
            _integer(int(position), n_token - 1): label
            for position, label in _named_words(section["masked"], most=MOST_TOKENS).items()
        },
    )


def _axis(spans: object, tokens: Tokens) -> Axis:
    pairs = [[_integer(edge, len(tokens)) for edge in _list(one, 2)] for one in _list(spans)]
    _require(bool(pairs), "its matrix is empty.")
    return Axis(tokens=tokens, spans=np.array(pairs, dtype=np.int64))


def _report(section: dict[str, Any], trace: Trace) -> VerificationReport:
    """The verdict that is recorded: checks that attnviz makes, on axes of this trace."""
    recorded = _list(section["checks"])
    _require(len(recorded) <= len(UNITS), "its verdict has other checks than attnviz makes.")
    checks = tuple(_check(_object(one), trace) for one in recorded)
    names = [one.name for one in checks]
    _require(len(set(names)) == len(names) and WEIGHTS in names, "its verdict has other checks.")
    not_compared = _named_words(section["not_compared"])
    _require(not_compared.keys() <= UNITS.keys() - set(names), "its verdict has no such check to leave out.")
    report = VerificationReport(checks=checks, not_compared=not_compared, provenance=trace.provenance)
    _require(section["passed"] is report.passed, "its verdict is not that of its numbers.")
    return report


def _check(section: dict[str, Any], trace: Trace) -> Check:
    name = _one_of(section["name"], tuple(UNITS))
    _require(section["unit"] == UNITS[name], "a check in it has another unit.")
    tolerances = _tables(section["tolerances"], name, trace)
    _require(
        all(bool((table >= 0).all()) for table in tolerances.values()), "a tolerance in it is no number."
    )
    return Check(
        name=name,
        differences=_tables(section["differences"], name, trace),
        tolerances=tolerances,
        unit=UNITS[name],
        reason=_words(section["reason"]),
    )


def _tables(value: object, name: str, trace: Trace) -> dict[Kind, np.ndarray]:
    """Numbers by kind of attention, of every layer and head or of all together; NaN where there is none."""
    found = _object(value)
    kinds = [kind for kind in trace.kinds if kind in found]
    is_known = bool(kinds) and len(kinds) == len(found) and (name != WEIGHTS or kinds == list(trace.kinds))
    _require(is_known, "its verdict is on other attention than it holds.")
    tables: dict[Kind, np.ndarray] = {}
    for kind in kinds:
        rows = [[_float32(one) for one in _list(row)] for row in _list(found[kind])]
        whole = trace.n_layers(kind), trace.n_heads(kind)
        lengths = {len(row) for row in rows}
        fits = len(rows) in (1, whole[0]) and lengths <= {1, whole[1]} and len(lengths) == 1
        if name == WEIGHTS:
            fits = len(rows) == whole[0] and lengths == {whole[1]}
        _require(fits, "its verdict is on other layers or heads than it holds.")
        tables[kind] = np.array(rows, dtype=np.float32)
    return tables


def _float32(value: object) -> float:
    """A number that is not negative, or NaN for the null that stands for it."""
    return float("nan") if value is None else _real(value, 0.0, float(np.finfo(np.float32).max))


def _section(document: dict[str, Any], name: str) -> dict[str, Any]:
    return _object(document[name])


def _object(value: object) -> dict[str, Any]:
    _require(isinstance(value, dict), f"its {PROVENANCE} has other parts.")
    assert isinstance(value, dict)
    return value


def _list(value: object, length: int | None = None) -> list[Any]:
    fits = isinstance(value, list) and length in (None, len(value))
    _require(fits, f"its {PROVENANCE} has lists of other lengths.")
    assert isinstance(value, list)
    return value


def _words(value: object, longest: int = _LONGEST_WORDS) -> str:
    fits = isinstance(value, str) and len(value) <= longest
    _require(fits, f"its {PROVENANCE} has something else than words, or too many.")
    assert isinstance(value, str)
    value.encode()  # a lone surrogate is no text
    return value


def _named_words(value: object, longest: int = _LONGEST_WORDS, most: int = 64) -> dict[str, str]:
    named = _object(value)
    _require(len(named) <= most, f"its {PROVENANCE} has lists of other lengths.")
    return {_words(name): _words(words, longest) for name, words in named.items()}


def _one_of(value: object, choices: tuple[Any, ...]) -> Any:
    _require(isinstance(value, str) and value in choices, f"its {PROVENANCE} has a choice that there is not.")
    return value


def _integer(value: object, largest: int, smallest: int = 0) -> int:
    fits = type(value) is int and smallest <= value <= largest
    _require(fits, f"its {PROVENANCE} has a number out of range.")
    assert type(value) is int
    return value


def _real(value: object, smallest: float = -LARGEST_NUMBER, largest: float = LARGEST_NUMBER) -> float:
    fits = type(value) in (int, float) and smallest <= value <= largest  # type: ignore[operator]
    _require(fits, f"its {PROVENANCE} has a number out of range.")
    return float(value)  # type: ignore[arg-type]


def _boolean(value: object) -> bool:
    _require(isinstance(value, bool), f"its {PROVENANCE} has something else than true or false.")
    return bool(value)
