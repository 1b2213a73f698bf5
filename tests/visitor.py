"""A visitor without a browser: speaks Streamlit's websocket protocol as the front end of 1.67 does.

It opens a page, clicks, types, and redraws the blocks that ask for it; it remembers what widgets there are and what it
sent, and notes what was never to happen. For load and for hostile messages; what a page looks like only a browser tells.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

from streamlit.components.v2.bidi_component.main import _make_trigger_id
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect

LONGEST_MESSAGE = 64 * 2**20
KEPT_RUNS = 2  # Streamlit's `global.maxCachedMessageAge`
LONG = 600.0  # seconds; a new process compiles UMAP, which takes minutes on a slow and busy machine

T = TypeVar("T")


def run(visits: Coroutine[Any, Any, T]) -> T:
    """What comes of visits, in a thread of their own: where a test before this one had a browser, a loop runs already."""
    with ThreadPoolExecutor(1) as apart:
        return apart.submit(asyncio.run, visits).result()


class Visitor:
    """One open page."""

    def __init__(self, socket: ClientConnection, path: str, params: Mapping[str, object]) -> None:
        self._socket = socket
        self.page = path
        self.params: dict[str, str] = {name: str(value) for name, value in params.items()}
        self.values: dict[str, WidgetState] = {}
        """By id, what the widgets hold that were changed; all are sent with every click, as a browser does."""
        self.widgets: dict[str, Any] = {}
        """By user's key, the newest message of a widget or component."""
        self.elements: dict[tuple[int, ...], Any] = {}
        """By place in the page, the newest element."""
        self.exceptions: list[str] = []
        self.n_byte = 0
        self.n_message = 0
        self.n_run = 0
        """Runs of the page or a block that have ended."""
        self.running = False
        self.gone = False
        """Whether the socket is closed."""
        self.drawn: dict[str, float] = {}
        """By key of a component, when it was last sent."""
        self.last_ended = 0.0
        self.page_hash = ""
        self.session = ""
        """Streamlit's name of this visit."""
        self._block_of: dict[str, str] = {}  # widget -> the block that is redrawn for it; empty for the page
        self._kept: dict[str, tuple[ForwardMsg, int]] = {}  # hash -> message, and the run that last had it
        self._n_ended = 0
        self._blocks: list[str] = []  # that are being redrawn; none where the page is
        self._timers: dict[str, asyncio.Task[None]] = {}
        self._news = asyncio.Condition()

    async def listen(self) -> None:
        """Takes in what the server sends, until the socket is closed."""
        try:
            async for data in self._socket:
                assert isinstance(data, bytes)
                self.n_byte += len(data)
                self.n_message += 1
                self._take(self._whole(ForwardMsg.FromString(data)))
                async with self._news:
                    self._news.notify_all()
        finally:
            self.gone = True
            async with self._news:
                self._news.notify_all()

    def _whole(self, message: ForwardMsg) -> ForwardMsg:
        """The message, or the kept one that it names by its hash, in the place that it says."""
        if message.WhichOneof("type") == "ref_hash":
            kept = ForwardMsg()
            kept.CopyFrom(self._kept[message.ref_hash][0])
            kept.metadata.CopyFrom(message.metadata)
            self._kept[kept.hash] = kept, self._n_ended
            return kept
        if message.metadata.cacheable:
            self._kept[message.hash] = message, self._n_ended
        return message

    def _end_run(self) -> None:
        """Forgets messages that none of the last runs had; after a block's run those of the block, as the front end does."""
        self._n_ended += 1
        for name, (message, at) in list(self._kept.items()):
            is_of_run = not self._blocks or message.delta.fragment_id in self._blocks
            if is_of_run and self._n_ended - at > KEPT_RUNS:
                del self._kept[name]

    def _take(self, message: ForwardMsg) -> None:
        match message.WhichOneof("type"):
            case "navigation":  # the page that is really shown; "new_session" names the first screen
                self.page_hash = message.navigation.page_script_hash
            case "new_session":
                self.session = message.new_session.initialize.session_id or self.session
                self.running = True
                self._blocks = list(message.metadata.run.fragment_ids)
                if not self._blocks:
                    self._stop_timers()
            case "delta":
                self._draw(message)
            case "script_finished" if message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                self.running = False
                self.n_run += 1
                self._end_run()
                self.last_ended = time.perf_counter()
            case "page_info_changed":
                query = message.page_info_changed.query_string
                self.params = dict(parse_qsl(query, keep_blank_values=True))
            case "auto_rerun":
                self._start_timer(message.auto_rerun.fragment_id, message.auto_rerun.interval)
            case "stop_auto_rerun":
                for fragment_id in message.stop_auto_rerun.fragment_ids:
                    self._end_timer(fragment_id)

    def _draw(self, message: ForwardMsg) -> None:
        place = tuple(message.metadata.delta_path)
        delta = message.delta
        if delta.WhichOneof("type") != "new_element":
            return
        element = delta.new_element
        kind = element.WhichOneof("type")
        drawn = getattr(element, kind)
        self.elements[place] = element
        if kind == "exception":
            self.exceptions.append(f"{drawn.type}: {drawn.message}")
        name = getattr(drawn, "id", "")
        if name:
            self.widgets[_key(name)] = drawn
            self._block_of[name] = delta.fragment_id
            if kind == "bidi_component":
                self._block_of[events_of(name)] = delta.fragment_id
        if kind == "bidi_component":
            self.drawn[_key(drawn.id)] = time.perf_counter()

    async def send(self, *changed: WidgetState, block: str = "", is_auto: bool = False) -> None:
        """Asks for a run, with what has changed."""
        message = BackMsg()
        state = message.rerun_script
        state.query_string = urlencode(self.params)
        state.page_script_hash = self.page_hash
        if not self.page_hash:
            state.page_name = self.page
        state.fragment_id = block or next((self._block_of.get(value.id, "") for value in changed), "")
        state.cached_message_hashes.extend(self._kept)
        state.is_auto_rerun = is_auto
        state.context_info.locale = "en"
        state.context_info.timezone = "UTC"
        state.widget_states.widgets.extend(self.values.values())
        for value in changed:
            if value.WhichOneof("value") not in (
                "trigger_value",
                "json_trigger_value",
                "string_trigger_value",
            ):
                self.values[value.id] = value
            for before in [sent for sent in state.widget_states.widgets if sent.id == value.id]:
                state.widget_states.widgets.remove(before)
            state.widget_states.widgets.append(value)
        await self.send_raw(message.SerializeToString())

    async def send_raw(self, data: bytes | str) -> None:
        """Sends any bytes, or a frame of text."""
        await self._socket.send(data)

    async def click(self, key: str) -> None:
        """Clicks a button."""
        await self.send(WidgetState(id=self.widgets[key].id, trigger_value=True))

    async def type(self, key: str, text: str) -> None:
        """Types into a field and leaves it."""
        await self.send(WidgetState(id=self.widgets[key].id, string_value=text))

    async def set_number(self, key: str, number: int) -> None:
        """Enters a number."""
        await self.send(WidgetState(id=self.widgets[key].id, int_value=number))

    async def trigger(self, key: str, name: str, value: object) -> None:
        """What a component sends, as `setTriggerValue` does."""
        events = json.dumps([{"event": name, "value": value}])
        await self.send(WidgetState(id=events_of(self.widgets[key].id), json_trigger_value=events))

    def told(self, key: str) -> Any:
        """The newest JSON that a component of the app was sent."""
        return json.loads(self.widgets[key].bytes.partition(b"\n")[0])

    async def until(self, is_so: Callable[[], bool], seconds: float = LONG) -> None:
        """Waits until something holds."""
        async with self._news:
            await asyncio.wait_for(self._news.wait_for(lambda: self.gone or is_so()), seconds)
        if self.gone:
            raise ConnectionError("The server has closed the socket.")

    def is_awaited(self) -> bool:
        """Whether a block still asks to be redrawn, which it does while something is on its way."""
        return bool(self._timers)

    async def settle(self, seconds: float = LONG) -> None:
        """Waits until nothing runs and nothing is on its way."""
        await self.until(lambda: self.n_run > 0 and not self.running and not self.is_awaited(), seconds)

    def _start_timer(self, block: str, interval: float) -> None:
        self._end_timer(block)

        async def redraw() -> None:
            while True:
                await asyncio.sleep(interval)
                await self.send(block=block, is_auto=True)

        self._timers[block] = asyncio.create_task(redraw())

    def _end_timer(self, block: str) -> None:
        if block in self._timers:
            self._timers.pop(block).cancel()

    def _stop_timers(self) -> None:
        for block in list(self._timers):
            self._end_timer(block)

    def leave(self) -> None:
        """Stops what would still send."""
        self._stop_timers()


def events_of(name: str) -> str:
    """The id of what a component of this id sends with `setTriggerValue`."""
    return _make_trigger_id(name, "events")


def _key(name: str) -> str:
    """The key that a page gave to an element: ``$$ID-<hash>-<key>``."""
    parts = name.split("-", 2)
    return parts[2] if len(parts) == 3 else name


@asynccontextmanager
async def visit(server: str, path: str = "", **params: object) -> AsyncIterator[Visitor]:
    """A visitor who opens a page, and leaves it in the end."""
    parts = urlsplit(server)
    address = f"ws://{parts.netloc}{parts.path.rstrip('/')}/_stcore/stream"
    async with connect(
        address,
        subprotocols=["streamlit", "", ""][:1],
        max_size=LONGEST_MESSAGE,
        proxy=None,
        ping_interval=None,
    ) as socket:
        visitor = Visitor(socket, path, params)
        listening = asyncio.create_task(visitor.listen())
        try:
            await visitor.send()
            yield visitor
        finally:
            visitor.leave()
            listening.cancel()
            with suppress(asyncio.CancelledError):
                await listening
