"""The server asks nobody on the internet for its own address.

Symptom: started without an address, Streamlit asks a server on the internet which address it has, to print it, and again for
every websocket whose origin it does not know, while all visitors wait.
Version: 1.67.0. No upstream issue is known to us.
No longer needed when: without it tests/browser/test_starting.py passes.
"""

from streamlit import net_util


def look_nothing_up() -> None:
    """From now on the address that the internet sees is not known."""
    net_util.get_external_ip = lambda: None
