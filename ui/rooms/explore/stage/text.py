"""What the stage is sent once for each text: the tokens, the weights of all heads, and what is known of each head by name."""

from collections.abc import Mapping
from dataclasses import MISSING
from hashlib import sha256
from typing import Any

import msgspec

from attnviz.errors import AttnvizError
from attnviz.records import Head
from attnviz.viewer.data import head_bytes, measure_bytes
from attnviz.viewer.pair import pair_data
from ui.choice.fields import written
from ui.choice.selection import PLACES
from ui.components.stage_answer import stage_answer
from ui.components.stage_data import stage_data
from ui.runtime import cache, head_cache
from ui.shell.head_names import known_names
from ui.shell.view import View
from ui.words.glossary import TERMS
from ui.words.head_names import attending, heads_said

_ORDER = {
    name: "" if place.usual is MISSING or name in ("layer", "head") else written(place.usual)
    for name, place in PLACES.items()
}
"""The fields of a link in its order, each with what it has where it is left out; layer and head never are."""


def text_name(view: View) -> str:
    """Names the text, model and kind of attention that the stage shows."""
    return sha256(repr((view.selection.source, view.kind)).encode()).hexdigest()[:16]


def text(view: View) -> None:
    """Sends the document of a text and the numbers that go with it."""
    staged = head_cache.staged(view.selection.source, view.kind, *view.selection.place)
    names = heads_said(
        view.trace.heads(view.kind), staged.labels, attending(view.key_tokens), known_names(view)
    )
    document = msgspec.structs.replace(
        staged.document,
        text=text_name(view),
        names=tuple(map(tuple, names)),
        mask_label=mask_label(view),
        special_means=TERMS["Special token"].means,
    )
    stage_data(document, staged.cells, order=_ORDER)


def mask_label(view: View) -> str | None:
    """The mask token as text; None where tokens cannot be masked."""
    return cache.mask_label(view.selection.source) if view.kind == "encoder" else None


def answers(view: View) -> None:
    """Answers what the viewer asks for beside the document."""

    def answer(what: str, query: dict[str, Any]) -> tuple[Mapping[str, object], bytes]:
        try:
            return _answer(view, what, query)
        except (AttnvizError, KeyError, TypeError, ValueError) as error:  # anybody can forge a question
            told = str(error) if isinstance(error, AttnvizError) else "This cannot be shown for this text."
            return {"error": told}, b""

    stage_answer(answer)


def _answer(view: View, what: str, query: dict[str, Any]) -> tuple[Mapping[str, object], bytes]:
    trace, kind = view.trace, view.kind
    if what == "measure":
        cells, content = measure_bytes(trace, kind, query["measure"])
        return {"cells": msgspec.to_builtins(cells)}, content
    place = Head(int(query["layer"]), int(query["head"]))
    if what == "head":
        cells, content = head_bytes(trace, kind, *place, query["measure"])
        return {"cells": msgspec.to_builtins(cells)}, content
    pair = pair_data(trace, *place, int(query["query"]), int(query["key"]), kind=kind)
    return {"pair": msgspec.to_builtins(pair)}, b""
