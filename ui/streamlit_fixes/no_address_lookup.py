"""The server asks nobody on the internet for its own address.

Symptom: started without an address, Streamlit asks a server on the internet which address it has, to print it, and again for
every websocket whose origin it does not know, while all visitors wait. Which address it has on the local network it finds by a
socket towards a name server on the internet, to which nothing is sent. The start comes before any code of ours, so that
``browser.serverAddress`` in .streamlit/config.toml says what is printed.
Version: 1.67.0. No upstream issue is known to us.
No longer needed when: `test_asks_for_its_address_where_an_origin_is_not_known` in tests/unit/test_streamlit_fixes.py fails, and without
that setting tests/server/test_starting.py passes.
"""

from streamlit import net_util


def look_nothing_up() -> None:
    """From now on no other address than the configured one is known; a page of this server's may always ask it."""
    net_util.get_external_ip = lambda: None
    net_util.get_internal_ip = lambda: None
