"""The viewer as a widget of Jupyter, VS Code, Colab and marimo, which tells Python what is selected.

It needs anywidget, which `pip install "attnviz[notebook]"` brings; `attnviz.Trace.show` shows a page where that is missing.
"""

import sys
from base64 import b64encode
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, cast

import anywidget
import msgspec
import traitlets

from attnviz.errors import AttnvizError, SelectionError
from attnviz.records import Kind, check_index
from attnviz.viewer import SCRIPTS, joined, style
from attnviz.viewer.answers import answer
from attnviz.viewer.data import stage_data
from attnviz.viewer.held import Question, noted, selection_of
from attnviz.viewer.page import Look, framed, own_file, stage_page
from attnviz.viewer.tiles import overview

_OVERVIEWS = 8
"""Heads of a long text whose overviews are kept, some 4 MB each."""

if TYPE_CHECKING:
    from attnviz.model.trace import Trace


class StageWidget(anywidget.AnyWidget):
    """The stage of a trace. `selection` can be read, set in part, and observed.

    >>> import attnviz
    >>> trace = attnviz.load_model("all-MiniLM-L6-v2").trace("I was watching the door")
    >>> stage = trace.show(layer=3, head=1)
    >>> stage.selection = {"layer": 4, "head": 7}
    >>> stage.selection["layer"], stage.selection["fill"]
    (4, 'matrix')
    """

    _esm = joined(*SCRIPTS) + own_file("widget.js")
    _css = style() + own_file("widget.css")

    document = traitlets.Dict().tag(sync=True)
    """What docs/viewer.md calls the document."""
    cells = traitlets.Bytes().tag(sync=True)
    cells_base64 = traitlets.Unicode().tag(sync=True)
    """The cells where a notebook passes no bytes on, as Colab's; empty elsewhere."""
    selection = traitlets.Dict().tag(sync=True)
    """What is selected, by the names of docs/viewer.md: `layer`, `head`, `query`, `key` and the options."""
    theme = traitlets.Enum(["auto", "light", "dark"], "auto").tag(sync=True)
    """"auto" is the notebook's own."""

    def __init__(
        self,
        trace: "Trace",
        *,
        layer: int = 0,
        head: int = 0,
        kind: Kind | None = None,
        query: int | None = None,
        key: int | None = None,
        theme: Look = "auto",
    ) -> None:
        """As `attnviz.Trace.show`; raises SelectionError for what the trace does not have."""
        self._trace, self._kind = trace, kind or trace.kinds[0]
        selection = selection_of(trace, layer, head, kind, query=query, key=key)
        data, cells = stage_data(trace, self._kind, heads=[(layer, head)])
        self._overview = lru_cache(_OVERVIEWS)(partial(overview, trace, self._kind))
        self._asked: list[Question] = []
        self._needs_text = "google.colab" in sys.modules
        packed = {"cells_base64": b64encode(cells).decode()} if self._needs_text else {"cells": cells}
        super().__init__(document=msgspec.to_builtins(data), selection=selection, theme=theme, **packed)
        self.on_msg(self._answer)

    @traitlets.validate("selection")
    def _whole_selection(self, proposal: dict[str, Any]) -> dict[str, Any]:
        """What is not named stays; another query looks at its strongest key."""
        asked = dict(proposal["value"])
        unknown = asked.keys() - self.selection.keys() if self.selection else ()
        if unknown:
            known, others = (", ".join(sorted(map(str, names))) for names in (self.selection, unknown))
            raise SelectionError(f"The selection was given {others}; it has {known}. Name one of those.")
        if "query" in asked and "key" not in asked:
            asked["key"] = None
        merged = {**self.selection, **asked}
        self._trace.head(merged["layer"], merged["head"], self._kind)  # raises where there is none
        for name, tokens in (
            ("query", self._trace.query_tokens(self._kind)),
            ("key", self._trace.key_tokens(self._kind)),
        ):
            if merged[name] is not None:
                check_index(name, merged[name], len(tokens), "this text")
        return merged

    def _answer(self, _: Any, question: dict[str, Any], __: Any) -> None:
        """Answers what the viewer asks; what cannot be answered is told in words."""
        buffers: list[bytes] = []
        answered: dict[str, Any] = {"id": question.get("id")}
        what, query = question["what"], question["query"]
        try:
            said, content = answer(self._trace, self._kind, what, query, self._overview)
            answered |= said
            self._asked = noted(self._asked, what, query)
            if self._needs_text:
                answered["base64"] = b64encode(content).decode()
            elif content:
                buffers = [content]
        except AttnvizError as error:
            answered["error"] = str(error)
        self.send(answered, buffers)

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The live widget, and for a notebook without a kernel the page."""
        shown = super()._repr_mimebundle_(**kwargs)
        if shown is None:
            return None
        data, metadata = shown
        chosen = dict(self.selection)
        place = {name: chosen.pop(name) for name in ("layer", "head", "query", "key")}
        page = stage_page(
            self._trace,
            kind=self._kind,
            theme=cast(Look, self.theme),
            choices=chosen,
            visited=self._asked,
            read=self._overview,
            **place,
        )
        return {**data, "text/html": framed(page)}, metadata
