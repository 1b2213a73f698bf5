"""Which tokens in other texts are most like the selected one?"""

from ui.renderer import render

render("Find tokens")
