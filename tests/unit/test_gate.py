"""What is let in before Streamlit sees it."""

from types import SimpleNamespace

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg

from tests.visitor import run
from ui.runtime import gate, uploads
from ui.runtime.gate import Gate


def message(**fields: object) -> bytes:
    return BackMsg(**fields).SerializeToString()


def frame(data: bytes) -> dict:
    return {"type": "websocket.receive", "bytes": data}


def through(*sent: dict, scope: dict | None = None) -> tuple[list, list]:
    """What the server behind the gate received of what was sent, and what was answered."""
    received, answered, left = [], [], list(sent)

    async def server(scope, receive, send):
        while (event := await receive())["type"] != "websocket.disconnect":
            received.append(event)

    async def receive():
        return left.pop(0) if left else {"type": "websocket.disconnect"}

    async def send(event):
        answered.append(event)

    run(Gate(server)(scope or {"type": "websocket", "path": "/_stcore/stream"}, receive, send))
    return received, answered


def test_a_click_is_passed_on_and_what_would_empty_all_caches_is_not():
    click = frame(message(rerun_script={"query_string": "layer=3"}))
    clear = frame(message(clear_cache=True))
    run_on_save = frame(message(set_run_on_save=True))
    received, _ = through(clear, click, run_on_save, clear)
    assert received == [click]


@pytest.mark.parametrize(
    "sent", [frame(b"\xff\xff\xff"), frame(b""), {"type": "websocket.receive", "text": "hello"}]
)
def test_what_is_no_message_is_not_passed_on(sent):
    click = frame(message(rerun_script={}))
    received, answered = through(sent, click)
    assert received == [click]
    assert answered == []


def test_a_message_that_no_page_sends_is_not_passed_on():
    long_link = frame(message(rerun_script={"query_string": "a" * (gate.LONGEST_QUERY + 1)}))
    widgets = [{"id": str(number)} for number in range(gate.MOST_WIDGETS + 1)]
    many = frame(message(rerun_script={"widget_states": {"widgets": widgets}}))
    click = frame(
        message(
            rerun_script={"query_string": "a" * gate.LONGEST_QUERY, "widget_states": {"widgets": widgets[1:]}}
        )
    )
    received, _ = through(long_link, many, click)
    assert received == [click]


class TestUploads:
    """Accepted while there is room for all that visitors upload."""

    def put(self, length: int | None, *more: tuple[bytes, bytes]) -> dict:
        length_header = [] if length is None else [(b"content-length", str(length).encode())]
        path = "/base/_stcore/upload_file/session/file"
        return {"type": "http", "method": "PUT", "path": path, "headers": [*length_header, *more]}

    @pytest.fixture
    def asked(self, monkeypatch):
        """The response to an upload, and how many bytes were in transit when the server had it."""
        monkeypatch.setattr(uploads, "UPLOADS_MB", 7)
        monkeypatch.setattr(uploads, "_forget_who_has_left", lambda: None)
        monkeypatch.setattr(uploads, "_of_all", [])  # whatever a test before this one has left
        seen = []

        async def server(scope, receive, send):
            seen.append(uploads.n_bytes())
            await send({"type": "http.response.start", "status": 204, "headers": []})

        def ask(scope):
            answered = []

            async def send(event):
                answered.append(event)

            body = [{"more_body": True}, {"more_body": False}]

            async def receive():
                return body.pop(0)

            run(Gate(server)(scope, receive, send))
            return answered[0]["status"], dict(answered[0]["headers"])

        return ask, seen

    def test_one_that_fits_is_let_in_and_counts_meanwhile(self, asked):
        ask, seen = asked
        assert ask(self.put(7_000_000)) == (204, {})
        assert ask(self.put(3)) == (204, {})
        assert seen == [7_000_000, uploads.SMALLEST]
        assert uploads.n_bytes() == 0

    def test_one_that_is_larger_than_any_may_be_is_refused(self, asked, monkeypatch):
        ask, seen = asked
        monkeypatch.setattr(gate, "MOST_BYTES", 5_000_000)
        assert ask(self.put(5_000_001)) == (413, {})
        assert ask(self.put(5_000_000)) == (204, {})
        assert seen == [5_000_000]

    def test_one_that_does_not_is_asked_to_come_later(self, asked):
        ask, seen = asked
        assert ask(self.put(7_000_001)) == (503, {b"retry-after": b"60"})
        with uploads.arriving(6_500_000) as has_room:
            assert has_room
            assert ask(self.put(3))[0] == 503
        assert seen == []

    def test_bundles_that_are_open_count(self, asked, monkeypatch):
        ask, _ = asked
        monkeypatch.setattr(uploads, "_of_all", [SimpleNamespace(n_bytes=6_500_000)])
        assert ask(self.put(3))[0] == 503

    @pytest.mark.parametrize("length", [None, 3])
    def test_one_that_does_not_say_how_long_it_is_is_refused(self, asked, length):
        ask, seen = asked
        assert ask(self.put(length, (b"transfer-encoding", b"chunked")))[0] == 411
        assert seen == []


def test_a_page_counts_while_it_is_open():
    assert gate.n_open() == 0
    counted = []

    async def server(scope, receive, send):
        counted.append(gate.n_open())
        raise ConnectionError

    with pytest.raises(ConnectionError):
        run(Gate(server)({"type": "websocket", "path": "/x"}, None, None))
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
