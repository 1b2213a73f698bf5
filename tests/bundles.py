"""A view as a bundle holds it, for tests of writing, reading and comparing bundles."""

from dataclasses import replace
from typing import Any

import attnviz
from attnviz.bundle.writing import Bundle
from attnviz.model.loading import Model
from attnviz.model.trace import Trace
from attnviz.records import Axis, Kind


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
