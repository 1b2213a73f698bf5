"""The server does not ask the internet for its own address.

Symptom: started without an address, Streamlit asks a server on the internet for its own, to print it, and again for every
websocket from an unknown origin, while all visitors wait. It finds its address on the local network through a socket
towards a name server on the internet, to which nothing is sent. The start comes before any code of ours, so
``browser.serverAddress`` in .streamlit/config.toml sets what is printed.
Version: 1.67.0. No upstream issue is known to us.
No longer needed when: `test_asks_for_its_address_where_an_origin_is_not_known` in tests/unit/test_streamlit_fixes.py fails, and without
that setting tests/server/test_starting.py passes.
"""

from streamlit import net_util


def look_nothing_up() -> None:
    """From now on only the configured address is known; this server's own pages can always connect."""
    net_util.get_external_ip = lambda: None
    net_util.get_internal_ip = lambda: None
