"""Which head links these two tokens?"""

from ui.renderer import render

render("Find a head")
