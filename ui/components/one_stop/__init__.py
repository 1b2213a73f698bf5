"""Groups of links and buttons that are one stop of the Tab key each: a newcomer reaches the page with few presses."""

from collections.abc import Sequence

from ui.components import register

_mount = register("one_stop", "rove")


def one_stop(groups: Sequence[str]) -> None:
    """Listens on the whole page; every page calls it once.

    Args:
        groups: selectors of what holds the links and buttons of a group; arrow keys move within.
    """
    _mount(key="one_stop", data={"groups": list(groups)})
