"""Reading a bundle from an untrusted source.

Sizes, names, types and shapes are checked before any array is built; nothing is executed or written to disk.
"""

import struct
import zipfile
import zlib

import numpy as np

from attnviz.arguments import typed
from attnviz.bundle.archive import open_zip, read_arrays, read_entry
from attnviz.bundle.bounds import LARGEST_BUNDLE, check_sizes
from attnviz.bundle.bundle import Bundle
from attnviz.bundle.changes import check_changes, read_changes
from attnviz.bundle.document import (
    AttentionPart,
    Document,
    RecordedCheck,
    Span,
    Table,
    TokensPart,
    Verdict,
    read_document,
)
from attnviz.bundle.refusal import DAMAGED, require
from attnviz.bundle.writing import FIGURES, MATRIX, NUMBERS, PAGE, PAGE_NUMBERS, POINTS, PROVENANCE
from attnviz.errors import AttnvizError, BundleError
from attnviz.maths.rounding import dot_bound
from attnviz.model.tolerances import UNITS
from attnviz.model.trace import Trace
from attnviz.records import (
    WEIGHTS,
    Axis,
    Check,
    Kind,
    LayerAttention,
    Provenance,
    Tokens,
    VerificationReport,
    head_table,
    visible,
)

_SMALLEST_SCALE, _LARGEST_SCALE = 1e-6, 1e6
_LARGEST_ENTRIES = {PROVENANCE: 16_000_000, PAGE: 64_000_000, MATRIX: 64_000_000, NUMBERS: LARGEST_BUNDLE}
_LARGEST_OF_PAGE = {PAGE_NUMBERS: 64_000_000, POINTS: 64_000_000, FIGURES: 64_000_000}


@typed
def read_bundle(data: bytes, *, most_bytes: int = LARGEST_BUNDLE) -> Bundle:
    """The bundle in a zip that `write_bundle` wrote.

    Nothing in it is trusted, executed or written to disk; its page, figures and CSVs are not read at all.

    Raises:
        BundleError: the file is no bundle, damaged, of another version or too large, or its trace is too large.
    """
    if len(data) > most_bytes:
        raise BundleError(
            f"This file is {len(data) / 1e6:,.0f} MB; a bundle is at most {most_bytes / 1e6:,.0f} MB here. "
            "Select another file."
        )
    try:
        with open_zip(data, list(_LARGEST_ENTRIES), list(_LARGEST_OF_PAGE)) as archive:
            largest = _LARGEST_ENTRIES | _LARGEST_OF_PAGE
            for entry in archive.infolist():
                require(entry.file_size <= largest[entry.filename], f"its {entry.filename} is too large.")
            document, numbers = read_entry(archive, PROVENANCE), read_entry(archive, NUMBERS)
        return _bundle(read_document(document), numbers)
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
        raise BundleError(DAMAGED.format("its contents are inconsistent.")) from error
    except (
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        EOFError,
        RuntimeError,
    ) as error:
        raise BundleError(DAMAGED.format("its zip cannot be read.")) from error


def _bundle(document: Document, numbers: bytes) -> Bundle:
    model, view = document.model, document.view
    provenance = Provenance(
        model=model.name, revision=model.revision, dtype=model.dtype, versions=model.versions
    )
    tokens = _tokens(document.tokens)
    target = None if document.target_tokens is None else _tokens(document.target_tokens)
    arrays = read_arrays(numbers)
    shared = arrays.pop("weights"), arrays.pop("last_hidden_state")
    layers = {kind: _layers(kind, part, arrays) for kind, part in document.attention.items()}
    interventions = read_changes(document.interventions, arrays)
    require(bool(layers) and not arrays, f"the arrays of its {NUMBERS} are not those of a bundle.")
    if target is None:
        require(len(layers) == 1 and "cross" not in layers, "the decoder's text is missing.")
    trace = Trace(
        tokens=tokens,
        target_tokens=target,
        layers=layers,
        last_hidden_state=_shaped(shared[1], "last_hidden_state", 2),
        interventions=interventions,
        provenance=provenance,
    )
    require(
        len(shared[1]) == len(tokens if target is None else target),
        "its last_hidden_state is not one vector per token.",
    )
    check_sizes(trace)
    check_changes(trace)
    require(view.kind in layers, "its view is of attention that it does not contain.")
    kind = view.kind
    bundle = Bundle(
        trace=trace,
        report=_report(document.verification, trace),
        kind=kind,
        layer=_below(view.layer, trace.n_layers(kind)),
        head=_below(view.head, trace.n_heads(_below(view.layer, trace.n_layers(kind)), kind)),
        queries=_axis(view.queries, trace.query_tokens(kind)),
        keys=_axis(view.keys, trace.key_tokens(kind)),
        renormalised=view.renormalised,
        query=_below(view.query, len(trace.query_tokens(kind))),
        key=_below(view.key, len(trace.key_tokens(kind))),
        show=view.show,
        colour=view.colour,
        theme=view.theme,
        settings=view.settings,
        page=view.page,
        weights_sha256=model.weights_sha256,
    )
    weights = trace.weights(bundle.layer, bundle.head, kind)
    require(
        shared[0].dtype == np.float32
        and shared[0].shape == weights.shape
        and bool((np.abs(shared[0] - weights) <= _rounding(bundle)).all()),
        "its weights do not follow from its queries and keys.",
    )
    _ = bundle.pattern  # raises where the measure is not available
    return bundle


