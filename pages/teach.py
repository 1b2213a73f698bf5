"""Which lessons are there, and what is there to say?"""

from ui.renderer import render

render("For teachers")
