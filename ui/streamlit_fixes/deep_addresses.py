"""An address below a page's leads to the page that its last part names, so that none is a blank page.

Symptom: at an address of no file Streamlit answers with its own HTML, whose scripts are looked for below that address and are not
there: `/foo/bar`, `/attnviz/all_heads` and `/foo.txt` are white windows titled "Streamlit".
Version: 1.67.0. No upstream issue is known to us.
No longer needed when: without the routes of `app.py` tests/server/test_addresses.py passes.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

import streamlit as st
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import RedirectResponse

_FOLDER = Path(st.__file__).parent / "static"


def _any_of(names: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(names)))


_FILES = _any_of(path.name for path in _FOLDER.iterdir())
_ASSETS = _any_of(path.name for path in (_FOLDER / "static").iterdir())
_STREAMLITS = (
    rf"(?:.*/)?_stcore/|media/|component/|app/static/|auth/log(?:in|out)$|static/(?:{_ASSETS})(?:/|$)"
)
"""Beginnings of addresses that Streamlit answers itself: ``starlette_routes`` and ``starlette_auth_routes``. A page that looks
for its server asks for ``_stcore`` below any address."""


class _Name(StringConvertor):
    """An address of one part that is the name of no file of Streamlit's."""

    regex = rf"(?!(?:{_FILES})$)[^/]+"


class _Deep(StringConvertor):
    """An address of several parts that Streamlit does not answer."""

    regex = rf"(?!{_STREAMLITS})(?:[^/]*/)+[^/]+"


NAME, DEEP = "{page:name}", "{page:deep}"
"""Addresses in a route: one that may be a page's, and one that is no page's."""
register_url_convertor("name", _Name())
register_url_convertor("deep", _Deep())


async def to_last_part(request: Request) -> RedirectResponse:
    """Sends the browser to the last part of its address, beside the pages, with the same query.

    The new address is relative, so that it holds below any path of a server or a proxy.
    """
    page: str = request.path_params["page"]
    path, n_folder = request.scope["path"], request.scope["raw_path"].count(b"/")
    n_above = path.removesuffix(page).count("/")
    up = "../" * (n_folder - n_above) or "./"
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(
        f"{up}{quote(page.rpartition('/')[2], safe='')}{query}", headers={"Cache-Control": "no-cache"}
    )
