"""Where do the queries and keys of many sentences lie?"""

from ui.renderer import render

render("Joint map")
