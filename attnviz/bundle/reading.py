"""Reading a bundle, which may come from anywhere: nothing in it is trusted.

One concept: from bytes to a Bundle, or to a clear refusal. Sizes, names, types and shapes are checked before
anything is made of them; nothing is executed or written to disk.
"""

import json
import re
import struct
import zipfile
import zlib
from typing import Any, get_args

import numpy as np

from attnviz.bundle.archive import open_zip, read_arrays, read_entry
from attnviz.bundle.refusal import DAMAGED, require
from attnviz.bundle.values import (
    boolean,
    float32_or_nan,
    integer,
    list_of,
    named_words,
    object_of,
    one_of,
    real,
    section_of,
    text_of,
)
from attnviz.bundle.writing import (
    FORMAT,
    LARGEST_BUNDLE,
    MATRIX,
    MOST_TOKENS,
    NUMBERS,
    PAGE,
    PROVENANCE,
    VERSION,
    Bundle,
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
        with open_zip(data, list(_LARGEST_ENTRIES)) as archive:
            for entry in archive.infolist():
                require(
                    entry.file_size <= _LARGEST_ENTRIES[entry.filename], f"its {entry.filename} is too large."
                )
            document, numbers = read_entry(archive, PROVENANCE), read_entry(archive, NUMBERS)
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
        raise BundleError(DAMAGED.format("its contents do not fit each other.")) from error
    except (
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        EOFError,
        RuntimeError,
    ) as error:
        raise BundleError(DAMAGED.format("its zip cannot be read.")) from error


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

    require(is_provenance(document), f"its {PROVENANCE} is of another kind.")
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
    model, view, verdict = (section_of(document, name) for name in ("model", "view", "verification"))
    provenance = Provenance(
        model=text_of(model["name"]),
        revision=text_of(model["revision"]),
        dtype=text_of(model["dtype"]),
        versions=named_words(model["versions"]),
    )
    digests = named_words(model["weights_sha256"])
    require(all(re.fullmatch("[0-9a-f]{64}", one) for one in digests.values()), "a SHA-256 in it is none.")
    tokens = _tokens(section_of(document, "tokens"))
    target = None if document["target_tokens"] is None else _tokens(section_of(document, "target_tokens"))
    arrays = read_arrays(numbers)
    shared = arrays.pop("weights"), arrays.pop("last_hidden_state")
    layers = {
        one_of(kind, KINDS): _layers(one_of(kind, KINDS), object_of(section), arrays)
        for kind, section in section_of(document, "attention").items()
    }
    require(bool(layers) and not arrays, f"its {NUMBERS} holds other arrays than a bundle.")
    if target is None:
        require(len(layers) == 1 and "cross" not in layers, "it lacks the text of the decoder.")
    trace = Trace(
        tokens=tokens,
        target_tokens=target,
        layers=layers,
        last_hidden_state=_shaped(shared[1], "last_hidden_state", 2),
        provenance=provenance,
    )
    require(
        len(shared[1]) == len(tokens if target is None else target), "its last_hidden_state has other tokens."
    )
    check_sizes(trace)
    kind = one_of(view["kind"], tuple(layers))
    bundle = Bundle(
        trace=trace,
        report=_report(verdict, trace),
        kind=kind,
        layer=integer(view["layer"], trace.n_layers(kind) - 1),
        head=integer(view["head"], trace.n_heads(kind) - 1),
        queries=_axis(view["queries"], trace.query_tokens(kind)),
        keys=_axis(view["keys"], trace.key_tokens(kind)),
        renormalised=boolean(view["renormalised"]),
        query=integer(view["query"], len(trace.query_tokens(kind)) - 1),
        key=integer(view["key"], len(trace.key_tokens(kind)) - 1),
        show=one_of(view["show"], get_args(Shown)),
        colour=one_of(view["colour"], get_args(Colour)),
        theme=one_of(view["theme"], get_args(ThemeName)),
        settings=named_words(view["settings"], CHARACTER_LIMIT),
        weights_sha256=digests,
    )
    weights = trace.weights(bundle.layer, bundle.head, kind)
    require(
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


def _layers(kind: Kind, section: dict[str, Any], arrays: dict[str, np.ndarray]) -> tuple[LayerAttention, ...]:
    """The layers of one kind; the arrays that they take are taken out."""

    def stacked(name: str, n_axes: int, *, optional: bool = False) -> np.ndarray | None:
        found = arrays.pop(f"{kind}.{name}", None)
        require(found is not None or optional, f"its {NUMBERS} lacks {kind}.{name}.")
        return None if found is None else _shaped(found, name, n_axes)

    query, key, value = (stacked(name, 4) for name in ("query", "key", "value"))
    products = stacked("value_products", 4, optional=True)
    allowed, bias = stacked("allowed", 4, optional=True), stacked("bias", 4, optional=True)
    assert query is not None and key is not None and value is not None
    n_layer, n_head = query.shape[:2]
    require(len(key) == len(value) == n_layer, "its layers are not as many everywhere.")
    if products is not None:
        require(
            products.shape == (n_layer, n_head, n_head, key.shape[2]), "its value_products have other axes."
        )
    scales = list_of(section["scale"], n_layer)
    masks = _by_layer(allowed, list_of(section["allowed"], n_layer))
    biases = _by_layer(bias, list_of(section["bias"], n_layer))
    return tuple(
        LayerAttention(
            kind=kind,
            layer=layer,
            query=query[layer],
            key=key[layer],
            value=value[layer],
            scale=real(scales[layer], 0.0, 1e6),
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
        require(
            number is None or (type(number) is int and 0 <= number < n_matrix), "a mask in it is missing."
        )
    require(set(numbers) - {None} == set(range(n_matrix)), "a mask in it belongs to no layer.")
    return [None if matrices is None or number is None else matrices[number] for number in numbers]


def _shaped(array: np.ndarray, name: str, n_axes: int) -> np.ndarray:
    dtype = np.bool_ if name == "allowed" else np.float32
    require(array.ndim == n_axes and array.dtype == dtype, f"{name} has other axes or another type.")
    return array


def _tokens(section: dict[str, Any]) -> Tokens:
    n_token = len(list_of(section["ids"]))
    require(1 <= n_token <= MOST_TOKENS, f"it has {n_token:,} tokens.")
    pair, unknown = section["text_pair"], section["unknown_id"]
    largest = np.iinfo(np.int64).max
    return Tokens(
        text=text_of(section["text"], CHARACTER_LIMIT),
        text_pair=None if pair is None else text_of(pair, CHARACTER_LIMIT),
        ids=np.array([integer(one, largest) for one in section["ids"]], dtype=np.int64),
        labels=tuple(text_of(one) for one in list_of(section["labels"], n_token)),
        is_special=np.array([boolean(one) for one in list_of(section["is_special"], n_token)]),
        segment=np.array([integer(one, 1) for one in list_of(section["segment"], n_token)], dtype=np.int64),
        word=np.array(
            [integer(one, largest, -1) for one in list_of(section["word"], n_token)], dtype=np.int64
        ),
        unknown_id=None if unknown is None else integer(unknown, largest),
        n_cut=tuple(integer(one, largest) for one in list_of(section["n_cut"])[:2]),
        masked={
            integer(int(position), n_token - 1): label
            for position, label in named_words(section["masked"], most=MOST_TOKENS).items()
        },
    )


def _axis(spans: object, tokens: Tokens) -> Axis:
    pairs = [[integer(edge, len(tokens)) for edge in list_of(one, 2)] for one in list_of(spans)]
    require(bool(pairs), "its matrix is empty.")
    return Axis(tokens=tokens, spans=np.array(pairs, dtype=np.int64))


def _report(section: dict[str, Any], trace: Trace) -> VerificationReport:
    """The verdict that is recorded: checks that attnviz makes, on axes of this trace."""
    recorded = list_of(section["checks"])
    require(len(recorded) <= len(UNITS), "its verdict has other checks than attnviz makes.")
    checks = tuple(_check(object_of(one), trace) for one in recorded)
    names = [one.name for one in checks]
    require(len(set(names)) == len(names) and WEIGHTS in names, "its verdict has other checks.")
    not_compared = named_words(section["not_compared"])
    require(not_compared.keys() <= UNITS.keys() - set(names), "its verdict has no such check to leave out.")
    report = VerificationReport(checks=checks, not_compared=not_compared, provenance=trace.provenance)
    require(section["passed"] is report.passed, "its verdict is not that of its numbers.")
    return report


def _check(section: dict[str, Any], trace: Trace) -> Check:
    name = one_of(section["name"], tuple(UNITS))
    require(section["unit"] == UNITS[name], "a check in it has another unit.")
    tolerances = _tables(section["tolerances"], name, trace)
    require(all(bool((table >= 0).all()) for table in tolerances.values()), "a tolerance in it is no number.")
    return Check(
        name=name,
        differences=_tables(section["differences"], name, trace),
        tolerances=tolerances,
        unit=UNITS[name],
        reason=text_of(section["reason"]),
    )


def _tables(value: object, name: str, trace: Trace) -> dict[Kind, np.ndarray]:
    """Numbers by kind of attention, of every layer and head or of all together; NaN where there is none."""
    found = object_of(value)
    kinds = [kind for kind in trace.kinds if kind in found]
    is_known = bool(kinds) and len(kinds) == len(found) and (name != WEIGHTS or kinds == list(trace.kinds))
    require(is_known, "its verdict is on other attention than it holds.")
    tables: dict[Kind, np.ndarray] = {}
    for kind in kinds:
        rows = [[float32_or_nan(one) for one in list_of(row)] for row in list_of(found[kind])]
        whole = trace.n_layers(kind), trace.n_heads(kind)
        lengths = {len(row) for row in rows}
        fits = len(rows) in (1, whole[0]) and lengths <= {1, whole[1]} and len(lengths) == 1
        if name == WEIGHTS:
            fits = len(rows) == whole[0] and lengths == {whole[1]}
        require(fits, "its verdict is on other layers or heads than it holds.")
        tables[kind] = np.array(rows, dtype=np.float32)
    return tables
