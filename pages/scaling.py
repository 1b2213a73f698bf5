"""Why are scores divided by the square root of d_k?"""

from ui.renderer import render

render("Scaling")