def _below(number: int, count: int) -> int:
    """The index, which must be less than the count."""
    require(number < count, "its view is of a layer, head, query or key that it does not contain.")
    return number


def _rounding(bundle: Bundle) -> float:
    """How far weights of the shown head may differ that two machines compute from the same queries and keys.

    Half the rounding error of a score, which is at most scale |q| |k| plus the bias, with 8 more roundings for a softcap,
    plus the rounding error of the softmax: see `attnviz.model.tolerances`.
    """
    call = bundle.trace.attention(bundle.layer, bundle.kind)
    place = bundle.layer, bundle.head, bundle.kind
    longest = [np.linalg.norm(of(*place), axis=1).max() for of in (bundle.trace.query, bundle.trace.key)]
    bias = 0.0 if call.bias is None else float(np.abs(call.bias).max())
    n_rounding = 2 * call.query.shape[2] + (8 if call.softcap is None else 16)
    scores = dot_bound(n_rounding) * (call.scale * float(np.prod(longest)) + bias)
    return scores / 2 + 2 * dot_bound(call.key.shape[1] + 8)


def _layers(kind: Kind, part: AttentionPart, arrays: dict[str, np.ndarray]) -> tuple[LayerAttention, ...]:
    """The layers of one kind; their arrays are removed from ``arrays``."""

    def of_layers(name: str, *, optional: bool = False) -> list[np.ndarray]:
        """The arrays of all layers, which may be written as one array or one each; empty where there are none."""
        whole = arrays.pop(f"{kind}.{name}", None)
        if whole is not None:
            return list(_shaped(whole, name, 4))
        layer_arrays: list[np.ndarray] = []
        while (array := arrays.pop(f"{kind}.{name}.{len(layer_arrays)}", None)) is not None:
            layer_arrays.append(_shaped(array, name, 3))
        require(bool(layer_arrays) or optional, f"its {NUMBERS} lacks {kind}.{name}.")
        return layer_arrays

    query, key, value = (of_layers(name) for name in ("query", "key", "value"))
    products, allowed, bias = (
        of_layers(name, optional=True) for name in ("value_products", "allowed", "bias")
    )
    n_layer = len(query)
    require(len(key) == len(value) == n_layer, "its arrays differ in their number of layers.")
    if products:
        wanted = [
            (len(of_queries), len(of_queries), of_keys.shape[1])
            for of_queries, of_keys in zip(query, key, strict=True)
        ]
        require([product.shape for product in products] == wanted, "its value_products have the wrong shape.")
    require(
        len(part.scale) == n_layer
        and all(_SMALLEST_SCALE <= scale <= _LARGEST_SCALE for scale in part.scale),
        "a scale in it is missing, too small or too large.",
    )
    softcaps = part.softcap or [None] * n_layer
    require(len(softcaps) == n_layer, "a softcap in it is missing.")
    require(
        all(bool(cells.any(axis=(1, 2)).all()) for cells in allowed),
        "a mask in it hides every key from every query.",
    )
    masks, biases = _by_layer(allowed, part.allowed, n_layer), _by_layer(bias, part.bias, n_layer)
    return tuple(
        LayerAttention(
            kind=kind,
            layer=layer,
            query=query[layer],
            key=key[layer],
            value=value[layer],
            scale=part.scale[layer],
            softcap=softcaps[layer],
            allowed=masks[layer],
            bias=biases[layer],
            value_products=products[layer] if products else None,
        )
        for layer in range(n_layer)
    )


def _by_layer(matrices: list[np.ndarray], numbers: list[int | None], n_layer: int) -> list[np.ndarray | None]:
    """For each layer, the matrix that its number names, or None; every matrix must belong to a layer."""
    require(
        len(numbers) == n_layer and set(numbers) - {None} == set(range(len(matrices))),
        "a mask in it is missing, or belongs to no layer.",
    )
    return [None if number is None else matrices[number] for number in numbers]


