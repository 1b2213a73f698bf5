"""What a page listens to and tells as a whole, without drawing anything: a script for each concern, and one message for all.

- `taps.js`: a press sends the text being typed, and closes the drawer on a phone; Enter sends a sentence.
- `drops.js`: a text file that is dropped on a sentence's field is read.
- `tooltips.js`: a tooltip never covers what its button has just changed (streamlit_fixes/tooltips.css says why).
- `links.js`: which links are the current ones, links that lead on with what is selected, and rows that are one stop of Tab.
- `term_cards.js`: a term's meaning, in a card at its link.
- `server.js`: asks for a run when the page has reconnected, or is light where it was dark.
- `drawn.js`: says on the page which run is completely drawn, and scrolls to the heading in the address.

What Streamlit 1.67 does without them; no upstream issues are known to us:

- A tap on a link while a text is being typed leaves the field and opens the page at the same moment: the page is sent first and
  the text second, together with the previous page, which comes back. No longer needed when `tests/browser/test_front_door.py` passes
  without it.
- Links to the same script all get the colour of the current one, and no mark for screen readers.
- Colours change at once with the theme, but no script runs: figures would keep the previous theme's until the next click.
- After a lost connection nothing is sent until the next click. A process that does not know this visitor takes that click for the
  opening of the page: it draws the view in the address, and the click is lost.
- The end of a run is reported before the page's components have drawn.
"""

from collections.abc import Callable
from dataclasses import dataclass

from attnviz.figures.theme import ThemeName
from ui.components import register
from ui.components.present import PARAMETER
from ui.session import of_session

_mount = register("page", "rove")


@dataclass(slots=True)
class Runs:
    """Number of page runs of this visitor."""

    n: int = 0


def whole_page(
    part: str, room: str, *, theme: ThemeName, n_opened: int, on_change: Callable[[], None]
) -> None:
    """Listens on the whole page; every page calls it once.

    Args:
        part: name of the current link in the row of parts.
        room: that in the menu; empty if no entry is current.
        theme: what the page is drawn in.
        n_opened: number of bundles opened so far; when it grows, the drawer closes.
        on_change: called when the page asks for a run.
    """
    data = {"part": part, "room": room, "theme": theme, "opened": n_opened, "parameter": PARAMETER}
    _mount(key="page", data={"does": "listen"} | data, on_asked_change=on_change)


def drawn() -> None:
    """Counts this run, and has the browser write its number on the page once completely drawn; every page calls it once."""
    runs = of_session(Runs)
    runs.n += 1
    _mount(key="page_drawn", data={"does": "count", "run": runs.n})


def anchor() -> None:
    """Scrolls to the heading that the link's fragment names; pages call this last."""
    _mount(key="page_anchor", data={"does": "scroll"})
