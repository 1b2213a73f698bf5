"""A server's sessions: whose run this is, who is there, their uploaded files; and ends sessions in time once visitors left.

Symptom: Streamlit tells a page neither its session id nor whether its window is still open (`st.context` has neither), nor
how many bytes of files it keeps: any number, until two minutes after the visitor has left. After a page was closed, it
keeps the session for `server.disconnectedSessionTTL` seconds in case the visitor comes back, with everything that its
download buttons need; but it checks whether that time is over only when it stores another session. The sessions of a
class that leaves together thus stay in memory, each with a trace and its matrices.
Version: 1.67.0. No upstream issue is known to us.
No longer needed when: one of the tests of `TestSessions` in tests/unit/test_streamlit_fixes.py fails; each sees one symptom.
"""

from typing import cast

from streamlit import runtime
from streamlit.runtime.caching.ttl_cache import TTLCache
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.websocket_session_manager import WebsocketSessionManager


def session_id() -> str:
    """Id of the session whose page this thread draws; empty for the server itself."""
    context = get_script_run_ctx(suppress_warning=True)
    return context.session_id if context else ""


def is_open(session: str) -> bool:
    """Whether the window of this session is open."""
    return runtime.exists() and runtime.get_instance().is_active_session(session)


def file_sizes() -> list[int]:
    """Bytes of each file that visitors have uploaded."""
    sessions = _files().file_storage if runtime.exists() else {}
    return [len(file.data) for files in list(sessions.values()) for file in list(files.values())]


def forget_file(file_id: str) -> None:
    """Frees the bytes of a file of this thread's session."""
    if runtime.exists() and (session := session_id()):
        _files().remove_file(session, file_id)


def forget_files_of_who_has_left() -> None:
    """Frees the files of sessions without an open window."""
    files = _files()
    for session in list(files.file_storage):
        if not is_open(session):
            files.remove_session_files(session)


def end_left_sessions() -> int:
    """Ends sessions whose time is over, with their files; returns how many remain, freed of what a page would recreate."""
    server = runtime.get_instance()
    manager = server._session_mgr
    assert isinstance(manager, WebsocketSessionManager)  # Streamlit 1.67 has no others
    storage = manager._session_storage
    assert isinstance(storage, MemorySessionStorage)
    kept = storage._cache
    assert isinstance(kept, TTLCache)
    kept.expire()
    for info in storage.list():
        server.media_file_mgr.clear_session_refs(info.session.id)
    server.media_file_mgr.remove_orphaned_files()  # downloaded files are removed at the second call
    return len(storage.list())


def _files() -> MemoryUploadedFileManager:
    return cast(
        MemoryUploadedFileManager, runtime.get_instance().uploaded_file_mgr
    )  # Streamlit 1.67 has no other