def _shaped(array: np.ndarray, name: str, n_axes: int) -> np.ndarray:
    dtype = np.bool_ if name == "allowed" else np.float32
    require(
        array.ndim == n_axes and array.dtype == dtype,
        f"{name} has the wrong number of axes or the wrong type.",
    )
    return array


def _tokens(part: TokensPart) -> Tokens:
    n_token = len(part.ids)
    lists = part.labels, part.pieces or part.labels, part.is_special, part.segment, part.word
    require(all(len(column) == n_token for column in lists), "its lists of tokens differ in length.")
    require(all(position < n_token for position in part.masked), "a masked token in it is missing.")
    unknown = part.unknown
    if unknown is None:
        unknown = [at for at, number in enumerate(part.ids) if number == part.unknown_id]
    require(all(position < n_token for position in unknown), "an unknown token in it is missing.")
    require(
        all(position < n_token and part.is_special[position] for position in part.in_text),
        "a special token in it is missing.",
    )
    of_second = [
        segment
        for position, segment in enumerate(part.segment)
        if not part.is_special[position] or position in part.in_text
    ]
    require(
        part.text_pair is None or (part.text_pair.strip() != "" and 1 in of_second),
        "its second text is empty.",
    )
    return Tokens(
        text=part.text,
        text_pair=part.text_pair,
        ids=np.array(part.ids, dtype=np.int64),
        labels=tuple(map(visible, part.labels)),
        pieces=tuple(part.pieces),
        is_special=np.array(part.is_special),
        segment=np.array(part.segment, dtype=np.int64),
        word=np.array(part.word, dtype=np.int64),
        language=part.language,
        template=part.template,
        in_text=tuple(part.in_text),
        unknown=tuple(unknown),
        n_cut=tuple(part.n_cut),
        n_unread=tuple(part.n_unread or (0,)),
        masked=part.masked,
    )


def _axis(spans: list[Span], tokens: Tokens) -> Axis:
    require(
        all(edge <= len(tokens) for span in spans for edge in span),
        "its matrix has positions beyond its tokens.",
    )
    return Axis(tokens=tokens, spans=np.array(spans, dtype=np.int64))


def _report(verdict: Verdict, trace: Trace) -> VerificationReport:
    """The recorded verdict, which must consist of attnviz's own checks on the axes of this trace."""
    checks = tuple(_check(check, trace) for check in verdict.checks)
    names = [check.name for check in checks]
    require(
        len(set(names)) == len(names) and WEIGHTS in names,
        "its verdict has a check twice, or none of the attention weights.",
    )
    left_out = verdict.not_compared
    require(
        left_out.keys() <= UNITS.keys() - set(names),
        "its verdict leaves out a check that attnviz does not make, or that is recorded.",
    )
    report = VerificationReport(checks=checks, not_compared=left_out, provenance=trace.provenance)
    require(verdict.passed is report.passed, "its verdict does not follow from its numbers.")
    return report


def _check(recorded: RecordedCheck, trace: Trace) -> Check:
    name = recorded.name
    require(
        UNITS.get(name) == recorded.unit, "it has a check that attnviz does not make, or one in another unit."
    )
    require(
        all(bound is not None for table in recorded.tolerances.values() for row in table for bound in row),
        "a tolerance in it is not a number.",
    )
    return Check(
        name=name,
        differences=_tables(recorded.differences, name, trace),
        tolerances=_tables(recorded.tolerances, name, trace),
        unit=recorded.unit,
        reason=recorded.reason,
    )


def _tables(read: Table, name: str, trace: Trace) -> dict[Kind, np.ndarray]:
    """Numbers by kind of attention, for every layer and head or for all together; NaN where there is none."""
    kinds = [kind for kind in trace.kinds if kind in read]
    is_known = bool(kinds) and len(kinds) == len(read) and (name != WEIGHTS or kinds == list(trace.kinds))
    require(is_known, "its verdict is not on the kinds of attention that it contains.")
    tables: dict[Kind, np.ndarray] = {}
    for kind in kinds:
        rows = read[kind]
        lengths = [len(row) for row in rows]
        of_heads = [trace.n_heads(layer, kind) for layer in range(trace.n_layers(kind))]
        fits = lengths in ([of_heads] if name == WEIGHTS else [of_heads, [1] * len(of_heads), [1]])
        require(fits, "its verdict is not on the layers and heads that it contains.")
        tables[kind] = head_table(np.array(row, dtype=np.float32) for row in rows)  # None becomes NaN
    return tables
