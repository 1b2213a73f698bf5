"""Which tokens does the outcome depend on?"""

from ui.renderer import render

render("Inputs")
