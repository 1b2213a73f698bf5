"""What is kept of visitors who have left, in Streamlit's own stores."""

import weakref
from types import SimpleNamespace

import pytest
from streamlit import runtime
from streamlit.runtime import media_file_manager
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from streamlit.runtime.session_manager import SessionInfo
from streamlit.runtime.websocket_session_manager import WebsocketSessionManager

from ui.streamlit_fixes.sessions import end_left_sessions


class Trace:
    """What a download button holds."""

    def __call__(self) -> bytes:
        return b"csv"


@pytest.fixture
def server(monkeypatch):
    """Streamlit's stores; one session has just left, another one is there."""

    def start(ttl_seconds: float) -> tuple[dict[str, weakref.ref], MemorySessionStorage, MediaFileManager]:
        storage = MemorySessionStorage(ttl_seconds=ttl_seconds)
        sessions = WebsocketSessionManager(storage, None, None, None)
        files = MediaFileManager(MemoryMediaFileStorage("/media"))
        monkeypatch.setattr(
            runtime, "get_instance", lambda: SimpleNamespace(_session_mgr=sessions, media_file_mgr=files)
        )
        held = {}
        for name in ("left", "here"):
            monkeypatch.setattr(media_file_manager, "_get_session_id", lambda name=name: name)
            trace = Trace()
            files.add_deferred(trace, "text/csv", "1.2")
            held[name] = weakref.ref(trace)
        session = SimpleNamespace(id="left")
        storage.save(SessionInfo(client=None, session=session, script_run_count=1))
        return held, storage, files

    return start


def test_a_session_is_kept_for_whoever_comes_back_but_not_what_its_buttons_hold(server):
    held, storage, _ = server(120)
    assert end_left_sessions() == 1
    assert storage.get("left") is not None
    assert held["left"]() is None
    assert held["here"]() is not None


def test_a_session_whose_time_is_over_is_not_kept(server):
    _, storage, _ = server(0)
    assert len(storage._cache._data) == 1
    assert end_left_sessions() == 0
    assert len(storage._cache._data) == 0


def test_a_file_that_was_made_for_a_download_goes(server):
    _, _, files = server(0)
    (button,) = files._deferred_ids_by_session["here"]
    files.execute_deferred(button)
    for _ in range(2):
        end_left_sessions()
    assert files._storage._files_by_id == {}
    assert files.execute_deferred(button)  # it can be made again
