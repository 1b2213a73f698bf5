"""One figure, its finding and the step of a lesson fill the window, in type that a class can read.

The browser only shows or hides what is there (ui/shell/present.css), so nothing is computed, sent or lost. The page is laid
out for 960 px and enlarged by ``transform: scale``: 12 px letters, the smallest in any figure, are 24 px in a 1920 px
window. SVG and text stay sharp, and Plotly knows where the pointer is, which it does not under the CSS property ``zoom``.
The address carries `PARAMETER`, which belongs to the browser alone: `ui.choice.state` does not change it.
"""

from ui.components import register

PARAMETER = "present"

_mount = register("present", "html")


def present() -> None:
    """Draws the button, and listens to P, Escape and the keys that step through a lesson."""
    _mount(key="present", data={"parameter": PARAMETER})
