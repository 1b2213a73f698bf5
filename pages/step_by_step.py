"""How does a sentence become a matrix, and the matrix an output?"""

from ui.renderer import render

render("Step by step")
