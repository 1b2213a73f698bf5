"""What Streamlit leaves undone when something is pressed: a text that is being typed is sent, the drawer closes.

Symptom: a tap on a link while a text is being typed leaves the field and opens the page in one moment. Streamlit 1.67 then
sends the page first and the text second, with the page before, which comes back; and the link still carries the old text.
On a phone the drawer with the menu stays open over the page that was chosen, or the bundle that was opened, in it. No upstream issues are known to us.
No longer needed when: `tests/browser/test_front_door.py` passes without it.
"""

from ui.components import register

_mount = register("taps")


def taps(n_opened: int) -> None:
    """Listens on the whole page; every page calls it once.

    Args:
        n_opened: bundles that were opened; after one more the drawer has done its work.
    """
    _mount(key="taps", data={"opened": n_opened})
