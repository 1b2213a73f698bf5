"""What a part of a page draws, without a server and a browser: its words, charts, lists and widgets as they are handed on.

The part is called as its page calls it; Streamlit and our components note what they are given in place of drawing it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace, TracebackType
from typing import Any

import pytest

from ui.choice import state, widgets

COMPONENTS = ("chart", "head_grid", "label_room", "link_to", "map_grid", "ranked_list", "token_strip")
WRITTEN = {"caption", "error", "latex", "markdown", "subheader"}
ALWAYS = {
    "data_editor": "hide_index",
    "dataframe": "hide_index",
    "segmented_control": "required",
    "spinner": "show_time",
}
"""What is given wherever it is drawn: rows are told apart by what stands in them, an option stays chosen, and waiting is timed."""


@dataclass(frozen=True)
class Call:
    """One thing that is drawn."""

    name: str
    given: tuple[Any, ...]
    named: dict[str, Any]


class Block:
    """A place on the page, any function of it, and what stands for a widget that nobody has touched."""

    def __init__(self, calls: list[Call], name: str = "") -> None:
        self._calls, self._name = calls, name

    def __getattr__(self, name: str) -> "Block":
        return Block(self._calls, name)

    def __call__(self, *given: Any, **named: Any) -> Any:
        assert self._name != "table" or named.get("hide_index", True)
        assert self._name != "selectbox" or named.get("is_list", True)
        if self._name in ALWAYS:
            assert named.get(ALWAYS[self._name]), f"{self._name} without {ALWAYS[self._name]}"
        self._calls.append(Call(self._name, given, named))
        if self._name != "columns":
            return Block(self._calls)
        n_column = given[0] if isinstance(given[0], int) else len(given[0])
        return [Block(self._calls) for _ in range(n_column)]

    def __bool__(self) -> bool:
        return False

    def __enter__(self) -> "Block":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class PartOfView(SimpleNamespace):
    """As much of a view as a part reads; the tokens are its trace's."""

    @property
    def query_tokens(self) -> Any:
        return self.trace.query_tokens(self.kind)

    @property
    def key_tokens(self) -> Any:
        return self.trace.key_tokens(self.kind)


@dataclass(kw_only=True)
class Drawn:
    """All that was drawn, in order, and what was changed by clicks."""

    modules: tuple[ModuleType, ...]
    """Those whose parts are drawn."""
    replaced: dict[str, Any]
    """What stands there for functions of the same name."""
    calls: list[Call] = field(default_factory=list)
    changes: list[dict[str, Any]] = field(default_factory=list)
    """What `ui.choice.state.change` was asked for; {} for `hold`, which changes nothing."""

    @contextmanager
    def noted(self) -> Iterator[None]:
        """What draws and what changes the selection notes what it is given."""
        block = Block(self.calls)
        with pytest.MonkeyPatch.context() as patch:
            for module in self.modules:
                patch.setattr(module, "st", block, raising=False)
                others = {name: getattr(block, name) for name in COMPONENTS} | {"tie": _tied} | self.replaced
                for name, other in others.items():
                    if hasattr(module, name):
                        patch.setattr(module, name, other)
            patch.setattr(widgets, "field", _field)
            patch.setattr(state, "change", lambda **changes: self.changes.append(changes))
            patch.setattr(state, "hold", lambda: self.changes.append({}))
            yield

    def click(self, take: Callable[..., None], *given: Any, **named: Any) -> dict[str, Any]:
        """Calls what a click calls; returns what it changes, or {}."""
        with self.noted():
            take(*given, **named)
        return self.changes[-1]

    @property
    def texts(self) -> list[str]:
        """Everything that is written in words or as a formula."""
        return [str(call.given[0]) for call in self.calls if call.name in WRITTEN]

    def all(self, name: str) -> list[Call]:
        """All that is drawn by one function of Streamlit or of ours."""
        return [call for call in self.calls if call.name == name]

    def keyed(self, key: str) -> dict[str, Any]:
        """What the chart, list or widget with this key is given."""
        [named] = [call.named for call in self.calls if call.named.get("key") == key]
        return named

    def chart(self, key: str) -> Any:
        """The figure with this key."""
        [figure] = [call.given[0] for call in self.all("chart") if call.named["key"] == key]
        return figure

    def rows(self, key: str) -> list[Any]:
        """Rows of the list with this key."""
        [rows] = [call.given[0] for call in self.all("ranked_list") if call.named["key"] == key]
        return list(rows)

    def field(self, name: str) -> dict[str, Any]:
        """What the widget of a field of the selection is given beside the field's own declaration."""
        [named] = [call.named for call in self.calls if call.named.get("field") == name]
        return named


def _field(name: str, *shown: Any, **told: Any) -> dict[str, Any]:
    return {"field": name, "shown": shown[:1], **told}


def _tied(
    key: str, value: Any, take: Callable[[Any], None], *, is_list: bool = False, **_: Any
) -> dict[str, Any]:
    return {"key": key, "tied": value, "take": take, "is_list": is_list}


@contextmanager
def drawn(*modules: ModuleType, **replaced: Any) -> Iterator[Drawn]:
    """Notes what the parts in these modules draw; ``replaced`` stands there for functions of the same name."""
    parts = Drawn(modules=modules, replaced=replaced)
    with parts.noted():
        yield parts
