"""What the viewer asks its host for beside the document, answered from a trace. The questions are those of docs/viewer.md."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from attnviz.figures.heatmap import Shown
from attnviz.records import Kind
from attnviz.viewer.data import head_bytes, measure_bytes, measures
from attnviz.viewer.pair import pair_data
from attnviz.viewer.tiles import MOST_ASKED, Overview, Pool, lines, tiles

if TYPE_CHECKING:
    from attnviz.model.trace import Trace


def answer(
    trace: "Trace",
    kind: Kind,
    what: str,
    query: Mapping[str, Any],
    overview: Callable[[int, int, Shown, Pool], Overview],
) -> tuple[dict[str, Any], bytes]:
    """The answer as JSON, and the bytes beside it.

    Args:
        overview: what `attnviz.viewer.tiles.overview` gives of a layer, head, measure and pool of this trace, remembered.

    Raises:
        SelectionError: what was asked for is not there.
        KeyError, OverflowError, TypeError, ValueError: a question that no viewer asks.
    """
    if what == "measure":
        cells, content = measure_bytes(trace, kind, query["measure"])
        return {"cells": msgspec.to_builtins(cells)}, content
    layer, head = int(query["layer"]), int(query["head"])
    if what == "head":
        cells, content = head_bytes(trace, kind, layer, head, query["measure"])
        return {"cells": msgspec.to_builtins(cells)}, content
    if what == "pair":
        pair = pair_data(trace, layer, head, int(query["query"]), int(query["key"]), kind=kind)
        return {"pair": msgspec.to_builtins(pair)}, b""
    measure, pool = query["measure"], query["pool"]
    if measure not in measures(trace, kind) or pool not in get_args(Pool) or what not in ("tiles", "lines"):
        raise ValueError(what)
    at = [(int(row), int(column)) for row, column in query.get("at", ())]
    if len(at) > MOST_ASKED:
        raise ValueError(len(at))
    seen = overview(layer, head, measure, pool)
    if what == "tiles":
        said, content = tiles(trace, seen, int(query["level"]), at)
        return {"tiles": msgspec.to_builtins(said)}, content
    line, content = lines(trace, seen, int(query["query"]), int(query["key"]))
    return {"lines": msgspec.to_builtins(line)}, content
