"""A counter on the page of the script runs that are completely drawn, for anything that has to wait for one.

Streamlit 1.67 shows that the script runs, but reports its end before the page's components have drawn.
"""

from dataclasses import dataclass

from ui.components import register
from ui.session import of_session

_mount = register("drawn")


@dataclass(slots=True)
class Runs:
    """Number of page runs of this visitor."""

    n: int = 0


def drawn() -> None:
    """Counts this run, and has the browser write its number on the page once completely drawn; every page calls it once."""
    runs = of_session(Runs)
    runs.n += 1
    _mount(key="drawn", data={"run": runs.n})
