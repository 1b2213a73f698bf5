"""Links to our pages that lead there with what is selected, without naming it."""

from ui.components import register
from ui.components.present import PARAMETER

_mount = register("selected_links")


def selected_links() -> None:
    """Adds the selection to every link without parameters when it is used; every page calls it once."""
    _mount(key="selected_links", data={"parameter": PARAMETER})
