"""The sessions of visitors who have left end in time, and hold little until then.

Symptom: Streamlit keeps a session for `server.disconnectedSessionTTL` seconds after its page was closed, for whoever comes back,
with all that its download buttons would need; and it looks whether that time is over only when another session is kept. A class
that leaves together stays in memory, each with a trace and its matrices.
Version: 1.67.0. No upstream issue is known to us.
No longer needed when: Streamlit's session storage ends sessions by itself.
"""

from streamlit import runtime
from streamlit.runtime.caching.ttl_cache import TTLCache
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from streamlit.runtime.websocket_session_manager import WebsocketSessionManager


def end_left_sessions() -> int:
    """Ends those whose time is over, with their files; how many are still kept, without what the page would make anew."""
    server = runtime.get_instance()
    manager = server._session_mgr
    assert isinstance(manager, WebsocketSessionManager)  # Streamlit 1.67 has no others
    storage = manager._session_storage
    assert isinstance(storage, MemorySessionStorage)
    kept = storage._cache
    assert isinstance(kept, TTLCache)
    kept.expire()
    for one in storage.list():
        server.media_file_mgr.clear_session_refs(one.session.id)
    server.media_file_mgr.remove_orphaned_files()  # what was downloaded goes at the second call
    return len(storage.list())
