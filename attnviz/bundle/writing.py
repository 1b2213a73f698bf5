"""A bundle: one view of a trace in a zip, for people and programs, which attnviz can open again.

The contents of the file, and writing it holds a page of HTML, the matrix as CSV, the arrays that the trace is
rebuilt from as NPZ, and the provenance as JSON. The same view gives the same bytes. `attnviz.bundle.reading` reads it.
"""

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from plotly import graph_objects as go

from attnviz.arguments import typed
from attnviz.bundle.bounds import LARGEST_BUNDLE, check_numbers, check_sizes
from attnviz.bundle.bundle import Bundle
from attnviz.bundle.changes import changes_arrays, changes_document, changes_in_words, check_changes
from attnviz.bundle.page import draw_page, figures_json
from attnviz.errors import BundleError
from attnviz.figures.numbers import number_text
from attnviz.records import (
    AttentionPattern,
    Check,
    Kind,
    LayerAttention,
    Tokens,
    VerificationReport,
)

VERSION = 5
"""Version of the format. 1 recorded three checks; 2 records more; 3 may hold figures and numbers of a page; 4 has interventions;
5 records the check of the weights' files, and may have softcaps and layers with different numbers of heads."""
READABLE = (2, 3, 4, 5)
"""Versions that can be read; files of other versions are refused."""

PROVENANCE, PAGE, MATRIX, NUMBERS = "provenance.json", "view.html", "matrix.csv", "numbers.npz"
PAGE_NUMBERS, POINTS, FIGURES = "page.csv", "points.csv", "figures.json"
"""Files with what the page of a bundle shows, as far as it has any; never read again."""

ARRAY_NAMES = ("query", "key", "value", "value_products", "allowed", "bias")
"""Arrays of each kind of attention in the NPZ, as far as the kind has them: one for all layers, ``encoder.query``, or one for
each layer, ``encoder.query.0`` and so on, if layers have different numbers of heads."""
FORMAT = "attnviz bundle"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContent:
    """What a page shows beside the matrix; written into a bundle, but not read from one."""

    figures: Mapping[str, go.Figure | str] = field(default_factory=dict)
    """Figures of Plotly, and SVGs as text, by title."""
    tables: Mapping[str, bytes] = field(default_factory=dict)
    """CSVs by file name, `PAGE_NUMBERS` and `POINTS`."""


@typed
def write_bundle(bundle: Bundle, content: PageContent | None = None) -> bytes:
    """The bundle as a zip, with what its page shows beside the matrix.

    Raises:
        BundleError: more tokens or heads than a bundle holds, or numbers or tolerances that are not finite.
        SelectionError: no such layer, head, kind or measure.
    """
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as target:
        for name, data in bundle_files(bundle, content).items():
            entry = zipfile.ZipInfo(name)  # dated 1980, so that the same view is the same file
            stored = name == NUMBERS  # float32 hardly shrinks
            entry.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
            entry.external_attr, entry.create_system = 0o644 << 16, 3
            target.writestr(entry, data)
    packed = archive.getvalue()
    if len(packed) > LARGEST_BUNDLE:
        raise BundleError(
            f"This view makes a bundle of {len(packed) / 1e6:,.0f} MB; at most {LARGEST_BUNDLE / 1e6:,.0f} MB can "
            "be opened again. Shorten the text."
        )
    return packed


@typed
def bundle_files(bundle: Bundle, content: PageContent | None = None) -> dict[str, bytes]:
    """The files of a bundle, by name; raises as `write_bundle`."""
    pattern, content = bundle.pattern, content or PageContent()
    arrays = _arrays(bundle)  # refuses what JSON cannot hold
    return {
        PROVENANCE: _json(_document(bundle)),
        PAGE: _page(bundle, pattern, content).encode(),
        MATRIX: pattern.csv(scores=bundle.show == "scores"),
        NUMBERS: _npz(arrays),
        **({FIGURES: figures_json(content.figures).encode()} if content.figures else {}),
        **content.tables,
    }


def _page(bundle: Bundle, pattern: AttentionPattern, content: PageContent) -> str:
    row, column = pattern.queries.index(bundle.query), pattern.keys.index(bundle.key)
    place = f"Layer {bundle.layer}, " + ("all heads" if pattern.head is None else f"head {bundle.head}")
    if row is not None and column is not None:
        number = number_text(float(pattern.weights[row, column]))
        place += f": “{pattern.queries.labels[row]}” to “{pattern.keys.labels[column]}” {number}"
    return draw_page(bundle, title=place, facts=_facts(bundle), more=content.figures)


