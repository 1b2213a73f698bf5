"""What Streamlit and Plotly cannot do themselves, each with its script and style beside it."""

import json
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.requests import Request
from starlette.responses import Response

from attnviz.figures.theme import THEMES, ThemeName

_HERE = Path(__file__).parent
_NEWEST_MESSAGE = (
    _HERE.parent / "streamlit_fixes" / "newest_message.js"
)  # calls `show`, which each script has
LOADER = (_HERE / "loader.js").read_text(encoding="utf-8")
"""What each page has from the first moment, so that a message need not carry a component's script and style."""
ADDRESS = "components/{name}.{digest}.js"
"""Where a component's script is, with its style; below the server's own address. Another script has another one."""
_scripts: dict[tuple[str, str], str] = {}


def register(name: str, *shared: str, is_apart: bool = True) -> Any:
    """The mounting command of the component whose .js and .css are in the folder of this name.

    Args:
        shared: files of the folder ``shared`` that its own rest on, without their endings.
        is_apart: whether it has a shadow of its own, whose insides neither the page's style nor other components see.
    """
    script = (
        f"{_joined(name, shared, 'js')}\nexport const style = {json.dumps(_joined(name, shared, 'css'))};"
    )
    digest = sha256(script.encode()).hexdigest()[:16]
    _scripts[name, digest] = script
    return st.components.v2.component(
        f"attnviz_{name}",
        html=f'<div class="{name}"></div>',
        # Streamlit takes a text of one line for the path of a file.
        js=f'export default document.attnvizComponent(\n"{ADDRESS.format(name=name, digest=digest)}");',
        isolate_styles=is_apart,
    )


def script_of(request: Request) -> Response:
    """Answers a request for a component's script, which a browser keeps; 404 for one that there is not, or not any more."""
    name, digest = request.path_params["name"], request.path_params["digest"]
    if name.isidentifier() and (_HERE / name / "__init__.py").is_file():
        import_module(f"{__name__}.{name}")  # which another process of the server has drawn
    script = _scripts.get((name, digest))
    if script is None:
        return Response(status_code=404)
    keeps = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(script, media_type="text/javascript", headers=keeps)


def colours(theme: ThemeName, *names: str) -> dict[str, str]:
    """Colours of these names, for a script and its style."""
    return {name: getattr(THEMES[theme], name) for name in names}


def _joined(name: str, shared: tuple[str, ...], ending: str) -> str:
    """One text, since a script that Streamlit takes as a text can import no other."""
    files = [_HERE / "shared" / f"{name}.{ending}" for name in shared]
    if ending == "css":
        files = [file for file in files if file.exists()]  # not all that is shared has a look
    files.append(_HERE / name / f"{name}.{ending}")
    if ending == "js":
        files.append(_NEWEST_MESSAGE)
    return "\n".join(file.read_text(encoding="utf-8") for file in files)
