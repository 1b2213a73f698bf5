"""What a page or a widget holds of a trace: the selection, and the numbers as far as there is room."""

import zlib
from base64 import b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from attnviz.records import Kind, check_index
from attnviz.viewer.data import measure_bytes, measures, stage_data

if TYPE_CHECKING:
    from attnviz.model.trace import Trace

MOST_PACKED = 200_000
"""Other measures are in the page as long as all numbers take no more characters than this."""
_WORTH = 0.8
"""Numbers are deflated where they then take at most this share: weights of an encoder take 0.95 of their room, those of a decoder,
which may see half the keys, half of it."""


def selection_of(
    trace: "Trace",
    layer: int,
    head: int,
    kind: Kind | None = None,
    *,
    query: int | None = None,
    key: int | None = None,
    choices: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The whole selection, by the names of docs/viewer.md; raises as `stage_page`."""
    weights = trace.weights(layer, head, kind)
    queries, keys = trace.query_tokens(kind), trace.key_tokens(kind)
    if query is None:
        apart = np.where(queries.is_special[:, None] | keys.is_special, -1.0, weights)
        query = int(np.unravel_index(apart.argmax(), apart.shape)[0])
    check_index("query", query, len(queries), "this text")
    if key is not None:
        check_index("key", key, len(keys), "this text")
    rest = {
        "fill": "matrix",
        "measure": "weights",
        "unit": "tokens",
        "special": "shown",
        "withoutFirst": False,
        "sentences": "all",
        "colour": "linear",
        "clip": True,
    }
    return {"layer": layer, "head": head, "query": query, "key": key, **rest, **(choices or {})}


def held_of(
    trace: "Trace", kind: Kind | None, selection: Mapping[str, Any]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The document, and the numbers of each measure that is in the page, the weights first."""
    kind = kind or trace.kinds[0]
    heads = [(selection["layer"], selection["head"])]
    data, cells = stage_data(trace, kind, heads=heads)
    document = msgspec.to_builtins(data)
    blocks = [{"cells": document["cells"], **_packed(cells)}]
    size = len(blocks[0]["base64"])
    room = MOST_PACKED - size
    for measure in dict.fromkeys((selection["measure"], *measures(trace, kind))):
        expected = size // min(document["counts"]) if measure == "rollout" else size
        if measure == "weights" or (measure != selection["measure"] and expected > room):
            continue
        its, cells = measure_bytes(trace, kind, measure, heads=heads)
        blocks.append({"cells": msgspec.to_builtins(its), **_packed(cells)})
        room -= expected
    document["measures"] = [block["cells"]["measure"] for block in blocks]
    return document, blocks


def _packed(cells: bytes) -> dict[str, Any]:
    """The bytes as text, deflated without a header where that is worth it."""
    packer = zlib.compressobj(9, wbits=-15)
    deflated = packer.compress(cells) + packer.flush()
    is_deflated = len(deflated) <= _WORTH * len(cells)
    return {"base64": b64encode(deflated if is_deflated else cells).decode(), "isDeflated": is_deflated}
