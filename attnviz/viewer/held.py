"""What a page or a widget holds of a trace: the selection, and the numbers as far as there is room."""

import zlib
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from attnviz.figures.heatmap import Shown
from attnviz.records import Kind, check_index
from attnviz.viewer.answers import answer
from attnviz.viewer.data import measure_bytes, measures, stage_data
from attnviz.viewer.tiles import Overview, Pool, overview, strongest_key, tile_places, tiling

if TYPE_CHECKING:
    from attnviz.model.trace import Trace

MOST_PACKED = 200_000
"""Other measures are in the page as long as all numbers take no more characters than this."""
MOST_VISITED = 8_000_000
"""Bytes of the places of a long text that were visited, beside its overview."""
_OVERVIEW_LEVELS = 2
"""The coarsest levels, which are in the page whole: five tiles."""
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
    queries, keys = trace.query_tokens(kind), trace.key_tokens(kind)
    trace.head(layer, head, kind)  # raises where there is none
    is_tiled = trace.is_long(kind)
    if query is None and is_tiled:
        far = overview(trace, kind or trace.kinds[0], layer, head, "weights").far
        query = far[0][0] if far else len(queries) - 1
    elif query is None:
        weights = trace.weights(layer, head, kind)
        apart = np.where(queries.is_special[:, None] | keys.is_special, -1.0, weights)
        query = int(np.unravel_index(apart.argmax(), apart.shape)[0])
    check_index("query", query, len(queries), "this text")
    if key is None and is_tiled:  # so that a page has its column
        key = strongest_key(trace, kind or trace.kinds[0], layer, head, query)
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
        "pool": "max",
        "clip": True,
        "seen": "",
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


Question = tuple[str, Mapping[str, Any]]
"""What the viewer asks, and its arguments."""
_OF_PLACES = ("layer", "head", "measure", "pool", "level", "at", "query", "key")
MOST_ASKED = 200


def noted(asked: Sequence[Question], what: str, query: Mapping[str, Any]) -> list[Question]:
    """The questions about places of a long text that were answered, with this one: the last `MOST_ASKED`, each once."""
    question = what, {name: query[name] for name in _OF_PLACES if name in query}
    if what not in ("tiles", "lines") or question in asked:
        return list(asked)
    return [*asked, question][-MOST_ASKED:]


def answers_of(
    trace: "Trace",
    kind: Kind | None,
    selection: Mapping[str, Any],
    visited: Sequence[Question],
    read: Callable[[int, int, Shown, Pool], Overview] | None,
) -> list[dict[str, Any]]:
    """What the page of a long text can answer: the overview of the selected head, its row and column, and what was visited last."""
    kind = kind or trace.kinds[0]
    place = {name: selection[name] for name in ("layer", "head", "measure", "pool")}
    levels = tiling(trace, kind).levels
    asked: list[Question] = [
        ("tiles", {**place, "level": level, "at": tile_places(trace, kind, level)})
        for level in range(max(0, levels - _OVERVIEW_LEVELS), levels)
    ]
    asked.append(("lines", {**place, "query": selection["query"], "key": selection["key"]}))
    held: list[dict[str, Any]] = []
    room, read = MOST_VISITED, read or cache(partial(overview, trace, kind))
    for what, query in [*asked, *reversed(visited)]:
        said, content = answer(trace, kind, what, query, read)
        room -= len(content)
        if room < 0:
            break
        held.append({"what": what, "query": query, **said, "base64": b64encode(content).decode()})
    return held


def _packed(cells: bytes) -> dict[str, Any]:
    """The bytes as text, deflated without a header where that is worth it."""
    packer = zlib.compressobj(9, wbits=-15)
    deflated = packer.compress(cells) + packer.flush()
    is_deflated = len(deflated) <= _WORTH * len(cells)
    return {"base64": b64encode(deflated if is_deflated else cells).decode(), "isDeflated": is_deflated}
