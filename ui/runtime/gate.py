"""What is let through to Streamlit: how many pages, which messages, and files as long as there is room.

A page is one websocket.
"""

import os
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from itertools import count
from typing import Any

from starlette.websockets import WebSocketDisconnected

from ui.limits import PEOPLE, UPLOAD_MB
from ui.runtime import events, uploads
from ui.streamlit_fixes.sent_values import read_message

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Server = Callable[[Message, Receive, Send], Awaitable[None]]

PASSED_ON = frozenset(
    (
        "stop_script",
        "app_heartbeat",
        "file_urls_request",
        "backend_operation_request",
        "load_git_info",
    )
)
"""Browser messages that affect that visitor alone, besides "rerun_script", which asks for a page. Not "clear_cache", which
empties all of Streamlit's caches for everybody, and no message meant for development."""
LONGEST_QUERY = 200_000
"""Characters of a query string; the longest link of attnviz has 60,000."""
MOST_WIDGETS = 2000
"""Widget values in a message; no page has 300."""
CLOSED = ("/_stcore/metrics",)
"""Addresses of Streamlit's that are not for visitors."""
MOST_BYTES = UPLOAD_MB * 2**20
"""Largest uploaded file, as Streamlit counts megabytes."""
UPLOADS = "/_stcore/upload_file/"
"""Where Streamlit takes files."""
FULL_CODE = 1013  # RFC 6455's registry: try again later
FULL = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>attnviz is full</title>
<meta name="viewport" content="width=device-width"><meta http-equiv="refresh" content="60">
<style>body { font: 18px/1.5 system-ui, sans-serif; max-width: 32em; margin: 20vh auto; padding: 0 1em;
color: #1f2430; background: #fff } @media (prefers-color-scheme: dark) { body { color: #f1f3f7; background: #0e1117 } }
</style></head><body><h1>attnviz is full</h1><p>As many people are using it as this server takes. Try again in a minute;
this page does so by itself, and keeps the address that you came with.</p></body></html>"""

VISITOR = "x-attnviz-visitor"
"""Header that the gate adds to a page's websocket, by which the log names its visitor."""
_numbers = count(1)
_open: set[str] = set()


def n_open() -> int:
    """Pages that are open."""
    return len(_open)


def is_full() -> bool:
    """Whether no more pages can be opened."""
    return len(_open) >= PEOPLE


def refusal() -> str | None:
    """The HTML that says the server is full; None as long as there is room."""
    if not is_full():
        return None
    events.refused("full", open=n_open())
    return FULL


class Gate:
    """The ASGI middleware in front of the server."""

    def __init__(self, app: Server) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Passes a request on, or answers it."""
        path = scope.get("path", "")
        if scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
        elif scope["type"] == "http" and path.endswith(CLOSED):
            await _answer(send, 404)
        elif scope["type"] == "http" and scope.get("method") == "PUT" and UPLOADS in path:
            await self._upload(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _upload(self, scope: Message, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        length = headers.get(b"content-length", b"")
        if not length.isdigit() or len(length) > 12 or b"transfer-encoding" in headers:
            await _answer(send, 411)  # browsers say how long a file is
            return
        if int(length) > MOST_BYTES:  # the uploaders of a page refuse such a file themselves
            await _answer(send, 413)
            return
        with uploads.arriving(int(length)) as has_room:
            if has_room:
                await self._app(scope, receive, send)
            else:
                while (await receive()).get("more_body"):  # a browser takes an answer only after all is sent
                    pass
                await _answer(send, 503, (b"retry-after", b"60"))

    async def _websocket(self, scope: Message, receive: Receive, send: Send) -> None:
        if is_full():
            await receive()
            await send({"type": "websocket.close", "code": FULL_CODE, "reason": "full"})
            events.refused("full", open=n_open())
            return
        visitor, since = f"{os.getpid()}-{next(_numbers)}", time.monotonic()
        headers = [pair for pair in scope.get("headers", ()) if pair[0] != VISITOR.encode()]
        scope["headers"] = [*headers, (VISITOR.encode(), visitor.encode())]
        _open.add(visitor)
        events.visitor_came(visitor, n_open())

        async def passed_on() -> Message:
            while True:
                message = await receive()
                if message["type"] != "websocket.receive" or _is_passed_on(message.get("bytes")):
                    return message

        try:
            # Streamlit 1.67 closes the socket of a browser that left while it was still connecting, which starlette refuses.
            with suppress(WebSocketDisconnected):
                await self._app(scope, passed_on, send)
        finally:
            _open.discard(visitor)
            events.visitor_left(visitor, n_open(), time.monotonic() - since)


async def _answer(send: Send, status: int, *headers: tuple[bytes, bytes]) -> None:
    """Sends an answer without a body."""
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})
    await send({"type": "http.response.body", "body": b""})


def _is_passed_on(data: bytes | None) -> bool:
    """Whether a browser sends such messages; for anything else Streamlit writes a traceback into the log."""
    message = read_message(data or b"")
    if message is None:
        return False
    kind = message.WhichOneof("type")
    if kind == "rerun_script":
        asked = message.rerun_script
        return len(asked.query_string) <= LONGEST_QUERY and len(asked.widget_states.widgets) <= MOST_WIDGETS
    return kind in PASSED_ON
