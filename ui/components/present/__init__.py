"""One figure, its finding and the step of a lesson in the whole window, with type that a class can read.

The browser shows or hides what is there (ui/shell/present.css), so nothing is computed, sent or lost. The page is laid out in a window
of 960 px and enlarged by ``transform: scale``: letters of 12 px, the smallest of any figure, have 24 px where the window has 1920.
SVG and text stay sharp, and Plotly knows where the pointer is, which it does not under the CSS property ``zoom``. The address
says so with `PARAMETER`, which belongs to the browser alone: `ui.choice.state` leaves it as it is.
"""

from ui.components import register

PARAMETER = "present"

_mount = register("present", "html")


def present() -> None:
    """Draws the button, and listens to P, Escape and the keys that lead through a lesson."""
    _mount(key="present", data={"parameter": PARAMETER})
