"""The HTML that a browser gets before the first script run: Streamlit's own, with a page's title and text and our style.

Symptom: Streamlit's own HTML is empty, a white window for some seconds, and lacks our style. A style sent by the script
arrives after the first texts and moves them. And on any page but the first, the browser looks for the server below the
page's address, which gives two errors in the console.
Version: 1.67.0. No upstream issue is known to us.
No longer needed when: without the routes of `app.py` tests/browser/test_first_html.py passes.
"""

from collections.abc import Awaitable, Callable
from html import escape
from pathlib import Path

import streamlit as st
from starlette.requests import Request
from starlette.responses import HTMLResponse

_STREAMLITS = Path(st.__file__).parent / "static" / "index.html"
# Tells the front end where the server is: at the folder of the page's address.
_SERVER = (
    '<script>window.__streamlit = { BACKEND_BASE_URL: new URL(".", window.location.href).href }</script>'
)


def first_html(
    title: str, style: str, script: str, text: str, refusal: Callable[[], str | None]
) -> Callable[[Request], Awaitable[HTMLResponse]]:
    """Answers a request with the first HTML of the page of this title, drawn in this style (CSS), with this script.

    ``text`` is HTML that the browser draws at once, over what the scripts fill in later. ``refusal`` gives the HTML to
    send instead while no more visitors are admitted, and None otherwise.

    Raises ValueError if Streamlit's HTML is not as expected.
    """
    html = _STREAMLITS.read_text(encoding="utf-8")
    for old, new in (
        ("<title>Streamlit</title>", f"<title>{escape(title)}</title>{_SERVER}<script>{script}</script>"),
        (
            "</body>",
            f"<style>{style}</style>{text}</body>",
        ),  # after Streamlit's own style, which it thus overrides
    ):
        if html.count(old) != 1:
            raise ValueError(f"{_STREAMLITS} has no single {old}, so it cannot be given title and style.")
        html = html.replace(old, new)

    async def answer(_: Request) -> HTMLResponse:
        if refused := refusal():
            return HTMLResponse(
                refused, status_code=503, headers={"Retry-After": "60", "Cache-Control": "no-store"}
            )
        return HTMLResponse(html, headers={"Cache-Control": "no-cache"})

    return answer
