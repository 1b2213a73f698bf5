"""Components for what Streamlit and Plotly cannot do, each with its script and style beside it."""

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol

import streamlit as st
from starlette.requests import Request
from starlette.responses import Response

from attnviz import viewer
from attnviz.figures.theme import THEMES, ThemeName

_HERE = Path(__file__).parent
_NEWEST_MESSAGE = (
    _HERE.parent / "streamlit_fixes" / "newest_message.js"
)  # calls `show`, which each script defines
LOADER = (_HERE / "loader.js").read_text(encoding="utf-8")
"""Part of each page's first HTML, so that messages need not carry a component's script and style."""
ADDRESS = "components/{name}.{digest}.js"
"""Address of a component's script and style, relative to the server's. A changed script gets a new address."""
_scripts: dict[tuple[str, str], str] = {}


class Mount(Protocol):
    """Draws a component."""

    def __call__(
        self,
        *,
        key: str,
        data: Mapping[str, object] | None = None,
        attached: bytes = b"",
        height: int | Literal["content"] = "content",
        **on_change: Callable[[], None],
    ) -> None:
        """Sends a message to the component's script.

        Args:
            data: what it is to draw, as JSON.
            attached: bytes that it gets beside that; numbers in JSON are several times as long.
            height: px, or as high as its content is.
            on_change: ``on_NAME_change`` is called when the script sends something under this name.
        """


def register(name: str, *shared: str, is_apart: bool = True) -> Mount:
    """The mounting function of the component whose .js and .css, one or more, are in the folder of this name.

    Args:
        shared: names of the files in the folder ``shared`` that the component uses, or of the viewer's modules, without their
            endings.
        is_apart: whether it has its own shadow root, which neither the page's style nor other components can reach.
    """
    script = (
        f"{_joined(name, shared, 'js')}\nexport const style = {json.dumps(_joined(name, shared, 'css'))};"
    )
    digest = sha256(script.encode()).hexdigest()[:16]
    _scripts[name, digest] = script
    mounted: Any = st.components.v2.component(
        f"attnviz_{name}",
        html=f'<div class="{name}"></div>',
        # Streamlit takes a text of one line for the path of a file.
        js=f'export default document.attnvizComponent(\n"{ADDRESS.format(name=name, digest=digest)}");',
        isolate_styles=is_apart,
    )

    def mount(
        *,
        key: str,
        data: Mapping[str, object] | None = None,
        attached: bytes = b"",
        height: int | Literal["content"] = "content",
        **on_change: Callable[[], None],
    ) -> None:
        # Bytes Streamlit hands on as they are; in anything else it looks for tables, and writes it as JSON twice.
        told = (
            None if data is None else b"\n".join([json.dumps(data, separators=(",", ":")).encode(), attached])
        )
        mounted(key=key, data=told, height=height, **on_change)

    return mount


def script_of(request: Request) -> Response:
    """Answers a request for a component's script, which browsers cache; 404 if it does not exist, or no longer does."""
    name, digest = request.path_params["name"], request.path_params["digest"]
    if name.isidentifier() and (_HERE / name / "__init__.py").is_file():
        import_module(f"{__name__}.{name}")  # drawn by another process of the server
    script = _scripts.get((name, digest))
    if script is None:
        return Response(status_code=404)
    keeps = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(script, media_type="text/javascript", headers=keeps)


def colours(theme: ThemeName, *names: str) -> dict[str, str]:
    """The theme's colours with these names, for a script and its style."""
    return {name: getattr(THEMES[theme], name) for name in names}


def _joined(name: str, shared: tuple[str, ...], ending: str) -> str:
    """The files in one text, since a script that Streamlit takes as text cannot import others."""
    texts = []
    for each in shared:
        file = _HERE / "shared" / f"{each}.{ending}"
        if file.exists():
            texts.append(file.read_text(encoding="utf-8"))
        else:
            texts.append(viewer.joined(each) if ending == "js" else viewer.style(each))
    own = [*sorted((_HERE / name).glob(f"*.{ending}")), *([_NEWEST_MESSAGE] if ending == "js" else [])]
    return "\n".join([*filter(None, texts), *(file.read_text(encoding="utf-8") for file in own)])