def _facts(bundle: Bundle) -> list[tuple[str, str]]:
    source, tokens = bundle.trace.provenance, bundle.trace.tokens
    second = bundle.trace.target_tokens.text if bundle.trace.target_tokens else tokens.text_pair
    shown = {
        name: value for name, value in bundle.settings.items() if name not in ("text", "second", "model")
    }
    facts = [("Text", tokens.text)]
    facts += [("Second text", second)] if second else []
    facts += [("Masked", ", ".join(f"{at} {label}" for at, label in tokens.masked.items()))] * bool(
        tokens.masked
    )
    facts += [("Page", bundle.page)] * bool(bundle.page)
    softcap = bundle.trace.attention(bundle.layer, bundle.kind).softcap
    facts += [] if softcap is None else [("Scores", f"{softcap:g} tanh(s / {softcap:g}) of a scaled score s")]
    return [
        *facts,
        *(
            (("Settings", ", ".join(f"{name} {value}" for name, value in sorted(shown.items()))),)
            if shown
            else ()
        ),
        ("Model", f"{source.model}, revision {source.revision}, {source.dtype}"),
        *(("Weights", f"{name}, SHA-256 {digest}") for name, digest in bundle.weights_sha256.items()),
        ("Libraries", ", ".join(f"{name} {number}" for name, number in source.versions.items())),
        (
            "Cells",
            bundle.show + (", rows divided by their sum over the shown keys" if bundle.renormalised else ""),
        ),
        ("Recorded", _recorded(bundle)),
    ]


def _recorded(bundle: Bundle) -> str:
    """The recorded verdict in a sentence; a page without the model cannot check it."""
    version = bundle.trace.provenance.versions.get("attnviz", "of an unknown version")
    n_check, n_passed = len(bundle.report.checks), len(bundle.report.checks) - len(bundle.report.failed)
    if changed := bundle.trace.interventions:
        return (
            f"attnviz {version} changed this run of the model: {changes_in_words(changed)}. Of the unchanged run {n_passed} of "
            f"{n_check} checks passed. This page cannot check that again."
        )
    return (
        f"attnviz {version} compared the trace in this bundle with the model's attention: {n_passed} of {n_check} "
        "checks passed. This page cannot check that again."
    )


def _document(bundle: Bundle) -> dict[str, Any]:
    trace, report = bundle.trace, bundle.report
    source, target = trace.provenance, trace.target_tokens
    return {
        "format": FORMAT,
        "version": VERSION,
        "model": {
            "name": source.model,
            "revision": source.revision,
            "dtype": source.dtype,
            "weights_sha256": dict(bundle.weights_sha256),
            "versions": dict(source.versions),
        },
        "view": {
            "kind": bundle.kind,
            "layer": bundle.layer,
            "head": bundle.head,
            "queries": bundle.queries.spans.tolist(),
            "keys": bundle.keys.spans.tolist(),
            "renormalised": bundle.renormalised,
            "query": bundle.query,
            "key": bundle.key,
            "show": bundle.show,
            "colour": bundle.colour,
            "theme": bundle.theme,
            "settings": dict(bundle.settings),
            "page": bundle.page,
        },
        "verification": _report_document(report),
        "tokens": _tokens_document(trace.tokens),
        "target_tokens": None if target is None else _tokens_document(target),
        "attention": {kind: _attention_document(calls) for kind, calls in trace.layers.items()},
        **({"interventions": changes_document(trace.interventions)} if trace.interventions else {}),
    }


def _softcaps(calls: Sequence[LayerAttention]) -> list[float | None]:
    """The softcap of each layer; empty where none has one."""
    softcaps = [call.softcap for call in calls]
    return softcaps if any(softcap is not None for softcap in softcaps) else []


def _report_document(report: VerificationReport) -> dict[str, Any]:
    for check in report.checks:
        if any(np.isinf(table).any() for table in check.tolerances.values()):
            raise BundleError(
                f"The tolerance of {check.name} is not finite, so a bundle cannot record the verdict. Use another text."
            )
    return {
        "passed": report.passed,
        "checks": [
            {
                "name": check.name,
                "unit": check.unit,
                "reason": check.reason,
                "differences": _tables(check, check.differences),
                "tolerances": _tables(check, check.tolerances),
            }
            for check in report.checks
        ],
        "not_compared": dict(report.not_compared),
    }


