"""A view as a bundle holds it, and the files in a bundle, for tests of writing, reading and comparing bundles."""

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

import attnviz
from attnviz.bundle.bundle import Bundle
from attnviz.bundle.writing import NUMBERS, PROVENANCE
from attnviz.model.model import Model
from attnviz.model.trace import Trace
from attnviz.records import Axis, Kind, VerificationReport

EMBEDDED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of the weights of the bundled model."""
ROUNDING = 2.5e-5  # what it explains at scores of 20 or so


def bundle_of(model: Model, trace: Trace, *, kind: Kind | None = None, **changes: Any) -> Bundle:
    """Layer 1, head 1 of a trace with query 2 and key 1 picked, and its verification; all of it may be changed."""
    kind = kind or trace.kinds[0]
    made = Bundle(
        trace=trace,
        report=attnviz.verify(model, trace),
        kind=kind,
        layer=1,
        head=1,
        queries=Axis.of(trace.query_tokens(kind)),
        keys=Axis.of(trace.key_tokens(kind)),
        query=2,
        key=1,
        weights_sha256=model.weights_sha256,
    )
    return replace(made, **changes)


def files_of(packed: bytes) -> dict[str, bytes]:
    """What is in a zip, by file name."""
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed_again(files: Mapping[str, bytes], compression: int | None = None) -> bytes:
    """A zip of these files, compressed as a bundle's are unless it is said how; less of it, for the page takes longer than a test."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as target:
        for name, content in files.items():
            kind = zipfile.ZIP_STORED if name == NUMBERS else zipfile.ZIP_DEFLATED
            target.writestr(name, content, kind if compression is None else compression, compresslevel=1)
    return archive.getvalue()


def with_arrays(
    packed: bytes,
    change: Callable[[dict[str, np.ndarray]], object],
    save: Callable[..., object] = np.savez,
) -> bytes:
    """The bundle with changed numbers; ``change`` is called with the arrays by name."""
    files = files_of(packed)
    arrays = dict(np.load(io.BytesIO(files[NUMBERS])))
    change(arrays)
    file = io.BytesIO()
    save(file, **arrays)
    return packed_again(files | {NUMBERS: file.getvalue()})


def with_document(packed: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """The bundle with a changed provenance; ``change`` is called with the parsed JSON."""
    files = files_of(packed)
    document = json.loads(files[PROVENANCE])
    change(document)
    return packed_again(files | {PROVENANCE: json.dumps(document).encode()})


def failed(report: VerificationReport) -> VerificationReport:
    """The report with a weight of layer 2, head 5 that is not a number."""
    differences = report.weight_error.copy()
    differences[2, 5] = np.nan
    weights = replace(
        report.check("attention weights"),
        differences={"encoder": differences},
        tolerances={"encoder": np.full_like(differences, ROUNDING)},
    )
    return replace(
        report,
        checks=tuple(weights if check.name == "attention weights" else check for check in report.checks),
    )
