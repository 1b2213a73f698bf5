"""Which run of the script is wholly drawn: a counter on the page, for whatever has to wait for that.

While a page is drawn Streamlit 1.67 says that it runs; that it does not run is said before its components have drawn.
"""

from dataclasses import dataclass

from ui.components import register
from ui.session import of_session

_mount = register("drawn")


@dataclass(slots=True)
class Runs:
    """How many times the pages of this visitor have been drawn."""

    n: int = 0


def drawn() -> None:
    """Counts this run, and has the browser write its number on the page as soon as all of it is drawn; every page calls it once."""
    runs = of_session(Runs)
    runs.n += 1
    _mount(key="drawn", data={"run": runs.n})
