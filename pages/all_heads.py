"""Which heads are there, and which are alike?"""

from ui.renderer import render

render("Pictures and numbers")
