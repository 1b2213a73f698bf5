"""What is let in before Streamlit sees it."""

import asyncio

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg

from ui.work import gate
from ui.work.gate import Gate


def message(**fields: object) -> bytes:
    return BackMsg(**fields).SerializeToString()


def through(*sent: dict, scope: dict | None = None) -> tuple[list, list]:
    """What the server behind the gate received of what was sent, and what was answered."""
    received, answered, left = [], [], list(sent)

    async def server(scope, receive, send):
        while (one := await receive())["type"] != "websocket.disconnect":
            received.append(one)

    async def receive():
        return left.pop(0) if left else {"type": "websocket.disconnect"}

    async def send(one):
        answered.append(one)

    asyncio.run(Gate(server)(scope or {"type": "websocket", "path": "/_stcore/stream"}, receive, send))
    return received, answered


def frame(data: bytes) -> dict:
    return {"type": "websocket.receive", "bytes": data}


def test_a_click_is_passed_on_and_what_would_empty_all_caches_is_not():
    click = frame(message(rerun_script={"query_string": "layer=3"}))
    clear = frame(message(clear_cache=True))
    run_on_save = frame(message(set_run_on_save=True))
    received, _ = through(clear, click, run_on_save, clear)
    assert received == [click]


@pytest.mark.parametrize("data", [b"\xff\xff\xff", b""])
def test_what_is_no_message_is_streamlit_s_to_refuse(data):
    received, _ = through(frame(data))
    assert received == ([frame(data)] if data else [])


def test_a_page_counts_while_it_is_open():
    assert gate.n_open() == 0
    counted = []

    async def server(scope, receive, send):
        counted.append(gate.n_open())
        raise ConnectionError

    with pytest.raises(ConnectionError):
        asyncio.run(Gate(server)({"type": "websocket", "path": "/x"}, None, None))
    assert (counted, gate.n_open()) == ([1], 0)


def test_a_full_server_asks_to_try_again_later(monkeypatch):
    monkeypatch.setattr(gate, "PEOPLE", 0)
    assert gate.is_full()
    received, answered = through({"type": "websocket.connect"})
    assert received == []
    assert answered == [{"type": "websocket.close", "code": 1013, "reason": "full"}]


def test_figures_of_the_server_are_not_for_visitors():
    _, answered = through(scope={"type": "http", "path": "/base/_stcore/metrics"})
    assert answered[0]["status"] == 404
