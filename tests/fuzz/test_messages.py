"""Any order of websocket messages: clicks, forged values, stops, other pages, bytes that are no message, one before the last is
answered. No run ends in an exception, and the server answers the next visitor."""

import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from tests.browser.conftest import running_server
from tests.fuzz.strategies import links, randoms
from tests.server.test_forged_messages import LEFT_ALONE, forged, still_answers
from tests.visitor import Visitor, run, visit
from ui.rooms import PAGES

pytestmark = pytest.mark.nightly

STEPS = st.lists(
    st.sampled_from(
        (
            "click",
            "click",
            "forge",
            "forge",
            "type",
            "link",
            "page",
            "stop",
            "heartbeat",
            "clear",
            "files",
            "block",
            "wait",
        )
    )
    | st.binary(min_size=1, max_size=40)
    | st.text(max_size=9).map(lambda text: f"frame of text: {text}"),
    min_size=1,
    max_size=12,
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log = tmp_path_factory.mktemp("fuzz") / "log.txt"
    with running_server(log) as address:
        yield address
    written = log.read_text()
    assert "Traceback" not in written, written[-20_000:]


async def step(visitor: Visitor, what: str | bytes, at_random: random.Random, params: dict[str, str]) -> None:
    """Sends one message, without waiting for what comes of it."""
    widgets = [widget for key, widget in visitor.widgets.items() if not key.startswith(LEFT_ALONE)]
    message = BackMsg()
    match what:
        case "click":
            await visitor.send(WidgetState(id=at_random.choice(widgets).id, trigger_value=True))
            return
        case "forge":
            await visitor.send(forged(at_random.choice(widgets).id, at_random))
            return
        case "type":
            await visitor.type("field_text", at_random.choice(("", "the door", "\0", "a " * 600)))
            return
        case "link":
            visitor.params = dict(params)
            await visitor.send()
            return
        case "page":
            visitor.page, visitor.page_hash = at_random.choice(PAGES).address, ""
            await visitor.send()
            return
        case "block":
            await visitor.send(block="0" * 32, is_auto=at_random.choice((True, False)))
            return
        case "wait":
            await visitor.settle()
            return
        case "stop":
            message.stop_script = True
        case "heartbeat":
            message.app_heartbeat = True
        case "clear":
            message.clear_cache = True
        case "files":
            message.file_urls_request.request_id = "1"
            message.file_urls_request.file_names.append("../../etc/passwd")
        case bytes() | str():
            await visitor.send_raw(what)
            return
    await visitor.send_raw(message.SerializeToString())


@given(page=st.sampled_from(PAGES), steps=STEPS, at_random=randoms, params=links)
def test_in_any_order(page, steps, at_random, params, server, tally):
    async def attack() -> None:
        async with visit(server, page.address) as visitor:
            await visitor.settle()
            for what in steps:
                await step(visitor, what, at_random, params)
                tally("websocket messages")
            n_run = visitor.n_run
            await visitor.send()
            await visitor.until(lambda: visitor.n_run > n_run)
            await visitor.settle()
            assert visitor.exceptions == []
        async with visit(server) as other:
            await other.settle()
            await still_answers(other)

    run(attack())
