"""Where do the queries and keys of a head lie?"""

from ui.renderer import render

render("Other maps")
