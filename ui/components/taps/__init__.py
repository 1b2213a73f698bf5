"""What Streamlit does not do on a press: it sends the text being typed, and closes the drawer.

Symptom: a tap on a link while a text is being typed leaves the field and opens the page at the same moment. Streamlit 1.67
then sends the page first and the text second, together with the previous page, which comes back; and the link still carries
the old text. On a phone the drawer with the menu stays open over the page or bundle just opened from it. No upstream issues
are known to us.
No longer needed when: `tests/browser/test_front_door.py` passes without it.
"""

from ui.components import register

_mount = register("taps")


def taps(n_opened: int) -> None:
    """Listens on the whole page; every page calls it once.

    Args:
        n_opened: number of bundles opened so far; when it grows, the drawer closes.
    """
    _mount(key="taps", data={"opened": n_opened})
