"""What a page or a widget holds of a trace: the selection, and the numbers as far as there is room."""

import zlib
from base64 import b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from attnviz.records import Kind, check_index
from attnviz.viewer.data import MOST_BYTES, stage_data

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


def heads_that_fit(trace: "Trace", kind: Kind, selected: tuple[int, int]) -> list[tuple[int, int]] | None:
    """None for all heads; the selected one alone where all take too much."""
    n_cell = len(trace.query_tokens(kind)) * len(trace.key_tokens(kind))
    return None if 2 * n_cell * len(trace.heads(kind)) <= MOST_BYTES else [selected]


def held_of(
    trace: "Trace", kind: Kind | None, selection: Mapping[str, Any]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The document, and the numbers of each measure that is in the page, the weights first."""
    kind = kind or trace.kinds[0]
    heads = heads_that_fit(trace, kind, (selection["layer"], selection["head"]))
    document: dict[str, Any] = {}
    blocks: list[dict[str, Any]] = []
    room = MOST_PACKED
    asked = dict.fromkeys(("weights", selection["measure"], *trace.measures(kind)))
    for measure in asked:
        data, cells = stage_data(trace, kind, measure=measure, heads=heads)
        packed = _packed(cells)
        room -= len(packed["base64"])
        if room < 0 and measure not in ("weights", selection["measure"]):
            break
        document = document or msgspec.to_builtins(data)
        blocks.append({"cells": msgspec.to_builtins(data)["cells"], **packed})
    document["measures"] = [block["cells"]["measure"] for block in blocks]
    return document, blocks


def _packed(cells: bytes) -> dict[str, Any]:
    """The bytes as text, deflated without a header where that is worth it."""
    packer = zlib.compressobj(9, wbits=-15)
    deflated = packer.compress(cells) + packer.flush()
    is_deflated = len(deflated) <= _WORTH * len(cells)
    return {"base64": b64encode(deflated if is_deflated else cells).decode(), "isDeflated": is_deflated}