def _json(document: Mapping[str, Any]) -> bytes:
    """The document with each part on a line of its own."""
    parts = (
        f"{json.dumps(name)}: {json.dumps(part, ensure_ascii=False, allow_nan=False)}"
        for name, part in document.items()
    )
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode()


def _tokens_document(tokens: Tokens) -> dict[str, Any]:
    return {
        "text": tokens.text,
        "text_pair": tokens.text_pair,
        "ids": tokens.ids.tolist(),
        "labels": list(tokens.labels),
        "pieces": list(tokens.pieces),
        "is_special": tokens.is_special.tolist(),
        "segment": tokens.segment.tolist(),
        "word": tokens.word.tolist(),
        "unknown_id": None,  # read by attnviz before `unknown` was written
        "unknown": list(tokens.unknown),
        "language": tokens.language,
        "template": tokens.template,
        "in_text": list(tokens.in_text),
        "n_cut": list(tokens.n_cut),
        "n_unread": list(tokens.n_unread),
        "masked": {str(position): label for position, label in tokens.masked.items()},
    }


def _attention_document(calls: Sequence[LayerAttention]) -> dict[str, Any]:
    """The scale and the softcap of each layer, and which of the masks and biases it has; layers share them."""
    softcaps = _softcaps(calls)
    return {
        "scale": [call.scale for call in calls],
        **({"softcap": softcaps} if softcaps else {}),
        "allowed": _numbering([call.allowed for call in calls])[1],
        "bias": _numbering([call.bias for call in calls])[1],
    }


def _numbering(matrices: Sequence[np.ndarray | None]) -> tuple[list[np.ndarray], list[int | None]]:
    """The distinct matrices, and for each layer the number of its matrix."""
    distinct: list[np.ndarray] = []
    numbers: list[int | None] = []
    for matrix in matrices:
        if matrix is None:
            numbers.append(None)
            continue
        same = (at for at, other in enumerate(distinct) if other is matrix or np.array_equal(other, matrix))
        number = next(same, len(distinct))
        if number == len(distinct):
            distinct.append(matrix)
        numbers.append(number)
    return distinct, numbers


def _arrays(bundle: Bundle) -> dict[str, np.ndarray]:
    """Every array of the NPZ by name, ``encoder.query`` [layer head query d_head] and so on."""
    trace = bundle.trace
    arrays = {
        "weights": trace.weights(bundle.layer, bundle.head, bundle.kind),
        "last_hidden_state": trace.last_hidden_state,
    }
    for kind, calls in trace.layers.items():
        for name in ("query", "key", "value"):
            arrays |= _together(f"{kind}.{name}", [getattr(call, name) for call in calls])
        if "norms" in trace.measures(kind):
            products = [trace.value_products(layer, kind) for layer in range(len(calls))]
            arrays |= _together(f"{kind}.value_products", products)
        for name in ("allowed", "bias"):
            distinct, _ = _numbering([getattr(call, name) for call in calls])
            if (
                len({len(array) for array in distinct} - {1}) < 2
            ):  # each has one matrix for all heads, or one per head of equally many
                distinct = list(np.broadcast_arrays(*distinct))
            arrays |= _together(f"{kind}.{name}", distinct)
    arrays |= changes_arrays(trace.interventions)
    check_sizes(trace)
    for name, array in arrays.items():
        check_numbers(name, array)
    check_changes(trace)
    return arrays


def _together(name: str, of_layers: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of several layers as one array; or, if their shapes differ, as one each, numbered."""
    if len({of_layer.shape for of_layer in of_layers}) == 1:
        return {name: np.stack(of_layers)}
    return {f"{name}.{number}": array for number, array in enumerate(of_layers)}


def _npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    return file.getvalue()


def _tables(check: Check, tables: Mapping[Kind, np.ndarray]) -> dict[Kind, list[list[float | None]]]:
    """By kind, the numbers of each layer's own heads for JSON, which has no NaN."""
    return {
        kind: [
            [float(value) if np.isfinite(value) else None for value in row[there].tolist()]
            for row, there in zip(table, check.compared(kind), strict=True)
        ]
        for kind, table in tables.items()
    }
